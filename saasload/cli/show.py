"""What a person sees of a load: progress while it runs, then a summary. All on stderr."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from saasload.cli.options import DEFAULT_RUNS
from saasload.cli.words import counted
from saasload.load import Live
from saasload.model import RowStatus
from saasload.run.files import FILES
from saasload.run.report import ExitCode, Group, Report

if TYPE_CHECKING:
    from saasload.plan import Plan

REFRESH_S = 0.2
LINE_EVERY_S = 5.0
SHORTEST_S = 1.0
"""Less tells nothing of a rate."""

MOST_NAMED = 5
"""Companies that a summary names; report.json has them all."""

LAST_CHANGES = 3
"""Changes of the limit that a summary shows; report.json has them all."""


class Screen:
    """Shows a load on a terminal as a live line, elsewhere as a plain line every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        """Decide by what stderr is; a quiet screen loads nothing to draw with."""
        self._quiet = quiet
        if not quiet:
            from rich.console import Console  # noqa: PLC0415 a twentieth of a second

            self._console = Console(stderr=True, highlight=False)

    def say(self, line: str) -> None:
        """Tell a person something."""
        if self._quiet:
            return
        self._console.print(line, soft_wrap=True, markup=False)

    async def watch(self, live: Live) -> None:
        """Show progress until cancelled."""
        if self._quiet:
            return
        if self._console.is_terminal:
            await self._draw(live)
        else:
            await self._write(live)

    async def _draw(self, live: Live) -> None:
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415 the same

        columns = (BarColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=self._console, auto_refresh=False, transient=True) as progress:
            task = progress.add_task("", total=live.rows)
            try:
                while True:
                    progress.update(task, completed=_settled(live), description=progress_words(live), refresh=True)
                    await anyio.sleep(REFRESH_S)
            finally:
                progress.update(task, completed=_settled(live), description=progress_words(live), refresh=True)

    async def _write(self, live: Live) -> None:
        while True:
            await anyio.sleep(LINE_EVERY_S)
            self.say(progress_words(live))

    def summary(self, report: Report) -> None:
        """Show what came of it: a table of companies that ended alike, the totals, and what to do next.

        A quiet screen says only of a run that is not done why, and how it goes on.
        """
        if self._quiet:
            if report.exit_code >= ExitCode.STOPPED_EARLY:
                sys.stderr.write(f"saasload: {last_word(report)}\n")
            return
        from rich.table import Table  # noqa: PLC0415 the same

        table = Table(box=None, pad_edge=False)
        for heading in ("companies", "mode", "number", "rows", "accepted", "rejected", "in doubt", "unsent", "calls"):
            table.add_column(heading, justify="left" if heading in {"companies", "mode"} else "right")
        for group in report.groups:
            table.add_row(*_cells(group, report.mode))
        if report.groups:
            self._console.print(table)
        for line in summary_lines(report):
            self.say(line)


def _cells(group: Group, mode: str) -> list[str]:
    figures = (
        group.companies, group.rows, group.accepted, group.rejected, group.in_doubt, group.unsent, group.calls
    )  # fmt: skip
    return [group.name, mode, *(f"{figure:,}" for figure in figures)]


def _settled(live: Live) -> int:
    return live.counts().total()


def progress_words(live: Live) -> str:
    """Put a load's progress into one line: rows, calls, rate, time left, companies, and what it waits for."""
    done = _settled(live)
    elapsed = max(time.monotonic() - live.started, 1e-6)
    rate = (done - live.before) / elapsed
    pace = f", {rate:,.0f} rows/s, {(live.rows - done) / rate:,.0f} s left" if rate and elapsed >= SHORTEST_S else ""
    words = (
        f"{done:,} of {counted(live.rows, 'row')}, {counted(live.book.calls, 'call')}{pace}, "
        f"{live.companies_done():,} of {counted(live.companies, 'company')} done"
    )
    waits = live.driver.waits()
    if waits and live.driver.in_flight < live.driver.room:
        seconds, company, limit = waits[0]
        which = f" {limit} limit," if limit else ""
        words += f"; waiting: company {company},{which} {max(0.0, seconds / live.time_scale):,.0f} s"
        if len(waits) > 1:
            words += f" (and {len(waits) - 1:,} more)"
    return words


