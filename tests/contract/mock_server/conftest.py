"""The mock as a child process, on a real socket."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

HEADERS = {"Authorization": "Bearer mock-token"}
COMMAND = (sys.executable, "-m", "mock_server")

Process = subprocess.Popen[bytes]


@contextmanager
def serve(scenario: str | Path = "fast", *more: str) -> Iterator[tuple[httpx.Client, Process]]:
    """Serve a scenario on a free port; the process ends with its standard input."""
    command = [*COMMAND, "--port", "0", "--announce", "--die-with-stdin", "--scenario", str(scenario), *more]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        announced = json.loads(process.stdout.readline())
        assert announced["pid"] == process.pid
        try:
            with httpx.Client(base_url=announced["url"], headers=HEADERS, trust_env=False) as client:
                yield client, process
        finally:
            process.stdin.close()
            process.wait(10)


@pytest.fixture
def served() -> Callable[..., AbstractContextManager[tuple[httpx.Client, Process]]]:
    """Serve a scenario for as long as a block lasts."""
    return serve


@pytest.fixture
def stderr_of() -> Callable[[Process], bytes]:
    """End a process and return what it said on its standard error."""

    def end(process: Process) -> bytes:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        return process.stderr.read()

    return end


@pytest.fixture
def url() -> Iterator[str]:
    """Serve the scenario without latency and limits, and return its address."""
    with serve("fast") as (client, _):
        yield str(client.base_url).rstrip("/")


@pytest.fixture
def booked(url: str) -> Callable[..., Any]:
    """Ask the audit of the server at `url`."""

    def ask(company: int = 1001, **query: str) -> Any:
        found = httpx.get(f"{url}/_mock/audit", params=query, trust_env=False).json()
        return found["companies"].get(str(company))

    return ask
