"""Measure: `python -m bench --help`, from the root of the repository."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench import idle, journal, memory, peers, resume, zero
from bench.machine import ROOT, Tell, describe, module, run
from bench.tables import table, write_between

SECTIONS = ("zero", "journal", "peers", "memory", "resume", "policy", "idle")
MODES = ("insert", "batch", "xml")
PAGE = ROOT / "docs" / "performance.md"


def main() -> int:
    """Run the sections asked for, and print or write their tables."""
    options = _options()
    started = time.monotonic()

    def tell(line: str) -> None:
        if not options.quiet:
            print(f"[{time.monotonic() - started:5.0f} s] {line}", file=sys.stderr, flush=True)

    print(describe(), flush=True)
    for name in options.only or SECTIONS:
        with tempfile.TemporaryDirectory(prefix="saasload-bench-") as folder:
            text = _section(name, Path(folder), options, tell)
        text = f"{text}\n\n{describe()}. `{_command(name, options)}`, {time.strftime('%Y-%m-%d')}."
        print(f"\n## {name}\n\n{text}", flush=True)
        if options.write:
            write_between(PAGE, name, text)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure saasload on this machine.")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="a section; repeatable (default: all)")
    parser.add_argument(
        "--mode", action="append", choices=MODES, help="a mode of sections zero and journal; repeatable (default: all)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="runs of each contender (default: %(default)s)")
    parser.add_argument(
        "--rows", type=int, default=200_000,
        help="rows by batch; half of them by xml, a twentieth by insert, half and five times as many for memory, "
        "five times as many for resume (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--quiet", action="store_true", help="tables only")
    return parser.parse_args()


def _command(name: str, options: argparse.Namespace) -> str:
    modes = "".join(f" --mode {mode}" for mode in options.mode or ()) if name in {"zero", "journal"} else ""
    return f"python -m bench --only {name}{modes} --repeats {options.repeats} --rows {options.rows}"


def _section(name: str, folder: Path, options: argparse.Namespace, tell: Tell) -> str:
    match name:
        case "zero" | "journal":
            measure = zero.measure if name == "zero" else journal.measure
            return measure(folder, rows=options.rows, repeats=options.repeats, modes=options.mode or MODES, tell=tell)
        case "peers":
            return peers.measure(folder, repeats=options.repeats, tell=tell)
        case "memory":
            return memory.measure(folder, rows=options.rows, repeats=options.repeats, tell=tell)
        case "resume":
            return resume.measure(folder, rows=options.rows, repeats=options.repeats, tell=tell)
        case "policy":
            figures = run(module("policy"), folder).said
            lines = [[what, *(f"{value:.2f}" for value in values)] for what, values in figures.items()]
            return table(("decision", "us CPU, median of 7", "least", "most"), lines)
        case _:
            return idle.measure(folder, tell=tell)


if __name__ == "__main__":
    sys.exit(main())