def plan_lines(plan: "Plan") -> list[str]:
    """Put a plan into lines for a person."""
    lines = [f"{plan.source}: {counted(plan.rows, 'row')} for {counted(plan.companies, 'company')}"]
    lines += [f"  {counted(rows, 'row')} will be refused: {reason}" for reason, rows in plan.refused.items()]
    for found in plan.forecasts:
        pace = "" if found.pace_known else ", by a guess at the pace"
        lines.append(
            f"{found.mode}: {counted(found.calls, 'call')}, {found.bytes / 1e6:,.1f} MB, {_span(found.duration_s)} "
            f"at {found.parallel} parallel{pace}"
        )
        lines += [f"  wait for {limit}: {counted(companies, 'company')}" for limit, companies in found.binding.items()]
        if found.late:
            first, ends = next(iter(found.late.items()))
            lines.append(
                f"  not done today: {counted(len(found.late), 'company')}; the last, {first}, in {_span(ends)}"
            )
        if found.fixed_by:
            lines.append(f"  company {found.fixed_by} has so many rows that it fixes the end alone")
    lines.append(f"take --mode {plan.recommended_mode} --parallel {plan.recommended_parallel}: {plan.reason}")
    if plan.deadline_met is not None:
        lines.append("done by the deadline" if plan.deadline_met else "NOT done by the deadline")
    return lines


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def summary_lines(report: Report) -> list[str]:
    """Put a report into a few lines for a person."""
    lines = [
        (
            f"{report.read:,} read = {report.accepted:,} accepted + {report.rejected:,} rejected + "
            f"{report.in_doubt:,} in doubt + {report.unsent:,} unsent"
        ),
        (
            f"{counted(report.calls, 'call')} by {report.mode} into {counted(report.companies, 'company')}, "
            f"{_parallel(report)}, in {report.duration_s:,.1f} s{_pace(report)}"
        ),
    ]
    if report.reasons:
        found = ", ".join(f"{reason} {number:,}" for reason, number in list(report.reasons.items())[:6])
        lines.append(f"reasons: {found}")
    if report.rejected:
        lines += _first_rejected(Path(report.folder))
    if report.stopped and report.exit_code != ExitCode.ACCEPTED:
        lines.append(f"stopped early: {report.stopped}")
    if report.waiting:
        first = [f"{company} until {date}" for company, date in list(report.waiting.items())[:MOST_NAMED]]
        more = len(report.waiting) - len(first)
        lines.append(f"waiting: {', '.join(first)}{f', and {more:,} more' if more else ''}")
    if report.exit_code >= ExitCode.STOPPED_EARLY:
        lines.append(f"go on with: {_resume_command(report)}")
    began = report.limit_changes[0].at if report.limit_changes else 0.0
    for change in list(report.limit_changes)[-LAST_CHANGES:]:
        whose = "" if change.company is None else f" of company {change.company}"
        lines.append(
            f"parallel{whose}: {change.before} to {change.after} at {change.at - began:,.0f} s: {change.reason}"
        )
    lines.append(f"files: {report.folder}/")
    return lines


def last_word(report: Report) -> str:
    """Say in one line why a run is not done, and how it goes on."""
    why = f"stopped early: {report.stopped}" if report.stopped else f"{counted(report.in_doubt, 'row')} in doubt"
    return f"{why}; go on with: {_resume_command(report)}"


def _resume_command(report: Report) -> str:
    runs = Path(report.folder).parent
    elsewhere = "" if runs == DEFAULT_RUNS else f" --runs {shlex.quote(str(runs))}"
    return f"saasload resume {report.run}{elsewhere}"


def _parallel(report: Report) -> str:
    return f"{report.parallel} parallel{' (chosen by auto)' if report.parallel_found else ''}"


def _first_rejected(folder: Path) -> list[str]:
    from saasload.run.history import first_rejected  # noqa: PLC0415 most runs have none

    first = first_rejected(folder)
    if first is None:
        return []
    place = f"row {first.row:,}, {first.field}" if first.field else f"row {first.row:,}"
    words = first.reason if first.message in {"", first.reason} else f"{first.reason}: {first.message}"
    return [f"first rejected: {place}: {words}", f"all rejected, with reasons: {folder}/{FILES[RowStatus.REJECTED]}"]


def _pace(report: Report) -> str:
    """Tell a rate where there is one: not of a moment, and not of no rows."""
    if not report.rows_per_hour or report.duration_s < SHORTEST_S:
        return ""
    return f": {report.rows_per_hour:,} rows an hour{_there(report)}"


def _there(report: Report) -> str:
    if report.time_scale == 1.0:
        return ""
    return f" ({report.target_duration_s:,.0f} s and {report.target_rows_per_hour:,} rows an hour in the target's time)"
