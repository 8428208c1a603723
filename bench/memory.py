"""Peak memory of loads of two sizes, and how fast rows are spooled."""

from collections import defaultdict
from pathlib import Path

from bench.machine import Server, Tell, module, push, run
from bench.tables import spread, table


def measure(folder: Path, *, rows: int, repeats: int, tell: Tell) -> str:
    """Load and spool half and five times `rows`; return the table."""
    lines = []
    with Server.sink() as server:
        for count in (rows // 2, rows * 5):
            file = folder / f"rows-{count}.parquet"
            if not file.exists():
                run(module("inputs", "sample", file, "--rows", count), folder)
            found: dict[str, list[float]] = defaultdict(list)
            wrong = 0
            for repeat in range(repeats):
                server.reset()
                load = run(push(file, server.url, "batch", "--runs", folder / "runs"), folder)
                spool = run(module("spool", file, folder / "spool.arrow"), folder)
                found["peak"].append(load.peak_rss_mb)
                found["rate"].append(count / load.said["duration_s"])
                found["spool_peak"].append(spool.peak_rss_mb)
                found["written"].append(count / spool.said["write_s"])
                found["read"].append(count / spool.said["read_s"])
                found["mb"].append(spool.said["bytes"] / 2**20)
                fault = server.holds_once(count)
                wrong += bool(fault)
                tell(f"memory {count:,} rows {repeat + 1}/{repeats}: {load.peak_rss_mb:.0f} MB {fault}")
            names = ("peak", "rate", "written", "read", "spool_peak", "mb")
            lines.append(
                [f"{count:,}", *(spread(found[name]) for name in names), f"{wrong} wrong" if wrong else "all once"]
            )
    headings = (
        "rows, 100 companies", "peak MB of a batch load", "its rows/s", "rows/s spooled", "rows/s read back",
        "peak MB of spooling alone", "spool MB", "rows sent",
    )  # fmt: skip
    return table(headings, lines)
