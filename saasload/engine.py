"""Put the house together for one job; loads as library calls."""

import contextlib
import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path

import anyio

from saasload.clock import Clock
from saasload.companies import read_companies
from saasload.driver import Driver, Lane, Outside, Terms
from saasload.embedded import DEFAULT_TIME_SCALE, embedded_server
from saasload.errors import NotSentError, SaasloadError, TargetError, TransportError, UsageError
from saasload.job import EMBEDDED, Job
from saasload.model import Company, Note, Outcomes, Reply, RowStatus
from saasload.policy.budget import Budget
from saasload.policy.schedule import Schedule
from saasload.prepare import Prepared, prepare
from saasload.run.book import Book
from saasload.run.files import write_row_files
from saasload.run.folder import make_run_folder, new_run_id
from saasload.run.report import Report, count, exit_code, groups, reasons
from saasload.source.partition import Assign, ByColumn, CompanyInfo, Dealt, pick_companies
from saasload.source.spool import Spool, open_spool, write_spool
from saasload.transport import App, Sender, open_client
from saasload.wire.cut import cut
from saasload.wire.render import render

CHUNK_ROWS = 250
"""Rows encoded at once: larger lists of dictionaries are slower a row (docs/performance.md)."""


@dataclass(slots=True)
class Live:
    """A load under way, for whoever shows its progress. Times are in seconds of wall time."""

    rows: int
    companies: int
    parallel: int
    time_scale: float
    started: float
    book: Book
    driver: Driver

    def counts(self) -> Counter[RowStatus]:
        """Rows by outcome so far."""
        return self.book.counts

    def companies_done(self) -> int:
        """Companies whose rows all have an outcome."""
        return sum(count.settled >= count.rows for count in self.book.companies.values())


