"""The fault matrix in virtual time: each way to travel, each way to go wrong, and pairs of them.

Every cell ends with rows that add up, a ledger that is what accepted.parquet says, the documented exit code, and,
after a resume with the faults off, every row that can be accepted accepted once.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio.testing
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mock_server.app import MockApp, create_app
from mock_server.faults import ConnectionDroppedError
from mock_server.scenario import parse_scenario
from saasload.clock import Clock
from saasload.engine import Resume, Surroundings, push, resume, verify
from saasload.job import Job, make_job
from saasload.run.report import Report
from saasload.sample import write_sample
from saasload.testing import EPOCH_S
from saasload.verify import Proof

MODES = ("insert", "batch", "xml")
ROWS, COMPANIES = 24, 2
ROWS_PER_CALL = {"insert": 1, "batch": 4, "xml": 4}
DEADLINE_S = 20.0
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
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass
class Heard:
    """A reply of the mock, caught before it leaves."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    async def catch(self, message: Message) -> None:
        """Take the mock's messages in the place of the client."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        else:
            self.body += message.get("body", b"")

    async def pass_on(self, send: Send) -> None:
        """Send it after all."""
        headers = [pair for pair in self.headers if pair[0] != b"content-length"]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def refusal(status: int, text: str = "", **headers: str) -> Heard:
    """Make an answer that comes in the place of the mock's."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    body = orjson.dumps({"error": {"message": {"value": text}}}) if text else b""
    return Heard(status, named, body)


HTML = Heard(200, [(b"content-type", b"text/html")], b"<!DOCTYPE html><html><body>We are working on it</body></html>")

INSTEAD = {
    "408": refusal(408, "Request Timeout"),
    "413": refusal(413, "Request Entity Too Large"),
    "429 with a wait": refusal(429, retry_after="7"),
    "429 with a date": refusal(429, retry_after="Mon, 21 Sep 2026 14:14:00 GMT"),
    "429 with limit headers": refusal(
        429, x_ratelimit_minutely_remaining="0", x_ratelimit_minutely_reset="1790000067000"
    ),
    "429 without headers": refusal(429),
    "500 business": refusal(500, "Verplicht: Name"),
    "500 technical": refusal(500, "Object reference not set to an instance of an object"),
    "502": refusal(502, "Bad Gateway"),
    "503": refusal(503, "Service Unavailable"),
    "503 with a wait": refusal(503, "Service Unavailable", retry_after="3"),
    "504": refusal(504, "Gateway Timeout"),
    "HTML page with 200": HTML,
    "empty body": Heard(200),
}  # fmt: skip

