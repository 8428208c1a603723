"""How soon a run with many settled rows sends again, and in how much memory."""

import shutil
import time
from collections import defaultdict
from pathlib import Path

from bench.machine import SAASLOAD, Server, Tell, module, run
from bench.tables import spread, table

MODES = ("insert", "batch")


def measure(folder: Path, *, rows: int, repeats: int, tell: Tell) -> str:
    """Resume runs of five times `rows`, of which one row in ten thousand is unsent; return the table."""
    count = rows * 5
    file = folder / "rows.parquet"
    run(module("inputs", "sample", file, "--rows", count), folder)
    lines = []
    with Server.sink() as server:
        for mode in MODES:
            made = folder / f"made-{mode}"
            run(module("halfway", file, made, "--mode", mode, "--url", server.url), folder)
            found: dict[str, list[float]] = defaultdict(list)
            wrong = 0
            for repeat in range(repeats):
                server.reset()
                runs = folder / "runs"
                shutil.rmtree(runs, ignore_errors=True)
                shutil.copytree(made, runs)
                began = time.time()
                resumed = run([*SAASLOAD, "resume", "halfway", "--runs", str(runs), "--json", "-q"], folder)
                calls = runs / "halfway" / "calls.parquet"
                first_s = run(module("first_call", calls, began), folder).said["at"] - began
                found["first"].append(first_s)
                found["peak"].append(resumed.peak_rss_mb)
                found["whole"].append(resumed.wall_s)
                wrong += resumed.said["accepted"] != count or bool(server.holds_once(count // 10_000))
                tell(f"resume {mode} {repeat + 1}/{repeats}: {first_s:.2f} s, {resumed.peak_rss_mb:.0f} MB")
            lines.append([
                f"{count:,}, by {mode}",
                spread(found["first"], ".2f"),
                spread(found["peak"]),
                spread(found["whole"], ".1f"),
                f"{wrong} wrong" if wrong else "all once",
            ])  # fmt: skip
    headings = ("rows settled", "s to the first call", "peak MB", "s to the end, files written", "rows sent")
    return table(headings, lines)
