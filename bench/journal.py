"""What the journal costs: the same loads with it, and with one that keeps nothing."""

import random
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.machine import SAASLOAD, Server, Tell, module, push, run
from bench.tables import spread, table
from bench.zero import YARDSTICK, Command, Input, inputs, ready

PARALLEL = (10, 100)
WITH, WITHOUT = "with", "without"


def measure(folder: Path, *, rows: int, repeats: int, modes: Sequence[str], tell: Tell) -> str:
    """Run each mode with and without, and (a) beside them, in shuffled order; return the table."""
    lines = []
    with Server.mock("fast") as server:
        for mode in modes:
            count = {"insert": rows // 20, "xml": rows // 2}.get(mode, rows)
            made = inputs(folder, mode, count)
            lines += [_line(server, made, _Work(mode, count, parallel, repeats), tell) for parallel in PARALLEL]
    headings = ("mode", "rows/s with it", "without", "cost in %", "(a)", "with it, of (a)", "without, of (a)")
    return table(headings, lines)


def _contenders(parallel: int) -> dict[str, Command]:
    def engine(made: Input, url: str, mode: str) -> list[str]:
        return push(made.file, url, mode, "--parallel", parallel, "--runs", made.file.parent)

    def without(made: Input, url: str, mode: str) -> list[str]:
        return [*module("clients.no_journal"), *engine(made, url, mode)[len(SAASLOAD) :]]

    return {WITH: engine, WITHOUT: without, YARDSTICK: ready("same_transport", parallel)}


@dataclass(frozen=True, slots=True)
class _Work:
    mode: str
    rows: int
    parallel: int
    repeats: int


def _line(server: Server, made: Input, work: _Work, tell: Tell) -> list[str]:
    found: dict[str, list[float]] = defaultdict(list)
    rng = random.Random(1)
    contenders = _contenders(work.parallel)
    for repeat in range(work.repeats):
        for name in rng.sample(list(contenders), len(contenders)):
            server.reset()
            said = run(contenders[name](made, server.url, work.mode), made.file.parent).said
            if fault := server.holds_once(work.rows):
                message = f"{work.mode} {name}: {fault}"
                raise RuntimeError(message)
            found[name].append(work.rows / said["duration_s"])
        last = f"{found[WITH][-1]:,.0f} of {found[WITHOUT][-1]:,.0f} rows/s"
        tell(f"journal {work.mode} {work.parallel} {repeat + 1}/{work.repeats}: {last}")

    def ratio(one: str, other: str) -> float:
        return statistics.median(a / b for a, b in zip(found[one], found[other], strict=True))

    return [
        f"{work.mode}, {work.parallel} in flight",
        spread(found[WITH]),
        spread(found[WITHOUT]),
        f"{(1 - ratio(WITH, WITHOUT)) * 100:.0f}",
        spread(found[YARDSTICK]),
        f"{ratio(WITH, YARDSTICK):.2f}",
        f"{ratio(WITHOUT, YARDSTICK):.2f}",
    ]