# Done before the answer is spoilt: the rows are stored.
SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "cut JSON": lambda body: body[: len(body) * 2 // 3],
    "cut multipart": lambda body: body[: body.rstrip().rfind(b"--batchresponse")],
    "cut multipart in a part": lambda body: body[: len(body) // 2],
    "cut XML": lambda body: body[: len(body) * 2 // 3],
    "HTML page after the commit": lambda _: HTML.body,
    "empty body after the commit": lambda _: b"",
    "an answer without the last row": lambda body: re.sub(
        rb"(?s)<Message type=\"2\">(?:(?!<Message).)*</Message>\s*(?=</Messages>)", b"", body
    ),
    "wrong length": lambda body: body[:-1],
}

CONNECTION = (
    "connection refused", "reset before the request", "reset after the commit", "time-out before the commit",
    "time-out after the commit", "late commit after the time-out", "slow body", "idle connection closed",
)  # fmt: skip

ONLY = {
    "cut multipart": {"batch"}, "cut multipart in a part": {"batch"}, "cut XML": {"xml"}, "cut JSON": {"insert"},
    "an answer without the last row": {"xml"},
}  # fmt: skip

# A row that stands alone in its call and is refused for what the call is: rejected, and not sent again by a resume.
REFUSES = {"413", "500 business"}

FAULTS = (*CONNECTION, *INSTEAD, *SPOILT)


class Faulty:
    """The mock behind a line that spoils the calls it is told to, counted from 1, writes and look-ups apart."""

    def __init__(self, app: MockApp, faults: dict[tuple[str, int], str]) -> None:
        """Take what happens to which call: ("write", 2) or ("look-up", 1)."""
        self.app = app
        self.faults = dict(faults)
        self.seen = {"write": 0, "look-up": 0}
        self.hit: list[str] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a call pass, or spoil it."""
        if scope["path"].startswith("/api/v1/current"):
            await self.app(scope, receive, send)
            return
        kind = "write" if scope["method"] == "POST" else "look-up"
        self.seen[kind] += 1
        fault = self.faults.pop((kind, self.seen[kind]), None)
        if fault is None:
            await self.app(scope, receive, send)
            return
        self.hit.append(fault)
        if fault in CONNECTION:
            await self._connection(fault, scope, receive, send)
        elif fault in INSTEAD:
            await receive()
            await INSTEAD[fault].pass_on(send)
        else:
            heard = Heard()
            await self.app(scope, receive, heard.catch)
            heard.body = SPOILT[fault](heard.body)
            await heard.pass_on(send)

    async def _connection(self, fault: str, scope: Message, receive: Receive, send: Send) -> None:
        heard = Heard()
        match fault:
            case "connection refused":
                raise httpx.ConnectError(fault)
            case "reset before the request":
                raise httpx.WriteError(fault)
            case "idle connection closed":
                raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
            case "time-out before the commit":
                await anyio.sleep_forever()
            case "slow body":
                await self.app(scope, receive, heard.catch)
                await anyio.sleep(DEADLINE_S - 5.0)
                await heard.pass_on(send)
                return
            case "late commit after the time-out":
                body = (await receive())["body"]
                self.app.world.ledger.later(
                    self.app.world.clock.now_s() + DEADLINE_S + 3.0, lambda: self._late(scope, body)
                )
                await anyio.sleep_forever()
        await self.app(scope, receive, heard.catch)
        if fault == "time-out after the commit":
            await anyio.sleep_forever()
        raise ConnectionDroppedError

    def _late(self, scope: Message, body: bytes) -> None:
        """Carry a call out for nobody: what the platform does with one whose client has left."""
        latency, self.app.world.latency = self.app.world.latency, _Free()  # type: ignore[assignment]

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        late = self.app(scope, receive, Heard().catch)
        try:
            late.send(None)
        except StopIteration:
            pass
        else:
            raise AssertionError("a late call must not wait")
        finally:
            self.app.world.latency = latency


class _Free:
    """No latency."""

    def is_free(self, _endpoint: str) -> bool:
        return True


@dataclass
class Stage:
    """One source, one mock, and runs that follow each other on one clock."""

    folder: Path
    mode: str
    app: MockApp
    faulty: Faulty
    elapsed_s: float = 0.0

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
        return Surroundings(app=self.faulty, clock=Clock.virtual(epoch_s=EPOCH_S))

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

    def adds_up(self, report: Report) -> bool:
        """Tell whether each row of the source is counted once, and stands in one file."""
        files = [self.rows(name) for name in ("accepted", "rejected", "in_doubt", "unsent")]
        counted = [report.accepted, report.rejected, report.in_doubt, report.unsent]
        return sorted(row for rows in files for row in rows) == list(range(1, ROWS + 1)) and counted == [
            len(rows) for rows in files
        ]


def set_up(folder: Path, mode: str, faults: dict[tuple[str, int], str]) -> Stage:
    """Make a source of 24 rows over two companies, and a mock behind a line with faults."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "rows.parquet").exists():
        write_sample(folder / "rows.parquet", rows=ROWS, companies=COMPANIES)
    app = create_app(parse_scenario(WORLD, source="test", name="test"), epoch0_s=EPOCH_S)
    return Stage(folder, mode, app, Faulty(app, faults))


CELLS = [(mode, fault) for fault in FAULTS for mode in MODES if mode in ONLY.get(fault, MODES)]


@pytest.mark.parametrize(("mode", "fault"), CELLS, ids=lambda value: value.replace(" ", "-"))
def test_every_fault_ends_with_each_row_once_and_known(mode: str, fault: str, tmp_path: Path) -> None:
    """Two calls meet the fault; the run ends by itself, and what it says is what the ledger holds."""
    stage = set_up(tmp_path, mode, {("write", 2): fault, ("write", 4): fault})

    report = stage.push()

    rejected = 2 if mode == "insert" and fault in REFUSES else 0
    assert stage.faulty.hit == [fault, fault]
    assert stage.adds_up(report)
    assert (report.exit_code, report.accepted, report.rejected) == (bool(rejected), ROWS - rejected, rejected)
    assert stage.ledger() == stage.accepted()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda value: value.replace(" ", "-"))
@pytest.mark.parametrize("mode", MODES)
def test_a_fault_that_does_not_end_leaves_a_run_that_a_resume_completes(mode: str, fault: str, tmp_path: Path) -> None:
    """From the second call on every one meets the fault, look-ups too; nothing is said that is not so."""
    if mode not in ONLY.get(fault, MODES):
        pytest.skip(f"{mode} has no such answer")
    endless = {(kind, number): fault for kind in ("write", "look-up") for number in range(2, 2000)}
    stage = set_up(tmp_path, mode, endless)

    first = stage.push()
    held, known = stage.ledger(), stage.accepted()
    assert stage.adds_up(first)
    assert set(known) <= set(held)
    assert len(held) == len(set(held))
    unexplained = set(held) - set(known)
    assert len(unexplained) <= first.in_doubt
    expected = {0} if first.accepted == ROWS else {1, 3, 4}
    assert first.exit_code in expected

    last = stage.resume()

    assert stage.adds_up(last)
    assert (last.accepted, last.in_doubt, last.unsent) == (ROWS - first.rejected, 0, 0)
    assert last.exit_code == bool(first.rejected)
    assert stage.ledger() == stage.accepted()


def test_a_token_that_expires_stops_the_run_and_a_new_one_completes_it(tmp_path: Path) -> None:
    """Without a token file a 401 in mid-run is exit code 3; nothing of what it answered was executed."""
    for mode in MODES:
        stage = set_up(tmp_path / mode, mode, {})
        stage.faulty.faults = {("write", number): "401" for number in range(3, 50)}
        INSTEAD["401"] = refusal(401, "Access token expired")
        try:
            first = stage.push()
        finally:
            del INSTEAD["401"]

        assert (first.exit_code, first.in_doubt, first.rejected) == (3, 0, 0)
        assert "does not accept the token" in first.stopped
        assert stage.adds_up(first)
        assert stage.ledger() == stage.accepted()
        last = stage.resume()
        assert (last.exit_code, last.accepted) == (0, ROWS)
        assert stage.ledger() == stage.accepted()


class Expiring:
    """A mock whose token expires after some writes; the next one is written to a file by someone else."""

    def __init__(self, app: Faulty, token_file: Path, after: int) -> None:
        """Accept the first token for so many writes."""
        self.app = app
        self.token_file = token_file
        self.after = after
        self.writes = 0
        self.refused = 0
        self.token = b"Bearer first"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Refuse a token that is not the present one; let the mock see its own."""
        self.writes += scope["method"] == "POST"
        if self.writes == self.after:
            self.token = b"Bearer second"
            self.token_file.write_text("second\n")
        headers = dict(scope["headers"])
        if headers[b"authorization"] != self.token:
            self.refused += 1
            await receive()
            await refusal(401, "Invalid token").pass_on(send)
            return
        known = [*(headers | {b"authorization": b"Bearer mock-token"}).items()]
        await self.app({**scope, "headers": known}, receive, send)


@pytest.mark.parametrize("mode", MODES)
def test_a_token_that_is_renewed_in_its_file_goes_on(mode: str, tmp_path: Path) -> None:
    """The call that was refused goes out once more with the new token; nobody notices."""
    stage = set_up(tmp_path, mode, {})
    token = tmp_path / "token"
    token.write_text("first")
    expiring = stage.faulty = Expiring(stage.faulty, token, after=3)  # type: ignore[assignment]

    report = stage.push(token_file=token)

    assert expiring.refused
    assert (report.exit_code, report.accepted) == (0, ROWS)
    assert stage.ledger() == stage.accepted()


@pytest.mark.parametrize("mode", MODES)
def test_every_try_carries_the_same_bytes(mode: str, tmp_path: Path) -> None:
    """C48: a body is sent again whole, whether it is answered with 503 or with 401."""
    stage = set_up(tmp_path, mode, {})
    token = tmp_path / "token"
    token.write_text("first")
    bodies: list[bytes] = []
    faulty = Expiring(Faulty(stage.app, {("write", 3): "503 with a wait"}), token, after=2)

    async def recording(scope: Message, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        if scope["method"] == "POST":
            bodies.append(body)

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await faulty(scope, again, send)

    stage.faulty = recording  # type: ignore[assignment]
    report = stage.push(token_file=token, parallel=1)

    assert report.accepted == ROWS
    repeated = [body for body in bodies if bodies.count(body) > 1]
    assert len(repeated) == 2 * 2
    assert len(set(bodies)) == ROWS // ROWS_PER_CALL[mode]


@pytest.mark.parametrize("mode", ["insert", "batch"])
@pytest.mark.parametrize("fault", ["reset before the request", "reset after the commit"])
def test_of_two_rows_with_one_key_one_is_accepted_whatever_is_lost(mode: str, fault: str, tmp_path: Path) -> None:
    """The row that is found there is counted for one of them only; the other one is a duplicate."""
    twice = {"company": ["1001"] * 4, "Code": ["1", "2", "1", "2"], "Name": ["A", "B", "A", "B"]}
    pq.write_table(pa.table(twice), tmp_path / "rows.parquet")
    stage = set_up(tmp_path, mode, {("write", 1): fault, ("write", 2): fault})

    report = stage.push(rows_per_call=1 if mode == "insert" else 2)

    assert (report.exit_code, report.accepted, report.rejected, report.reasons) == (1, 2, 2, {"duplicate": 2})
    assert stage.ledger() == stage.accepted()


CALLS = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 8)),
    st.tuples(st.just("look-up"), st.integers(1, 3)),
)
PAIRS = st.lists(st.tuples(CALLS, st.sampled_from(FAULTS)), min_size=2, max_size=5, unique_by=lambda pair: pair[0])


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(mode=st.sampled_from(MODES), pairs=PAIRS, per_company=st.integers(1, 2))
def test_faults_that_meet_leave_each_row_once(
    mode: str, pairs: list[tuple[tuple[str, int], str]], per_company: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two to five faults at calls drawn at random, on the rows or on the questions after them."""
    possible = {call: fault for call, fault in pairs if mode in ONLY.get(fault, MODES) or call[0] == "look-up"}
    stage = set_up(tmp_path_factory.mktemp("pairs"), mode, possible)

    first = stage.push(per_company=per_company, parallel=4)

    assert stage.adds_up(first)
    held = stage.ledger()
    assert len(held) == len(set(held))
    assert set(stage.accepted()) <= set(held)
    # A question that is refused for good leaves its rows in doubt: for them a person, or the next process, asks again.
    refused = any(call[0] == "look-up" and fault in REFUSES for call, fault in possible.items())
    assert first.unsent == 0
    assert first.exit_code == (4 if first.in_doubt else bool(first.rejected))
    assert not first.in_doubt or refused
    last = stage.resume()
    assert (last.accepted, last.rejected) == (ROWS - first.rejected, first.rejected)
    assert last.exit_code == bool(first.rejected)
    assert stage.ledger() == stage.accepted()
