"""One load from its spooled rows to its report."""

import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import anyio

from saasload.budget import SharedBudget
from saasload.clock import Clock
from saasload.doubt import Doubts
from saasload.driver import Driver
from saasload.errors import RunFolderError, SaasloadError, UsageError
from saasload.exchange import Language, Outside, Recorder, Send, Terms
from saasload.job import EMBEDDED
from saasload.lane import Lane
from saasload.model import ROW_COLUMN, Company, Note, Outcomes, RowStatus
from saasload.order import KeyOrder
from saasload.policy.budget import Budget
from saasload.policy.headers import header_spec
from saasload.policy.parallelism import Parallelism
from saasload.policy.schedule import Schedule
from saasload.prepare import Prepared
from saasload.profile import Mode
from saasload.rows import SpooledRows
from saasload.run.book import Book
from saasload.run.files import write_row_files
from saasload.run.report import Report, count, exit_code, groups, reasons
from saasload.source.spool import Spool
from saasload.verdict import ABSENT


@dataclass(slots=True)
class Live:
    """A load under way, for whoever shows its progress. Times are in seconds of wall time."""

    rows: int
    companies: int
    time_scale: float
    started: float
    before: int
    book: Book
    driver: Driver
    parallelism: Parallelism

    def counts(self) -> Counter[RowStatus]:
        """Rows by outcome so far, those of earlier processes of the run included."""
        return self.book.counts

    def companies_done(self) -> int:
        """Companies whose rows all have an outcome."""
        return sum(count.settled >= count.rows for count in self.book.companies.values() if count.rows)


Watch = Callable[[Live], Coroutine[None, None, None]]


class Observer:
    """Looks on at a load for telemetry. This one looks away; a run that falls back to another mode begins twice."""

    def recording(self, recorder: Recorder, prepared: Prepared, clock: Clock) -> Recorder:  # noqa: ARG002
        """Give the recorder that the driver gets: the one given, or one that listens and passes on."""
        return recorder

    def begun(self, live: Live, prepared: Prepared) -> None:
        """Take a load that is about to send."""

    def ended(self, report: Report) -> None:
        """Take what came of the run."""


