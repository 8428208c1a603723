"""saasload beside other ways to send the same rows, against a server that takes no time of its own."""

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.machine import Finished, Server, Tell, module, push, run
from bench.tables import spread, table

YARDSTICK = "(a) same transport, ready-made bodies, 10 in flight"
"""What the others are set against, within each repeat."""


@dataclass(frozen=True, slots=True)
class Input:
    """The same rows as a file, and as ready-made requests."""

    file: Path
    ready: Path
    one_row: Path


Command = Callable[[Input, str, str], list[str]]


def _engine(parallel: int) -> Command:
    return lambda made, url, mode: push(made.file, url, mode, "--parallel", parallel, "--runs", made.file.parent)


def ready(name: str, parallel: int) -> Command:
    """Make the command of a client that sends ready-made requests."""
    return lambda made, url, mode: module(f"clients.{name}", url, mode, made.ready, "--parallel", parallel)


def _plain(name: str) -> Command:
    return lambda made, url, mode: module(f"clients.{name}", url, mode, made.file)


CONTENDERS: Mapping[str, Command] = {
    "saasload, --parallel 10": _engine(10),
    "saasload, --parallel 100": _engine(100),
    YARDSTICK: ready("same_transport", 10),
    "(a) with 100 in flight": ready("same_transport", 100),
    "(b) bare sockets, ready-made bytes, 10 connections": ready("raw_socket", 10),
    "(c) requests, 10 threads": _plain("requests_threads"),
    "(c) httpx, gather and Semaphore(10)": _plain("httpx_gather"),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one contender; CPU in microseconds a row, the client's without its start-up."""

    rate: float
    whole_rate: float
    client_us: float
    server_us: float
    peak_mb: float


def measure(folder: Path, *, rows: int, repeats: int, modes: Sequence[str], tell: Tell) -> str:
    """Run all contenders in shuffled order, `repeats` times against each server; return the tables."""
    about = (
        "Rows/s: median (lowest-highest), from the first byte of input read to the last row settled, without the "
        "start of the process; *with start-up* counts that too. *of (a)* is the ratio within a repeat, then the "
        "median: of rows/s, and of CPU turned round (above 1 = less CPU than (a)). CPU is user and system time of "
        "the whole process, in microseconds a row; saasload's without what a load of one row costs. After each run "
        "the server's books were compared with the file."
    )
    parts = [about]
    for make in (_mock, Server.sink):
        for mode in modes:
            count = {"insert": rows // 20, "xml": rows // 2}.get(mode, rows)
            made = inputs(folder, mode, count)
            with make() as server:
                found, wrong, start_s = _repeats(server, made, mode, count, repeats, tell)
            parts.append(f"**{mode}, {count:,} rows, {server.name}** (start-up of saasload: {start_s:.2f} s CPU)")
            parts.append(_table(found, wrong))
    return "\n\n".join(parts)


def _mock() -> Server:
    return Server.mock("fast")


def inputs(folder: Path, mode: str, rows: int) -> Input:
    """Make what a mode's loads need, if it is not there."""
    made = Input(folder / f"rows-{rows}.parquet", folder / f"ready-{mode}-{rows}.json", folder / "rows-1.parquet")
    for file, count in ((made.file, rows), (made.one_row, 1)):
        if not file.exists():
            run(module("inputs", "sample", file, "--rows", count), folder)
    if not made.ready.exists():
        run(module("inputs", "ready", made.ready, "--file", made.file, "--mode", mode), folder)
    return made


Found = Mapping[str, list[Sample]]


def _repeats(
    server: Server, made: Input, mode: str, rows: int, repeats: int, tell: Tell
) -> tuple[Found, Mapping[str, list[str]], float]:
    found: dict[str, list[Sample]] = defaultdict(list)
    wrong: dict[str, list[str]] = defaultdict(list)
    rng = random.Random(1)
    starts = []
    for _ in range(3):
        server.reset()
        starts.append(run(_engine(10)(_only_one(made), server.url, mode), made.file.parent).cpu_s)
    start_s = statistics.median(starts)
    for repeat in range(repeats):
        names = list(CONTENDERS)
        rng.shuffle(names)
        for name in names:
            server.reset()
            before = server.cpu_s()
            finished = run(CONTENDERS[name](made, server.url, mode), made.file.parent)
            server_s = server.cpu_s() - before
            fault = server.holds_once(rows)
            if fault:
                wrong[name].append(fault)
            sample = _sample(finished, rows, server_s, start_s)
            found[name].append(sample)
            tell(
                f"{server.name} {mode} {repeat + 1}/{repeats} {name}: {sample.rate:,.0f} rows/s, "
                f"{sample.client_us:,.1f} us a row{', WRONG: ' + fault if fault else ''}"
            )
    return found, wrong, start_s


def _only_one(made: Input) -> Input:
    return Input(made.one_row, made.ready, made.one_row)


def _sample(finished: Finished, rows: int, server_s: float, start_s: float) -> Sample:
    said = finished.said
    is_engine = "accepted" in said
    cpu_s = max(0.0, finished.cpu_s - start_s) if is_engine else said["cpu_s"]
    return Sample(
        rows / said["duration_s"],
        rows / finished.wall_s,
        cpu_s * 1e6 / rows,
        server_s * 1e6 / rows,
        finished.peak_rss_mb,
    )


def _table(found: Found, wrong: Mapping[str, list[str]]) -> str:
    base = found[YARDSTICK]
    lines = []
    for name in CONTENDERS:
        samples = found[name]
        rate = statistics.median(one.rate / other.rate for one, other in zip(samples, base, strict=True))
        pairs = zip(samples, base, strict=True)
        work = statistics.median(other.client_us / max(one.client_us, 0.01) for one, other in pairs)
        lines.append([
            name,
            spread([one.rate for one in samples]),
            f"{rate:.2f}",
            spread([one.client_us for one in samples], ",.1f"),
            f"{work:.2f}",
            f"{statistics.median(one.server_us for one in samples):,.1f}",
            f"{statistics.median(one.whole_rate for one in samples):,.0f}",
            f"{statistics.median(one.peak_mb for one in samples):,.0f}",
            f"{len(wrong[name])}: {wrong[name][0]}" if wrong.get(name) else "all once",
        ])  # fmt: skip
    headings = (
        "client",
        "rows/s",
        "of (a)",
        "client CPU us/row",
        "CPU of (a)",
        "server CPU us/row",
        "with start-up",
        "peak MB",
        "rows stored",
    )
    return table(headings, lines)