def _silent(_line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a load is given from outside, apart from its job.

    `app` answers in this process instead of a server, and `clock` is then the time both go by. `watch` runs
    beside the load; `say` takes lines for people; with `signals` SIGINT and SIGTERM stop the load in good order.
    """

    app: App | None = None
    clock: Clock | None = None
    watch: Callable[[Live], Coroutine[None, None, None]] | None = None
    say: Callable[[str], None] = _silent
    signals: bool = False


async def push(job: Job, around: Surroundings | None = None) -> Report:
    """Load a job's rows into its companies and report what became of each.

    Raises UsageError, TargetError or RunFolderError where nothing was sent; once sending has begun, whatever
    happens ends in a report.
    """
    around = around or Surroundings()
    prepared = prepare(job)
    folder = make_run_folder(job.runs, job.run or new_run_id())
    try:
        async with _target(job, around) as url:
            return await _push(prepared, url, folder, around)
    except BaseException:
        if not (folder / "calls.parquet.part").exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def push_sync(job: Job, around: Surroundings | None = None) -> Report:
    """Do what `push` does, for callers without an event loop; uvloop is used where it is installed."""
    return anyio.run(partial(push, job, around), backend_options={"use_uvloop": _has_uvloop()})


def _has_uvloop() -> bool:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: F401, PLC0415 only to see whether it is there, and only when a load begins

        return sys.platform != "win32"
    return False


@contextlib.asynccontextmanager
async def _target(job: Job, around: Surroundings) -> AsyncIterator[str]:
    """Give the address to load to: the job's, or that of a mock server started for it."""
    if job.to != EMBEDDED:
        yield job.to.rstrip("/")
    elif around.app is not None:
        yield "http://127.0.0.1"
    else:
        async with embedded_server(job.time_scale or DEFAULT_TIME_SCALE) as server:
            around.say(
                f"no target given: loading into an embedded mock server at {server.url}, "
                f"where time runs {server.time_scale:g} times faster"
            )
            yield server.url


async def _push(prepared: Prepared, url: str, folder: Path, around: Surroundings) -> Report:
    job = prepared.job
    began = anyio.current_time()
    headers = {"Authorization": f"Bearer {prepared.token.get_secret_value()}"}
    async with open_client(base_url=url, parallel=job.parallel, app=around.app) as client:
        sender = Sender(url, client, headers)
        try:
            known, first = await read_companies(sender.send, prepared.profile)
        except TransportError as error:
            hint = (
                "is the server running, and is the address right?" if isinstance(error, NotSentError) else "try again"
            )
            raise TargetError(f"{error}; {hint}") from error
        clock = around.clock or Clock.real(_time_scale(prepared, first))
        picked = pick_companies(known, job.companies, job.partitions, read_text=_read_text)
        if prepared.unused:
            around.say(f"columns that {job.entity} does not take, left out: {', '.join(prepared.unused)}")
        write_spool(prepared.source, folder / "spool.arrow", _assign(prepared, picked, known))
        with open_spool(folder / "spool.arrow") as spool:
            if not spool.index.rows:
                around.say(f"{job.source.name}: no rows, so there is nothing to load")
            load = _Load(prepared, spool, folder, clock, _wall_offset(first, clock))
            await load.run(sender, around)
            load.finish()
            report = load.report(url, began)
    report.save(folder)
    return report


def _read_text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "not UTF-8 text"
        message = f"--companies @{name}: cannot be read: {reason}"
        raise UsageError(message) from error


def _time_scale(prepared: Prepared, first: Reply) -> float:
    """Take the pace of the target's time from the job, or from what a mock server says of itself."""
    stated = first.headers.get(prepared.profile.time_scale_header or "", "")
    if prepared.job.to != EMBEDDED and prepared.job.time_scale is not None:
        return prepared.job.time_scale
    try:
        scale = float(stated or 1.0)
    except ValueError:
        return 1.0
    return scale if 0.0 < scale < 1e6 else 1.0


def _wall_offset(first: Reply, clock: Clock) -> float:
    """Estimate what the target's wall clock shows beyond our `now`, from its first reply's Date."""
    try:
        return parsedate_to_datetime(first.headers["date"]).timestamp() - clock.now()
    except (KeyError, ValueError, TypeError):
        return clock.wall() - clock.now()


def _assign(prepared: Prepared, picked: Sequence[CompanyInfo], known: Sequence[CompanyInfo]) -> Assign:
    codes = [company.code for company in picked]
    if prepared.company_column is None:
        return Dealt(codes)
    everyone = [company.code for company in known]
    return ByColumn(prepared.source.schema, prepared.company_column, companies=codes, known=everyone)


class _Load:
    """One load from its spooled rows to its report."""

    def __init__(self, prepared: Prepared, spool: Spool, folder: Path, clock: Clock, wall_offset: float) -> None:
        self.prepared = prepared
        self.spool = spool
        self.folder = folder
        self.clock = clock
        self.wall_offset = wall_offset
        self.signal = 0
        rows = {Company(company): part.rows for company, part in spool.index.companies.items()}
        self.book = Book(folder, rows=spool.index.rows, companies=rows, mode=prepared.mode, epoch=wall_offset)
        _settle_refused(spool, self.book, prepared.company_column)
        self.lanes = {company: count for company, count in rows.items() if count}
        self.driver: Driver | None = None
        self.failure = ""

    async def run(self, sender: Sender, around: Surroundings) -> None:
        """Send all lanes; a failure of our own stops the load and is kept for the report."""
        job = self.prepared.job
        profile = self.prepared.profile
        budget = Budget(profile.limits, offset=self.wall_offset)
        schedule = Schedule(self.lanes, budget, per_company=job.per_company)
        terms = Terms(
            parallel=job.parallel,
            per_company=job.per_company,
            deadline_s=job.deadline_s or profile.deadline_s,
            max_wait_s=job.max_wait_s,
            retry=profile.retry,
            answers=profile.answers,
        )
        outside = Outside(sender.send, self.clock, self.book, random.Random(job.seed))  # noqa: S311 spreads waits, guards nothing
        lanes = [self._lane(company) for company in self.lanes]
        self.driver = driver = Driver(lanes, schedule, self.prepared.wire, terms, outside)
        live = Live(
            self.spool.index.rows, len(self.lanes), job.parallel, self.clock.scale, time.monotonic(), self.book, driver
        )
        try:
            async with anyio.create_task_group() as beside:
                if around.watch is not None:
                    beside.start_soon(around.watch, live)
                with anyio.CancelScope() as sending:
                    if around.signals:
                        beside.start_soon(self._listen, sending)
                    await driver.run()
                beside.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            self.failure = str(_cause(group))

    async def _listen(self, sending: anyio.CancelScope) -> None:
        """On the first signal admit nothing more; on the second, or when draining takes too long, leave."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                if self.signal or self.driver is None:
                    sending.cancel()
                    return
                self.signal = number
                self.driver.stop("interrupted", Note("interrupted", "stopped before it was sent"))
                sending.deadline = anyio.current_time() + self.prepared.job.drain_s

    def _lane(self, company: Company) -> Lane:
        prepared = self.prepared
        wire = prepared.wire
        fragments = render(
            self.spool.company_batches(company),
            company,
            wire,
            prepared.fields,
            key=prepared.entity.key,
            chunk_rows=max(CHUNK_ROWS, wire.max_rows),
        )
        calls = cut(fragments, company, max_rows=wire.max_rows, max_bytes=wire.max_bytes, overhead=wire.overhead)
        return Lane(company, calls)

    def finish(self) -> None:
        """Write the files that tell what became of each row."""
        self.book.close()
        write_row_files(self.folder, self.spool, self.book)

    def report(self, url: str, began: float) -> Report:
        """Sum up."""
        job = self.prepared.job
        book = self.book
        counts = count(self.spool.index.rows, book.counts)
        duration = max(anyio.current_time() - began, 1e-9)
        stopped = self.failure or (self.driver.stop_reason if self.driver is not None else "")
        stopped = stopped or next((note.message for note in book.closed_by.values()), "")
        return Report(
            run=self.folder.name,
            folder=str(self.folder),
            target=EMBEDDED if job.to == EMBEDDED else url,
            entity=job.entity,
            mode=self.prepared.mode,
            parallel=job.parallel,
            companies=len(self.lanes),
            read=counts.read,
            accepted=counts.accepted,
            rejected=counts.rejected,
            in_doubt=counts.in_doubt,
            unsent=counts.unsent,
            created=counts.created,
            updated=counts.updated,
            unchanged=counts.unchanged,
            calls=book.calls,
            retries=self.driver.retries if self.driver is not None else 0,
            refused=self.driver.refused if self.driver is not None else 0,
            duration_s=round(duration, 3),
            rows_per_hour=round(counts.accepted * 3600.0 / duration),
            cpu_s=round(time.process_time(), 3),
            peak_rss_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0, 1),
            time_scale=self.clock.scale,
            target_duration_s=round(duration * self.clock.scale, 3),
            target_rows_per_hour=round(counts.accepted * 3600.0 / (duration * self.clock.scale)),
            stopped=stopped,
            reasons=reasons(book),
            groups=groups(book.companies),
            exit_code=exit_code(counts, stopped=stopped if counts.unsent else "", signal=self.signal),
        )


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Find the first failure that is ours to tell; anything else is a fault of ours and is raised as it is."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _cause(error)
        if isinstance(error, SaasloadError):
            return error
        raise error
    raise group


def _settle_refused(spool: Spool, book: Book, column: str | None) -> None:
    """Settle the rows that have no company to go to."""
    for reason in spool.index.refused:
        for batch, problems in spool.refused_batches(reason):
            rows = batch.column("__row__").to_pylist()
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
