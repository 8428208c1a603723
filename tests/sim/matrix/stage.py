"""One source, one mock behind a faulty line, and runs that follow each other on one virtual clock."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pyarrow.parquet as pq
import trio.testing

from mock_server.app import MockApp, create_app
from mock_server.scenario import parse_scenario
from saasload.clock import Clock
from saasload.engine import Resume, Surroundings, push, resume, verify
from saasload.job import Job, make_job
from saasload.run.report import Report
from saasload.sample import write_sample
from saasload.testing import EPOCH_S
from saasload.verify import Proof

from .line import DEADLINE_S, Faulty

ROWS, COMPANIES = 24, 2
ROWS_PER_CALL = {"insert": 1, "batch": 4, "xml": 4}
WORLD = """
companies = 2
[latency]
slots = 8
read_s = 0.01
insert = { call_s = 0.1 }
batch = { call_s = 0.1 }
xml = { call_s = 0.1 }
"""

T = TypeVar("T")


@dataclass
class Stage:
    """One source, one mock, and runs that follow each other on one clock."""

    folder: Path
    mode: str
    app: MockApp
    faulty: Faulty
    elapsed_s: float = 0.0
    said: list[str] = field(default_factory=list)

    def push(self, **arguments: Any) -> Report:
        """Begin a run."""
        job = make_job(**{
            "source": self.folder / "rows.parquet", "runs": self.folder / "runs", "run": "run", "seed": 1,
            "profile": "mock-unlimited", "mode": self.mode, "rows_per_call": ROWS_PER_CALL[self.mode],
            "deadline_s": DEADLINE_S, "parallel": 2, **arguments,
        })  # fmt: skip
        return self._run(partial(self._push, job))

    def resume(self, how: Resume | None = None) -> Report:
        """Go on with it, with no faults left."""
        self.faulty.faults.clear()
        return self._run(partial(self._resume, how))

    def verify(self) -> Proof:
        """Prove it."""
        return self._run(self._verify)

    async def _push(self, job: Job) -> Report:
        return await push(job, self._around())

    async def _resume(self, how: Resume | None) -> Report:
        return await resume(self.folder / "runs", "run", how, self._around())

    async def _verify(self) -> Proof:
        return await verify(self.folder / "runs", "run", self._around())

    def _around(self) -> Surroundings:
        return Surroundings(app=self.faulty, clock=Clock.virtual(epoch_s=EPOCH_S), say=self.said.append)

    def _run(self, main: Callable[[], Awaitable[T]]) -> T:
        clock = trio.testing.MockClock(autojump_threshold=0)
        clock.jump(self.elapsed_s)

        async def timed() -> T:
            began = anyio.current_time()
            try:
                with anyio.fail_after(100_000):
                    return await main()
            finally:
                self.elapsed_s += anyio.current_time() - began + 1.0

        return anyio.run(timed, backend="trio", backend_options={"clock": clock})

    def ledger(self) -> list[tuple[str, str]]:
        """List what is booked, with what will be booked by calls that nobody waits for any more."""

        async def settle() -> None:
            self.app.world.ledger.settle(float("inf"))

        self._run(settle)
        return sorted(
            (str(company), book.codes[number]) for company, book in self.app.world.ledger.books().items()
            for number in book.numbers()
        )  # fmt: skip

    def rows(self, name: str) -> list[int]:
        """List the rows of one of the run's files."""
        table = pq.read_table(self.folder / "runs" / "run" / f"{name}.parquet", columns=["row"])
        found: list[int] = table.column("row").to_pylist()
        return sorted(found)

    def accepted(self) -> list[tuple[str, str]]:
        """List company and code of the accepted rows."""
        source = pq.read_table(self.folder / "rows.parquet", columns=["company", "Code"])
        keys = list(zip(source.column("company").to_pylist(), source.column("Code").to_pylist(), strict=True))
        return sorted((str(keys[row - 1][0]), keys[row - 1][1].strip()) for row in self.rows("accepted"))

    def adds_up(self, report: Report, rows: int = ROWS) -> bool:
        """Tell whether each row of the source is counted once, and stands in one file."""
        files = [self.rows(name) for name in ("accepted", "rejected", "in_doubt", "unsent")]
        counted = [report.accepted, report.rejected, report.in_doubt, report.unsent]
        return sorted(row for found in files for row in found) == list(range(1, rows + 1)) and counted == [
            len(found) for found in files
        ]

    def names(self) -> dict[tuple[str, str], object]:
        """Tell the name of every booked row, by company and code."""
        return {
            (str(company), book.codes[number]): book.fields(number)["Name"]
            for company, book in self.app.world.ledger.books().items() for number in book.numbers()
        }  # fmt: skip


def set_up(folder: Path, mode: str, faults: dict[tuple[str, int], str], world: str = WORLD) -> Stage:
    """Make a source of 24 rows over two companies, and a mock behind a line with faults."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "rows.parquet").exists():
        write_sample(folder / "rows.parquet", rows=ROWS, companies=COMPANIES)
    app = create_app(parse_scenario(world, source="test", name="test"), epoch0_s=EPOCH_S)
    return Stage(folder, mode, app, Faulty(app, faults))
