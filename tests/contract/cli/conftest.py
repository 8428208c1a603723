"""The command line as a user runs it: processes, sockets, files."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import orjson
import pytest

from saasload.sample import write_sample


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left: its exit code and what it said."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, object]:
        """The report it printed with --json."""
        found: dict[str, object] = orjson.loads(self.out)
        return found


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """Give a folder to run commands in."""
    return tmp_path


@pytest.fixture
def saasload(workplace: Path) -> Callable[..., Ran]:
    """Give a function that runs `saasload` with arguments in the workplace."""

    def run(*arguments: str, **environment: str) -> Ran:
        command = [sys.executable, "-m", "saasload", *arguments]
        done = subprocess.run(
            command,
            cwd=workplace,
            env={**os.environ, "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@dataclass(frozen=True, slots=True)
class Server:
    """A mock server in a process of its own."""

    url: str
    process: "subprocess.Popen[bytes]"

    def audit(self) -> dict[str, object]:
        """Ask its ledger what was booked."""
        found: dict[str, object] = httpx.get(f"{self.url}/_mock/audit", params={"key": "Code"}).json()
        return found

    def booked(self) -> tuple[int, int]:
        """Count the rows its ledger holds, and those it holds more than once."""
        companies = httpx.get(f"{self.url}/_mock/audit", params={"key": "Code"}).json()["companies"].values()
        return sum(company["rows"] for company in companies), sum(company["twice"] for company in companies)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Give a function that starts a mock server with options, on a port of its own choosing."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> Server:
        command = [sys.executable, "-m", "mock_server", "--port", "0", "--announce", "--die-with-stdin", *options]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        return Server(orjson.loads(process.stdout.readline())["url"], process)

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def customers(workplace: Path) -> Path:
    """Give a sample of 300 customers over 3 companies."""
    path = workplace / "customers.parquet"
    write_sample(path, rows=300, companies=3)
    return path
