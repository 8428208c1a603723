"""The peers' own piece of work: 10,000 rows over 100 uneven companies, 8 slots, one call at a time in a company."""

import random
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from bench.machine import Server, Tell, module, push, run
from bench.tables import spread, table

PUBLISHED = (
    ("requests, 10 threads", 5_000, "688 (687-690)", 1.0),
    ("httpx, Semaphore(10)", 5_000, "649 (648-651)", 1.0),
    ("aiohttp, Semaphore(10)", 5_000, "684 (670-685)", 1.0),
    ("aiohttp, Semaphore(100)", 5_000, "674 (671-676)", 1.0),
    ("Node undici, Pool(10)", 5_000, "705 (704-705)", 1.0),
    ("dlt, batch_size 1, 20 workers", 5_000, "609 (605-612)", 1.0),
    ("singer-sdk, RecordSink", 500, "74 (73-74)", 1.0),
    ("drt, record mode, 10 threads", 5_000, "500 (491-500)", 1.0),
    ("aiohttp, lists of 250, Semaphore(10)", 10_000, "7,034 (6,855-7,171)", 94.3),
    ("dlt, batch_size 250, one table", 10_000, "1,546 (1,542-1,561)", 3.1),
    ("dlt, batch_size 250, a table per company", 10_000, "3,844 (3,832-3,987)", 94.3),
    ("singer-sdk, BatchSink(250), a stream per company", 10_000, "3,263 (3,131-3,293)", 94.3),
    ("drt, batch mode, 10 threads", 10_000, "1,743 (1,734-1,828)", 94.3),
)
"""Peer, rows, rows/s with start-up, rows a call: measured on another occasion, by the same rules."""

PUBLISHED_ORDER = (
    ("requests, 10 threads", 2_000, 627, 103),
    ("aiohttp, Semaphore(10)", 2_000, 618, 103),
    ("aiohttp, Semaphore(100)", 2_000, 576, 219),
    ("Node undici, Pool(10)", 2_000, 657, 104),
    ("dlt, batch_size 1, 20 workers", 2_000, 489, 411),
    ("drt, record mode, 10 threads", 2_000, 279, 343),
    ("aiohttp, lists of 250, Semaphore(10)", 10_000, 7_060, 6_803),
    ("dlt, batch_size 250, one table", 10_000, 1_525, 3_895),
)
"""Peer, rows, rows/s of a mixed and of a sorted file: measured on another occasion."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One piece of work for one loader."""

    who: str
    mode: str
    rows: int
    order: str
    parallel: int

    def command(self, folder: Path, url: str) -> list[str]:
        """Make its command."""
        file = folder / f"{self.order}-{self.rows}.parquet"
        if self.who == "saasload":
            return push(file, url, self.mode, "--parallel", self.parallel, "--runs", folder)
        return module("clients.requests_threads", url, self.mode, file, "--parallel", self.parallel)


ENTRIES = (
    *(
        Entry("saasload", mode, rows, order, parallel)
        for mode, rows in (("insert", 2_000), ("insert", 5_000), ("insert", 10_000), ("batch", 10_000))
        for order in ("mixed", "sorted")
        for parallel in ((10,) if rows == 2_000 else (10, 16))
    ),
    Entry("requests", "insert", 5_000, "mixed", 10),
    Entry("requests", "insert", 2_000, "mixed", 10),
    Entry("requests", "insert", 2_000, "sorted", 10),
)


def measure(folder: Path, *, repeats: int, tell: Tell) -> str:
    """Run the work in shuffled order, `repeats` times; return the tables."""
    run(module("inputs", "uneven", folder), folder)
    walls: dict[Entry, list[float]] = defaultdict(list)
    cpu: dict[Entry, list[float]] = defaultdict(list)
    peak: dict[Entry, list[float]] = defaultdict(list)
    calls: dict[Entry, int] = {}
    wrong: dict[Entry, str] = {}
    rng = random.Random(1)
    with Server.mock("shared-slots") as server:
        for repeat in range(repeats):
            for entry in rng.sample(ENTRIES, len(ENTRIES)):
                server.reset()
                finished = run(entry.command(folder, server.url), folder)
                fault = server.holds_once(entry.rows)
                if fault:
                    wrong[entry] = fault
                walls[entry].append(finished.wall_s)
                cpu[entry].append(finished.cpu_s * 1000 / entry.rows)
                peak[entry].append(finished.peak_rss_mb)
                calls[entry] = finished.said["calls"]
                tell(f"peers {repeat + 1}/{repeats} {entry}: {entry.rows / finished.wall_s:,.0f} rows/s {fault}")
    lines = [
        [
            f"{entry.who}, {entry.mode}, {entry.order} file, {entry.parallel} in flight",
            f"{entry.rows:,}",
            spread([entry.rows / wall for wall in walls[entry]]),
            spread(walls[entry], ".2f"),
            f"{statistics.median(cpu[entry]):.2f}",
            f"{statistics.median(peak[entry]):.0f}",
            f"{calls[entry]:,}",
            f"{entry.rows / calls[entry]:.1f}",
            wrong.get(entry, "all once"),
        ]
        for entry in ENTRIES
    ]
    headings = (
        "measured now", "rows", "rows/s, start-up included", "wall s", "CPU ms/row", "peak MB", "calls", "rows/call",
        "rows stored",
    )  # fmt: skip
    published = [[who, f"{rows:,}", rate, f"{each:.1f}"] for who, rows, rate, each in PUBLISHED]
    orders = [[who, f"{rows:,}", f"{mixed:,}", f"{in_order:,}"] for who, rows, mixed, in_order in PUBLISHED_ORDER]
    about = (
        "10,000 rows over 100 companies of 20 to 415 rows; the server has 8 slots for all, a call holds one for 10 ms "
        "and 0.5 ms a row, one call at a time in a company. Its ceiling is 762 rows/s for single POSTs and about "
        "13,200 for batches. Start-up of the process is included."
    )
    earlier = (
        "The peers, as published in an earlier study of the same work, each set up as its own documentation says: "
        "measured on another occasion, so compare orders of magnitude. `requests` stands in both tables."
    )
    by_order = "The same, by the order of the file (singles 2,000 rows, batches 10,000; one run each):"
    tables = (
        table(headings, lines),
        table(("measured earlier", "rows", "rows/s, start-up included", "rows/call"), published),
        table(("measured earlier", "rows", "rows/s, mixed", "rows/s, sorted"), orders),
    )
    return "\n\n".join((about, tables[0], earlier, tables[1], by_order, tables[2]))
