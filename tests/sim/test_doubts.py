"""Crashes and faults drawn at random, on one virtual clock: whatever happens, each row is booked once.

A crash abandons all that a process knows in memory, at any write of the journal or at any call on the wire; the next
process has the run folder and nothing else.
"""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pyarrow.parquet as pq
import pytest
import trio.testing
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mock_server.app import create_app
from mock_server.faults import ConnectionDroppedError
from mock_server.scenario import parse_scenario
from saasload.clock import Clock
from saasload.engine import Resume, Surroundings, push, resume
from saasload.job import make_job
from saasload.run.journal import Journal
from saasload.run.report import Report
from saasload.sample import write_sample
from saasload.testing import EPOCH_S

MODES = ("insert", "batch", "xml")
ROWS = 20
DEADLINE_S = 20.0
WORLD = """
companies = 2
unique_code = {unique}
[latency]
slots = 8
read_s = 0.01
jitter_sigma = 0.5
insert = {{ call_s = 0.5 }}
batch = {{ call_s = 1.0 }}
xml = {{ call_s = 1.0 }}
"""
FAULTS = ("refused", "reset-before", "reset-after", "silent-before", "silent-after", "empty-after", "503", "429")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class PowerFailureError(BaseException):
    """The process is gone."""


async def _nowhere(_message: Message) -> None:
    pass


class Line:
    """The mock behind a line with faults; a call may also be the last thing a process does."""

    def __init__(self, app: Any) -> None:
        """Begin without faults."""
        self.app = app
        self.faults: dict[int, str] = {}
        self.crash_at = 0
        self.calls = 0

    def next_process(self, faults: dict[int, str], crash_at: int) -> None:
        """Count from 1 again."""
        self.faults, self.crash_at, self.calls = dict(faults), crash_at, 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Carry one call."""
        if scope["path"].startswith("/api/v1/current"):
            await self.app(scope, receive, send)
            return
        self.calls += 1
        number, fault = self.calls, self.faults.get(self.calls, "")
        if fault == "refused":
            raise httpx.ConnectError(fault)
        if fault == "reset-before":
            raise ConnectionDroppedError
        if fault == "silent-before":
            await anyio.sleep_forever()
        if fault in {"503", "429"}:
            await receive()
            await send({"type": "http.response.start", "status": int(fault), "headers": [(b"retry-after", b"2")]})
            await send({"type": "http.response.body", "body": b""})
            return
        lost = bool(fault) or number == self.crash_at
        await self.app(scope, receive, _nowhere if lost else send)
        if number == self.crash_at:
            raise PowerFailureError
        if fault == "reset-after":
            raise ConnectionDroppedError
        if fault == "silent-after":
            await anyio.sleep_forever()
        if fault == "empty-after":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})


@contextmanager
def power_failure(at: int, moment: str) -> Iterator[None]:
    """Let the process end at a write of its journal, before or after it is durable; 0 is never."""
    real, count, gone = Journal.write, 0, False

    def write(self: Journal, records: Any, facts: Any = None) -> None:
        nonlocal count, gone
        count += 1
        if gone:
            raise PowerFailureError
        if count == at:
            gone = True
            if moment == "after":
                real(self, records, facts)
            raise PowerFailureError
        real(self, records, facts)

    Journal.write = write  # type: ignore[method-assign]
    try:
        yield
    finally:
        Journal.write = real  # type: ignore[method-assign]


class Processes(RuleBasedStateMachine):
    """One run, in as many processes as it takes."""

    def __init__(self) -> None:
        """Make a folder."""
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="saasload-doubts-"))
        self.elapsed_s = 0.0
        self.begun = False
        self.mode = "insert"

    @initialize(mode=st.sampled_from(MODES), unique=st.booleans())
    def begin(self, mode: str, unique: bool) -> None:
        """Make the source and the mock: one that refuses a code that it has, or one that takes it twice."""
        write_sample(self.folder / "rows.parquet", rows=ROWS, companies=2)
        text = WORLD.format(unique=str(unique).lower())
        self.app = create_app(parse_scenario(text, source="test", name="test"), epoch0_s=EPOCH_S)
        self.line = Line(self.app)
        self.mode = mode

    @rule(
        faults=st.dictionaries(st.integers(1, 12), st.sampled_from(FAULTS), max_size=4),
        crash_at_write=st.integers(0, 14),
        moment=st.sampled_from(("before", "after")),
        crash_at_call=st.sampled_from((0, 0, 1, 2, 3, 5, 8)),
        mode=st.sampled_from((None, None, *MODES)),
        parallel=st.integers(1, 4),
        per_company=st.integers(1, 2),
    )
    def process(  # noqa: PLR0917 hypothesis names them
        self, faults: dict[int, str], crash_at_write: int, moment: str, crash_at_call: int, mode: str | None,
        parallel: int, per_company: int,
    ) -> None:  # fmt: skip
        """Let one process begin the run or go on with it, and end as it may."""
        self.line.next_process(faults, crash_at_call)
        changes = {"parallel": parallel, "per_company": per_company}
        with power_failure(crash_at_write, moment):
            try:
                self._play({**changes, "mode": mode or self.mode})
            except PowerFailureError:
                pass
            except BaseExceptionGroup as group:
                if group.split(PowerFailureError)[1] is not None:
                    raise
        self._nothing_twice()

    def teardown(self) -> None:
        """Go on until all is done, with nothing in the way, and compare."""
        try:
            if hasattr(self, "line"):
                self.line.next_process({}, 0)
                report = self._play({"mode": self.mode})
                self._nothing_twice()
                assert (report.accepted, report.exit_code) == (ROWS, 0), report
                accepted = pq.read_table(self.folder / "runs" / "run" / "accepted.parquet")
                assert sorted(accepted.column("row").to_pylist()) == list(range(1, ROWS + 1))
                assert len(self._ledger()) == ROWS
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _play(self, changes: dict[str, Any]) -> Report:
        runs = self.folder / "runs"
        # what was begun is known by its journal alone
        begun = (runs / "run" / "journal.db").exists()
        around = Surroundings(app=self.line, clock=Clock.virtual(epoch_s=EPOCH_S))
        changes = {**changes, "rows_per_call": 1 if changes["mode"] == "insert" else 4}

        async def main() -> Report:
            started = anyio.current_time()
            try:
                with anyio.fail_after(100_000):
                    if begun:
                        return await resume(runs, "run", Resume(changes), around)
                    job = make_job(source=self.folder / "rows.parquet", runs=runs, run="run", seed=1,
                                   profile="mock-unlimited", deadline_s=DEADLINE_S, **changes)  # fmt: skip
                    return await push(job, around)
            finally:
                self.elapsed_s += anyio.current_time() - started + 1.0

        clock = trio.testing.MockClock(autojump_threshold=0)
        clock.jump(self.elapsed_s)
        report: Report = anyio.run(main, backend="trio", backend_options={"clock": clock})
        assert report.read == report.accepted + report.rejected + report.in_doubt + report.unsent
        assert report.rejected == 0
        return report

    def _ledger(self) -> list[tuple[int, str]]:
        books = self.app.world.ledger.books()
        return [(company, book.codes[number]) for company, book in books.items() for number in book.numbers()]

    def _nothing_twice(self) -> None:
        held = self._ledger()
        assert len(held) == len(set(held)), "a row was booked twice"


TestProcesses = pytest.mark.timeout(60)(Processes.TestCase)
TestProcesses.__doc__ = "Up to four processes, each with faults and an end of its own, then one that ends well."
TestProcesses.settings = settings(
    max_examples=60,
    stateful_step_count=4,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
