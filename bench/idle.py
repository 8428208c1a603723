"""What a load costs while it waits for a limit: it should sleep."""

import subprocess
import time
from pathlib import Path

from bench.machine import ROOT, SAASLOAD, Server, Tell, cpu_of, module, run
from bench.tables import table

COMPANIES, TIME_SCALE, WATCHED_S = 100, 4.0, 6.0


def measure(folder: Path, *, tell: Tell) -> str:
    """Load 61 rows into each company, where the limit is 60 calls a minute; watch the CPU between."""
    lines = []
    file = folder / "idle.parquet"
    run(module("inputs", "sample", file, "--rows", 61 * COMPANIES), folder)
    for parallel in (10, 100):
        with Server.mock("exact-limits", "--time-scale", str(TIME_SCALE)) as server:
            options = ("--to", server.url, "--mode", "insert", "--parallel", str(parallel), "--runs", str(folder), "-q")
            process = subprocess.Popen([*SAASLOAD, "push", str(file), *options], cwd=ROOT, stdout=subprocess.DEVNULL)
            used = _while_waiting(process, server)
            code = process.wait()
            fault = server.holds_once(61 * COMPANIES)
        lines.append([f"{parallel}", f"{used * 1000 / WATCHED_S:.1f}", f"{code}", fault or "all once"])
        tell(f"idle, {parallel} parallel: {used * 1000 / WATCHED_S:.1f} ms CPU a second, exit {code} {fault}")
    return table(("--parallel", "CPU ms a second while 100 companies wait", "exit", "rows stored"), lines)


def _while_waiting(process: subprocess.Popen[bytes], server: Server) -> float:
    """Find a stretch in which the server hears nothing, and return the client's CPU in it."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        heard = server.calls()
        time.sleep(0.5)
        if heard > COMPANIES and server.calls() == heard:
            before = cpu_of(process.pid)
            time.sleep(WATCHED_S)
            used = cpu_of(process.pid) - before
            if server.calls() == heard:
                return used
    message = "idle: the load never waited"
    raise RuntimeError(message)
