"""What a person sees of an experiment in a terminal: a chart, a table, and one sentence."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from saasload.experiments.curve import CurveResult, Level, ModeCurve
from saasload.experiments.loads import Ran
from saasload.experiments.reproduce import Cell, Reproduction
from saasload.experiments.svg import nice_top

WIDTH, HEIGHT = 64, 14
SIGNS = ("●", "▲", "■")
COLOURS = ("blue", "yellow", "green")
_BLANK = (" ", "")
_CELL_HEADS = (
    "test",
    "calls",
    "published\nseconds",
    "reproduced\nseconds",
    "published\nrows/h",
    "reproduced\nrows/h",
    "deviation",
)


def chart_lines(curves: Sequence[ModeCurve]) -> list[Text]:
    """Draw rows an hour over parallelism in letters: a sign a mode, dots for the fitted curve."""
    levels = sorted({level.parallel for curve in curves for level in curve.levels})
    top = nice_top(max(level.steady.value for curve in curves for level in curve.levels))
    span = math.log2(levels[-1] / levels[0]) or 1.0
    grid = [[_BLANK] * WIDTH for _ in range(HEIGHT)]

    def put(parallel: float, value: float, sign: str, colour: str) -> None:
        column = round(math.log2(parallel / levels[0]) / span * (WIDTH - 1))
        row = HEIGHT - 1 - round(min(1.0, value / top) * (HEIGHT - 1))
        if sign != "·" or grid[row][column] == _BLANK:
            grid[row][column] = (sign, colour)

    for place, curve in enumerate(curves):
        for level in curve.levels:
            put(level.parallel, level.steady.value, SIGNS[place % 3], COLOURS[place % 3])
    for place, curve in enumerate(curves):
        for column in range(WIDTH):
            parallel = levels[0] * 2 ** (span * column / (WIDTH - 1))
            put(parallel, curve.advice.fits.best.curve.at(parallel), "·", COLOURS[place % 3])
    lines = [_line(f"{top * (HEIGHT - 1 - row) / (HEIGHT - 1):>11,.0f} ┤", cells) for row, cells in enumerate(grid)]
    return [*lines, Text(" " * 12 + "└" + "─" * WIDTH), Text(" " * 13 + _ticks(levels, span)), _legend(curves)]


def _line(head: str, cells: Sequence[tuple[str, str]]) -> Text:
    text = Text(head)
    for sign, colour in cells:
        text.append(sign, style=colour)
    return text


def _ticks(levels: Sequence[int], span: float) -> str:
    line = [" "] * (WIDTH + 8)
    free = 0
    for level in levels:
        column = round(math.log2(level / levels[0]) / span * (WIDTH - 1))
        if column >= free:
            line[column : column + len(str(level))] = list(str(level))
            free = column + len(str(level)) + 1
    return "".join(line).rstrip()


def _legend(curves: Sequence[ModeCurve]) -> Text:
    text = Text(" " * 13)
    for place, curve in enumerate(curves):
        text.append(f"{SIGNS[place % 3]} {curve.mode}  ", style=COLOURS[place % 3])
    text.append("rows an hour over calls in parallel; dots: the fitted curve", style="dim")
    return text


def show_curve(console: Console, result: CurveResult) -> None:
    """Show a curve's chart, tables and advice."""
    _show(console, result.curves)


def _show(console: Console, curves: Sequence[ModeCurve]) -> None:
    for line in chart_lines(curves):
        console.print(line, soft_wrap=True)
    console.print()
    for curve in curves:
        console.print(_levels(curve))
        for words in advice_lines(curve):
            console.print(words, soft_wrap=True, markup=False, highlight=False)
        console.print()


def _levels(curve: ModeCurve) -> Table:
    table = Table(box=None, pad_edge=False)
    timed = any(level.client is not None for level in curve.levels)
    heads = (curve.mode, "rows/h", "± 95 %", "calls", "429", "p50 s", "p95 s", "p99 s", "p99 due")
    for head in (*heads, *(("CPU", "lag ms") if timed else ())):
        table.add_column(head, justify="right", no_wrap=True)
    for level in curve.levels:
        table.add_row(*_cells_of(level))
    return table


def _cells_of(level: Level) -> list[str]:
    steady, response = level.steady, level.response
    times = (response.p50, response.p95, response.p99, level.from_due.p99)
    spread = (steady.high - steady.low) / 2.0 / max(steady.value, 1e-9)
    cells = [f"{level.parallel}", f"{steady.value:,.0f}", f"{spread:.1%}", f"{level.calls:,}", f"{level.refused:,}"]
    cells += [f"{seconds:.3g}" for seconds in times]
    if level.client is not None:
        cells += [f"{level.client.cpu_share:.0%}", f"{level.client.lag_p99_ms:.1f}"]
    return cells


