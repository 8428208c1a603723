"""Commands as a user runs them, in this process or in one that is killed and resumed; mock servers to load into."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import httpx
import orjson
import pyarrow.parquet as pq
import pytest

from saasload.cli import main
from saasload.sample import write_sample


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The report it printed with --json."""
        found: dict[str, Any] = orjson.loads(self.out)
        return found

    @property
    def lines(self) -> list[str]:
        """What it said to people."""
        return self.err.strip().splitlines()


@dataclass
class Place:
    """A folder to run commands in."""

    folder: Path
    running: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(
        self, *arguments: str, limit: Callable[[], None] | None = None, **environment: str
    ) -> "subprocess.Popen[str]":
        """Start a command."""
        process = subprocess.Popen(
            [sys.executable, "-m", "saasload", *arguments],
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "200", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limit,  # noqa: PLW1509 the child of a test that has no threads
        )
        self.running.append(process)
        return process

    def end(self, process: "subprocess.Popen[str]") -> Ran:
        """Wait for a command."""
        out, err = process.communicate(timeout=100)
        assert "Traceback" not in err, err
        return Ran(process.returncode, out, err)

    def run_process(self, *arguments: str, limit: Callable[[], None] | None = None, **environment: str) -> Ran:
        """Run a command to its end, in a process of its own: where that is what is tested."""
        return self.end(self.start(*arguments, limit=limit, **environment))

    def run(self, *arguments: str, **environment: str) -> Ran:
        """Run a command to its end in this process, which needs no second for an interpreter and its imports."""
        out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
            for name, value in {"COLUMNS": "200", **environment}.items():
                patch.setenv(name, value)
            code = main(arguments)
        return Ran(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))

    def kill(self, process: "subprocess.Popen[str]") -> None:
        """End a command as a power failure would."""
        process.send_signal(signal.SIGKILL)
        self.end(process)

    def rows(self, name: str, run: str = "run") -> list[int]:
        """List the rows of one of the run's files."""
        found: list[int] = pq.read_table(self.folder / "runs" / run / f"{name}.parquet").column("row").to_pylist()
        return found

    def accepted(self, source: str = "rows.parquet", run: str = "run") -> list[tuple[str, str]]:
        """List company and code of the accepted rows."""
        table = pq.read_table(self.folder / source, columns=["company", "Code"])
        keys = list(zip(table.column("company").to_pylist(), table.column("Code").to_pylist(), strict=True))
        return sorted((str(keys[row - 1][0]), keys[row - 1][1].strip()) for row in self.rows("accepted", run))


class Server:
    """A mock server in a process of its own."""

    def __init__(self, *options: str) -> None:
        """Start it on a port of its own choosing."""
        command = [sys.executable, "-m", "mock_server", "--port", "0", "--announce", "--die-with-stdin", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert self.process.stdout is not None
        self.url = str(orjson.loads(self.process.stdout.readline())["url"])
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=30)

    def reset(self) -> None:
        """Empty its books."""
        self.client.post("/_mock/reset").raise_for_status()

    def audit(self) -> Mapping[str, Any]:
        """Ask its ledger what was booked."""
        found: Mapping[str, Any] = self.client.get("/_mock/audit", params={"key": "Code"}).json()
        return found

    def booked(self) -> tuple[int, int]:
        """Count the rows its ledger holds, and those it holds more than once."""
        companies = self.audit()["companies"].values()
        return sum(company["rows"] for company in companies), sum(company["twice"] for company in companies)

    def wait_for(self, rows: int) -> None:
        """Look until so many rows are booked, and leave the processor to the two at work in between."""
        while self.booked()[0] < rows:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.005)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.communicate()

    def close(self) -> None:
        """End it, and what is open to it."""
        self.client.close()
        self.kill()


def to(server: Server, mode: str = "insert", *, per_call: int = 5) -> tuple[str, ...]:
    """Say where a push goes, and how."""
    rows = "1" if mode == "insert" else str(per_call)
    return ("--to", server.url, "--profile", "mock-unlimited", "--mode", mode, "--rows-per-call", rows)


PUSH = ("push", "rows.parquet", "--runs", "runs", "--run", "run", "--json")
RESUME = ("resume", "run", "--runs", "runs", "--json")

SLOW = """
companies = 3
[latency]
slots = 8
read_s = 0.01
insert = { call_s = 0.5 }
batch = { call_s = 2.0 }
xml = { call_s = 2.0 }
"""


@pytest.fixture
def bare_place(tmp_path: Path) -> Iterator[Place]:
    """Give an empty folder to run commands in; what still runs there at the end is stopped."""
    made = Place(tmp_path)
    yield made
    for process in made.running:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def place(bare_place: Place) -> Place:
    """Give a folder with a source of 120 customers over 3 companies."""
    write_sample(bare_place.folder / "rows.parquet", rows=120, companies=3)
    return bare_place


@pytest.fixture
def workplace(bare_place: Place) -> Path:
    """Give the folder that `saasload` runs in."""
    return bare_place.folder


@pytest.fixture
def saasload(bare_place: Place) -> Callable[..., Ran]:
    """Give a function that runs `saasload` with arguments in the workplace."""
    return bare_place.run


@pytest.fixture
def customers(workplace: Path) -> Path:
    """Give a sample of 300 customers over 3 companies."""
    path = workplace / "customers.parquet"
    write_sample(path, rows=300, companies=3)
    return path


class Servers:
    """Mock servers that serve one test after another, each with empty books."""

    def __init__(self, folder: Path) -> None:
        """Begin with none."""
        self._folder = folder
        self._made: dict[tuple[str, float], list[Server]] = {}

    def give(self, scenario: str, time_scale: float, taken: list[Server]) -> Server:
        """Give one that plays a scenario, by name or as TOML, and is not taken yet."""
        made = self._made.setdefault((scenario, time_scale), [])
        for server in made:
            if server not in taken and server.process.poll() is None:
                server.reset()
                return server
        made.append(Server("--scenario", self._named(scenario), "--time-scale", str(time_scale)))
        return made[-1]

    def _named(self, scenario: str) -> str:
        if "\n" not in scenario:
            return scenario
        path = self._folder / f"scenario-{sum(map(len, self._made.values()))}.toml"
        path.write_text(scenario)
        return str(path)

    def close(self) -> None:
        """End them all."""
        for server in (server for made in self._made.values() for server in made):
            server.close()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Keep servers for the whole session: to start one takes longer than many a test."""
    made = Servers(tmp_path_factory.mktemp("scenarios"))
    yield made
    made.close()


@pytest.fixture
def serve(servers: Servers) -> Callable[..., Server]:
    """Give a function that gives a mock server: calls of half a second, thirty times faster, unless told otherwise."""
    taken: list[Server] = []

    def give(scenario: str = SLOW, *, time_scale: float = 30.0) -> Server:
        taken.append(servers.give(scenario, time_scale, taken))
        return taken[-1]

    return give