class Load:
    """Sends what is not settled yet, and sums up. `failure` is what stopped it from our side."""

    def __init__(self, prepared: Prepared, spool: Spool, book: Book, clock: Clock) -> None:
        """Take over what the book knows."""
        self.prepared = prepared
        self.spool = spool
        self.book = book
        self.clock = clock
        self.signal = 0
        self.say: Callable[[str], None] = lambda _line: None
        self.observer = Observer()
        self.failure = ""
        self.driver: Driver | None = None
        self.parallelism: Parallelism | None = None
        self.accepted_before = _accepted(book)
        self.retries_before = 0
        self.refused_before = 0
        self.hint: int | None = None

    def in_doubt(self, choice: Literal["ask", "stop", "resend", "skip"]) -> None:
        """Apply a person's choice on rows in doubt that the profile has no rule for.

        Raises UsageError where there are some and the choice is to stop, or was not made.
        """
        rows = self.book.counts[RowStatus.IN_DOUBT]
        if not rows or self.prepared.entity.in_doubt.get(self.prepared.mode) is not None or choice == "skip":
            return
        if choice == "resend":
            self.book.forget_doubts()
            return
        message = (
            f"{rows:,} rows are in doubt, and profile {self.prepared.profile.name} has no rule to look them up; see "
            "in_doubt.parquet, then go on with --in-doubt=resend (they are not there) or --in-doubt=skip (they are)"
        )
        raise UsageError(message)

    @property
    def per_company(self) -> int:
        """How many calls of one company may be on the wire: one where the entity's rows must keep their order."""
        return 1 if self.prepared.entity.ordering == "strict" else self.prepared.job.per_company

    @property
    def retries(self) -> int:
        """How often a call was sent again, in this mode and those before it."""
        return self.retries_before + (self.driver.exchange.retries if self.driver is not None else 0)

    @property
    def refused(self) -> int:
        """How many calls the target did not execute, in this mode and those before it."""
        return self.refused_before + (self.driver.exchange.refused if self.driver is not None else 0)

    @property
    def next_mode(self) -> Mode | None:
        """The mode to go on in where the target has none of this one, and nobody asked for this one; else None."""
        note = self.driver.stop_note if self.driver is not None else None
        if note is None or note.reason != ABSENT or self.prepared.job.mode is not None:
            return None
        modes = self.prepared.entity.modes
        return next(iter(modes[modes.index(self.prepared.mode) + 1 :]), None)

    async def run(self, send: Send, budget: SharedBudget, watch: Watch | None, *, signals: bool) -> None:
        """Send all lanes within a budget; a failure of our own stops the load and is kept for the report."""
        prepared, job = self.prepared, self.prepared.job
        left = {company: count.rows - count.settled + count.outcomes[RowStatus.IN_DOUBT]
                for company, count in self.book.companies.items()}  # fmt: skip
        left = {company: rows for company, rows in left.items() if rows}
        rng = random.Random(job.seed)  # noqa: S311 spreads waits, guards nothing
        fixed = None if job.parallel == "auto" else job.parallel
        self.parallelism = Parallelism(fixed, per_company=self.per_company, hint=self.hint, rng=rng)
        schedule = Schedule(left, Budget((), offset=0.0), per_company=self.parallelism.company_limit, order=job.order)
        language = Language(prepared.wire, prepared.look_up)
        if prepared.profile.csrf is not None:
            from saasload.csrf import CompanyFormat, Tokens  # noqa: PLC0415 rarely needed

            send = Tokens(prepared.profile, prepared.profile.csrf, send, budget, self.clock).send
            language = Language(CompanyFormat(prepared.wire), prepared.look_up)
        recorder = self.observer.recording(self.book, prepared, self.clock)
        outside = Outside(send, self.clock, recorder, budget, header_spec(prepared.profile), rng)
        lanes = [self._lane(company, len(left)) for company in left]
        self.driver = driver = Driver(lanes, schedule, language, self._terms(self.parallelism), outside)
        live = Live(
            rows=self.spool.index.rows,
            companies=sum(bool(count.rows) for count in self.book.companies.values()),
            time_scale=self.clock.scale,
            started=time.monotonic(),
            before=self.book.counts.total(),
            book=self.book,
            driver=driver,
            parallelism=self.parallelism,
        )
        self.observer.begun(live, prepared)
        try:
            async with anyio.create_task_group() as beside:
                if watch is not None:
                    beside.start_soon(watch, live)
                with anyio.CancelScope() as sending:
                    if signals:
                        beside.start_soon(self._listen, sending)
                    await driver.run()
                beside.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            self.failure = str(_cause(group))
        try:
            self.book.close()
        except RunFolderError as error:
            self.failure = self.failure or str(error)

    def _terms(self, parallelism: Parallelism) -> Terms:
        job, profile = self.prepared.job, self.prepared.profile
        return Terms(
            parallelism=parallelism,
            per_company=self.per_company,
            deadline_s=job.deadline_s or profile.deadline_s,
            max_wait_s=job.longest_wait_s,
            max_rejected=job.max_rejected(self.spool.index.rows),
            retry=profile.retry,
            answers=profile.answers,
            csrf=profile.csrf,
        )

    def _lane(self, company: Company, lanes: int) -> Lane:
        prepared = self.prepared
        rows = SpooledRows(prepared, self.spool, company, self.book.statuses, lanes)
        rule = prepared.entity.in_doubt.get(prepared.mode)
        doubts = Doubts(company, rows, rule, prepared.look_up)
        # That a call is sent once more says that it creates or updates by key.
        order = KeyOrder(prepared.wire.overhead, one_by_one=self.per_company == 1) if rule == "resend" else None
        lane = Lane(company, rows, doubts, order)
        if self.book.companies[company].outcomes[RowStatus.IN_DOUBT]:
            lane.lost(rows.in_doubt(), self.clock.now())
        return lane

    async def _listen(self, sending: anyio.CancelScope) -> None:
        """On the first signal admit nothing more; on the second, or when draining takes too long, leave."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                if self.signal or self.driver is None:
                    sending.cancel()
                    return
                self.signal = number
                self.say(
                    f"interrupted: waiting up to {self.prepared.job.drain_s:g} s for {self.driver.in_flight} calls on "
                    "the wire; once more leaves at once, with their rows in doubt"
                )
                self.driver.stop("interrupted", Note("interrupted", "stopped before it was sent"))
                sending.deadline = anyio.current_time() + self.prepared.job.drain_s

    def write_files(self, folder: Path) -> None:
        """Write the files that tell what became of each row."""
        self.book.write_tables(folder)
        write_row_files(folder, self.spool, self.book)

    def report(self, folder: Path, url: str, duration_s: float) -> Report:
        """Sum up; `duration_s` is this process's, the rest is the whole run's."""
        job, book, driver = self.prepared.job, self.book, self.driver
        counts = count(self.spool.index.rows, book.counts)
        duration = max(duration_s, 1e-9)
        accepted_now = counts.accepted - self.accepted_before
        stopped = self.failure or (driver.stop_reason if driver is not None else "")
        if driver is not None and driver.stop_note is not None and driver.stop_note.reason == ABSENT:
            stopped += "; use another --mode"
        stopped = stopped or next((note.message for note in book.closed_by.values()), "")
        return Report(
            run=folder.name,
            folder=str(folder),
            target=EMBEDDED if job.to == EMBEDDED else url,
            entity=job.entity,
            mode=self.prepared.mode,
            parallel=self.parallelism.found if self.parallelism is not None else job.connections,
            parallel_found=job.parallel == "auto",
            limit_changes=() if self.parallelism is None else self.parallelism.changes,
            companies=sum(bool(company.rows) for company in book.companies.values()),
            read=counts.read,
            accepted=counts.accepted,
            rejected=counts.rejected,
            in_doubt=counts.in_doubt,
            unsent=counts.unsent,
            created=counts.created,
            updated=counts.updated,
            unchanged=counts.unchanged,
            calls=book.calls,
            retries=self.retries,
            refused=self.refused,
            duration_s=round(duration, 3),
            rows_per_hour=round(accepted_now * 3600.0 / duration),
            cpu_s=round(time.process_time(), 3),
            peak_rss_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0, 1),
            time_scale=self.clock.scale,
            target_duration_s=round(duration * self.clock.scale, 3),
            target_rows_per_hour=round(accepted_now * 3600.0 / (duration * self.clock.scale)),
            stopped=stopped,
            reasons=reasons(book),
            groups=groups(book.companies),
            exit_code=exit_code(counts, stopped=self.failure or (stopped if counts.unsent else ""), signal=self.signal),
            waiting={} if driver is None else _dates(driver.parked),
        )


def _dates(parked: Mapping[Company, tuple[float, str]]) -> dict[str, str]:
    """Say in words until when companies wait, the first to go on first."""
    found = [
        (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC{rule}", name) for name, (at, rule) in parked.items()
    ]
    return {company: date for date, company in sorted(found)}


def _accepted(book: Book) -> int:
    return sum(count for status, count in book.counts.items() if status.accepted)


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Find the first failure that is ours to tell; anything else is a fault of ours and is raised as it is."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _cause(error)
        if isinstance(error, SaasloadError):
            return error
        raise error
    raise group


def settle_refused(spool: Spool, book: Book, column: str | None) -> None:
    """Settle the rows that have no company to go to."""
    for reason in spool.index.refused:
        for batch, problems in spool.refused_batches(reason):
            rows = batch.column(ROW_COLUMN).to_pylist()
            values = batch.column(column).to_pylist() if column is not None else [None] * len(rows)
            notes = {
                row: Note(reason, problems.get(row) or _refusal(reason, value), "" if row in problems else column or "")
                for row, value in zip(rows, values, strict=True)
            }
            outcomes = Outcomes(rows, [RowStatus.REJECTED] * len(rows), [""] * len(rows), notes)
            book.refused_here(Company(""), outcomes)


_REFUSALS: Mapping[str, str] = {
    "no-company": "the row names no company",
    "unknown-company": "the target has no company {value}",
    "company-not-picked": "company {value} was not picked for this run",
}


def _refusal(reason: str, value: object) -> str:
    return _REFUSALS.get(reason, reason).format(value=value)
