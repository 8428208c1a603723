"""Programs on cores of their own, and what they used. Standard library only.

What a child's `ru_maxrss` says begins with the size of its parent, so this process must stay small.
"""

import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parent.parent
SAASLOAD = (sys.executable, "-c", "import sys; from saasload.cli import program; sys.exit(program())")
TOKEN = "mock-token"  # noqa: S105 - it opens nothing but the mock

Tell = Callable[[str], None]
"""Takes a line for whoever waits."""

_CORES = sorted(os.sched_getaffinity(0))
CLIENT_CORE = _CORES[0] if len(_CORES) > 1 else None
SERVER_CORE = _CORES[1] if len(_CORES) > 1 else None
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def describe() -> str:
    """Say what is measured on."""
    cpu = platform.machine()
    with contextlib.suppress(OSError, IndexError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    pinned = "nothing pinned: one core only"
    if CLIENT_CORE is not None:
        pinned = f"client pinned to core {CLIENT_CORE}, server to core {SERVER_CORE}"
    return (
        f"{cpu}, {len(_CORES)} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}; "
        f"{pinned}; load average at the start {os.getloadavg()[0]:.1f}"
    )


@contextlib.contextmanager
def _on(core: int | None) -> Iterator[None]:
    """Let what is started inside inherit one core."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _environment() -> dict[str, str]:
    # An installed program is compiled; a checkout is only where Python may keep what it compiled.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPATH": str(ROOT), "NO_PROXY": "*", "SAASLOAD_TOKEN": TOKEN}


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program used from its start to its end, and the JSON it printed."""

    wall_s: float
    cpu_s: float
    peak_rss_mb: float
    said: dict[str, Any]


def run(command: Sequence[str], folder: Path) -> Finished:
    """Run a program on the client's core; RuntimeError with its words where it fails."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        with _on(CLIENT_CORE):
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=folder, env=_environment()
            )
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        text = out.read().decode()
        if process.returncode:
            message = (
                f"{' '.join(command[:8])}: exit {process.returncode}: {text[-400:]}{errors.read().decode()[-2000:]}"
            )
            raise RuntimeError(message)
    return Finished(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0, json.loads(text or "{}"))


def module(name: str, *arguments: object) -> list[str]:
    """Make the command that runs a module of this package."""
    return [sys.executable, "-m", f"bench.{name}", *map(str, arguments)]


def push(file: Path, url: str, mode: str, *options: object) -> list[str]:
    """Make the command of a load."""
    fixed = ("--to", url, "--profile", "mock-unlimited", "--mode", mode, "--json", "-q")
    return [*SAASLOAD, "push", str(file), *fixed, *map(str, options)]


@dataclass(slots=True)
class Server:
    """A server in a process of its own; used as a context, it ends with it."""

    name: str
    url: str
    process: subprocess.Popen[bytes]

    @classmethod
    def mock(cls, scenario: str, *options: str) -> Self:
        """Start the mock server."""
        fixed = ("-m", "mock_server", "--scenario", scenario, "--port", "0", "--announce", "--die-with-stdin")
        return cls._start(f"mock ({scenario})", [sys.executable, *fixed, *options])

    @classmethod
    def sink(cls) -> Self:
        """Start the sink: it answers in the right shape and does as little else as can be."""
        return cls._start("sink", module("sink"))

    @classmethod
    def _start(cls, name: str, command: Sequence[str]) -> Self:
        with _on(SERVER_CORE):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=_environment()
            )
        line = process.stdout.readline() if process.stdout is not None else b""
        if not line:
            message = f"{name}: did not start"
            raise RuntimeError(message)
        return cls(name, json.loads(line)["url"], process)

    def __enter__(self) -> Self:
        """Serve until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def cpu_s(self) -> float:
        """Read the CPU it has used so far."""
        return cpu_of(self.process.pid)

    def reset(self) -> None:
        """Empty its books."""
        self._ask("/_mock/reset", b"")

    def holds_once(self, rows: int) -> str:
        """Say what is wrong with its books, "" where they hold so many rows, each once."""
        companies = self._ask("/_mock/audit?key=Code")["companies"].values()
        stored, twice = (sum(company[name] for company in companies) for name in ("rows", "twice"))
        return "" if stored == rows and not twice else f"{stored:,} of {rows:,} rows stored, {twice:,} twice"

    def calls(self) -> int:
        """Say how many calls it has heard."""
        return int(self._ask("/_mock/audit?key=Code")["calls"])

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        with _OPENER.open(self.url + path, data=body, timeout=60) as reply:
            return json.loads(reply.read())


def cpu_of(pid: int) -> float:
    """Read the CPU seconds of a process, in steps of the system's clock tick."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