def advice_lines(curve: ModeCurve) -> list[str]:
    """Put one mode's advice into a few lines."""
    advice, fits = curve.advice, curve.advice.fits
    ahead = fits.other.aicc - fits.best.aicc
    lines = [
        f"{curve.mode}: use --parallel {advice.recommended}: {advice.why}",
        (
            f"peak at {advice.peak.value:.2f} ({advice.peak.low:.2f} to {advice.peak.high:.2f}), 90 % of it at "
            f"{advice.ninety.value:.2f} ({advice.ninety.low:.2f} to {advice.ninety.high:.2f}); best fit "
            f"{fits.best.curve.name}, {fits.best.error:.1%} off, AICc smaller by {ahead:,.0f}"
        ),
    ]
    busy = [level.parallel for level in curve.levels if level.client is not None and level.client.is_bottleneck]
    if busy:
        levels = ", ".join(str(level) for level in busy)
        lines.append(f"beware: with {levels} parallel this loader was the bottleneck, and not the target")
    refused = sum(level.refused for level in curve.levels)
    if refused:
        lines.append(f"beware: {refused:,} calls were refused; a limit shaped this curve, not capacity alone")
    return lines


def show_reproduction(console: Console, result: Reproduction) -> None:
    """Show the published table beside the reproduced one, then the curve."""
    table = Table(box=None, pad_edge=False)
    for head in _CELL_HEADS:
        table.add_column(head, justify="left" if head == "test" else "right", no_wrap=True)
    for cell in result.cells:
        table.add_row(*_cell(cell))
    console.print(table)
    console.print()
    _show(console, [result.curve])
    for line in fact_lines(result):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _cell(cell: Cell) -> list[str]:
    test = cell.test
    published = "unknown"
    if test.published_rows_per_hour is not None:
        published = " ".join(f"{seconds:g}" for seconds in test.published_s)
    elif test.published_s:
        published = f"{min(test.published_s):g}-{max(test.published_s):g}"
    rate = "unknown" if not cell.known else ""
    if test.published_rows_per_hour is not None:
        rate = f"{test.published_rows_per_hour:,.0f}"
    deviation = "filled in" if cell.deviation is None else f"{cell.deviation:+.1%}{'' if cell.fits else ' !'}"
    runs = " ".join(f"{seconds:.0f}" for seconds in cell.runs_s)
    return [test.name, f"{cell.calls:,}", published, runs, rate, f"{cell.rows_per_hour:,.0f}", deviation]


def fact_lines(result: Reproduction) -> list[str]:
    """Say in lines what else was published, and whether it comes out."""
    knee = result.curve.advice.knee
    lines = [
        f"knee at {knee.value:.2f} ({knee.low:.2f} to {knee.high:.2f}); published: between 7 and 10",
        f"32 and 100 parallel are {'' if result.slower_beyond else 'not '}slower than 10; published: slower",
    ]
    if result.agreement is not None:
        agreement = result.agreement
        lines.append(
            f"EB10 on a real clock, time x{agreement.time_scale:g}: {agreement.real_s:.1f} s against "
            f"{agreement.virtual_s:.1f} s on the virtual one ({agreement.deviation:+.1%})"
        )
    lines.append("all as it should be" if result.fits else f"not as it should be: {', '.join(result.misses)}")
    return lines


class Progressing:
    """Counts runs on stderr: a bar on a terminal, elsewhere nothing until the end."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        """Prepare for so many runs."""
        self._total = total
        self._made = 0
        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            BarColumn(), TextColumn("{task.completed} of {task.total} runs{task.description}"),
            console=self._console, transient=True, disable=quiet or not self._console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        """Begin to show."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        self._bar.stop()

    def done(self, ran: Ran) -> None:
        """Count one run."""
        self._made += 1
        words = f"; {ran.load.mode} with {ran.load.parallel}: {ran.rows_per_hour:,.0f} rows an hour"
        self._bar.update(self._task, advance=1, description=words)

    def interrupted(self) -> str:
        """Say how far it got."""
        return f"interrupted after {self._made} of {self._total} runs; no result was written"


def finish(show: Callable[[Console], None], paths: Sequence[Path], *, quiet: bool) -> None:
    """Show a result and name its files, on stderr."""
    if quiet:
        return
    console = Console(stderr=True, highlight=False)
    show(console)
    console.print("files: " + ", ".join(str(path) for path in paths), soft_wrap=True, markup=False)
