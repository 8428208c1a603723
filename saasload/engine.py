"""Put the house together for one job; loads as library calls."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
from pydantic import ValidationError

from saasload.contact import Surroundings, clock_of, connected, first_contact, open_budget
from saasload.errors import NoRoomError, RunFolderError, UsageError
from saasload.job import EMBEDDED, Job
from saasload.load import Live, Load, settle_refused
from saasload.model import Company, Reply, RowStatus
from saasload.prepare import Prepared, prepare
from saasload.profile import Mode, PlatformProfile, load_profile
from saasload.run.book import Book, Times
from saasload.run.files import write_row_files
from saasload.run.folder import find_run, kept_for_room, make_run_folder, new_run_id
from saasload.run.history import is_open, latest_paces, latest_parallel
from saasload.run.journal import FILE, Journal, create_journal, open_journal
from saasload.run.lock import run_lock
from saasload.run.report import Report
from saasload.source.base import Source
from saasload.source.fingerprint import Fingerprint, fingerprint, what_changed
from saasload.source.partition import Assign, ByColumn, CompanyInfo, Dealt, check_selection, pick_companies
from saasload.source.readers import open_source
from saasload.source.spool import Spool, open_spool, write_spool
from saasload.transport import Sender, TokenFile

if TYPE_CHECKING:
    from saasload.plan import Plan
    from saasload.verify import Proof

SPOOL = "spool.arrow"

__all__ = ["Live", "Resume", "Surroundings", "push", "push_sync", "resume", "resume_sync"]

InDoubt = Literal["ask", "stop", "resend", "skip"]
SourceChanged = Literal["refuse", "accept"]


async def push(job: Job, around: Surroundings | None = None) -> Report:
    """Load a job's rows into its companies and report what became of each.

    Raises UsageError, TargetError or RunFolderError where nothing was sent; once sending has begun, whatever
    happens ends in a report.
    """
    around = around or Surroundings()
    profile = load_profile(job.profile)
    source = open_source(job.source, format=job.format)
    prepared = prepare(job, profile, source.schema)
    _check_files(job)
    folder = make_run_folder(job.runs, job.run or new_run_id())
    with run_lock(folder):
        try:
            facts = {"job": job.facts(), "profile": profile.model_dump(mode="json"), "state": "begun"}
            with contextlib.closing(create_journal(folder, facts)) as journal, kept_for_room(folder):
                return await _Run(prepared, folder, journal, around).load(source)
        except BaseException as error:
            begun = isinstance(error, NoRoomError) and (folder / FILE).exists()
            if not begun and not (folder / SPOOL).exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise


def push_sync(job: Job, around: Surroundings | None = None) -> Report:
    """Do what `push` does, for callers without an event loop; uvloop is used where it is installed."""
    return anyio.run(partial(push, job, around), backend_options={"use_uvloop": _has_uvloop()})


@dataclass(frozen=True, slots=True)
class Resume:
    """How a run goes on: what is changed of its job, and what is done where rows or the source are not plain.

    `changes` are fields of the job (parallel, mode, rows_per_call …). `in_doubt` decides on rows in doubt that the
    profile has no rule for: `stop` sends nothing, `resend` sends them once more, `skip` leaves them and goes on;
    `ask` is `stop` if there are any. `source_changed` refuses a file that is not what it was, or accepts it.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    in_doubt: InDoubt = "ask"
    source_changed: SourceChanged = "refuse"


async def resume(runs: Path, run: str | None, how: Resume | None = None, around: Surroundings | None = None) -> Report:
    """Go on with a run where it stopped, the latest by default; only what is not settled is sent.

    Raises UsageError for a run that is not there or a source that has changed, RunFolderError for a journal that
    cannot be used, TargetError where the target cannot be.
    """
    how, around = how or Resume(), around or Surroundings()
    folder = find_run(runs, run, is_open)
    with run_lock(folder):
        journal = open_journal(folder)
        with contextlib.closing(journal), kept_for_room(folder):
            facts = journal.facts()
            job, profile = _remembered(folder, facts, how)
            spooled = folder / str(facts.get("spool", SPOOL))
            if not spooled.exists():
                source = open_source(job.source, format=job.format)
                prepared = prepare(job, profile, source.schema)
                return await _Run(prepared, folder, journal, around).load(source)
            with open_spool(spooled) as spool:
                prepared = prepare(job, profile, spool.schema)
                changed = _source_changed(job, facts, how, around)
                run_ = _Run(prepared, folder, journal, around, how)
                return await (run_.change_source(spool) if changed else run_.go_on(spool))


def resume_sync(runs: Path, run: str | None, how: Resume | None = None, around: Surroundings | None = None) -> Report:
    """Do what `resume` does, for callers without an event loop."""
    return anyio.run(partial(resume, runs, run, how, around), backend_options={"use_uvloop": _has_uvloop()})


async def plan(job: Job, around: Surroundings | None = None, deadline: str | None = None) -> "Plan":
    """Read a source once and forecast its load by each mode; nothing is sent but the question for the companies.

    `deadline` is a time of day, HH:MM, by this machine's clock. Raises UsageError, TargetError or RunFolderError.
    """
    from saasload.plan import make_plan  # noqa: PLC0415 a load needs none

    around = around or Surroundings()
    ends = None if deadline is None else _time_of_day(deadline)
    profile = load_profile(job.profile)
    source = open_source(job.source, format=job.format)
    entity = profile.entity(job.entity)
    modes = entity.modes if job.mode is None else (job.mode,)
    prepared = [prepare(job.model_copy(update={"mode": mode}), profile, source.schema) for mode in modes]
    _check_files(job)
    with tempfile.TemporaryDirectory(prefix="saasload-plan-") as folder:
        path = Path(folder) / SPOOL
        async with connected(prepared[0], around) as (sender, _):
            known, first = await first_contact(sender, prepared[0])
            wall = clock_of(prepared[0], around, first).wall()
        picked = pick_companies(known, job.companies, job.partitions, read_text=_read_text)
        write_spool(source, path, _assign(prepared[0], source, picked, known))
        with open_spool(path) as spool:
            return make_plan(prepared, spool, wall, latest_paces(job.runs, job.to), ends)


def plan_sync(job: Job, around: Surroundings | None = None, deadline: str | None = None) -> "Plan":
    """Do what `plan` does, for callers without an event loop."""
    return anyio.run(partial(plan, job, around, deadline), backend_options={"use_uvloop": _has_uvloop()})


def _time_of_day(text: str) -> float:
    """Count the seconds until a time of day, HH:MM, today or, if that is over, tomorrow."""
    try:
        wanted = datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 a time of day has no zone
    except ValueError as error:
        message = f"--deadline {text}: write it as HH:MM"
        raise UsageError(message) from error
    now = datetime.now().astimezone()
    ends = now.replace(hour=wanted.hour, minute=wanted.minute, second=0, microsecond=0)
    if ends <= now:
        ends += timedelta(days=1)
    return (ends - now).total_seconds()


async def verify(runs: Path, run: str | None, around: Surroundings | None = None) -> "Proof":
    """Read a run's target back by natural key, and prove what is there of the rows it accepted.

    Raises UsageError where there is no way to ask, TargetError where the target does not answer.
    """
    around = around or Surroundings()
    folder = find_run(runs, run)
    with run_lock(folder), contextlib.closing(open_journal(folder)) as journal, contextlib.ExitStack() as stack:
        facts = journal.facts()
        job, profile = _remembered(folder, facts, Resume())
        spool = stack.enter_context(open_spool(folder / str(facts.get("spool", SPOOL))))
        if job.to == EMBEDDED and around.app is None:
            message = f"run {folder.name}: its embedded mock server is gone, so there is nothing to read back"
            raise UsageError(message)
        prepared = prepare(job, profile, spool.schema)
        return await _Run(prepared, folder, journal, around).prove(spool)


def verify_sync(runs: Path, run: str | None) -> "Proof":
    """Do what `verify` does, for callers without an event loop."""
    return anyio.run(partial(verify, runs, run), backend_options={"use_uvloop": _has_uvloop()})


def _has_uvloop() -> bool:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: F401, PLC0415 only to see whether it is there, and only when a load begins

        return sys.platform != "win32"
    return False


def _remembered(folder: Path, facts: Mapping[str, Any], how: Resume) -> tuple[Job, PlatformProfile]:
    try:
        job = Job.model_validate({**facts["job"], "run": folder.name, "runs": folder.parent, **how.changes})
        if "profile" in how.changes:
            return job, load_profile(job.profile)
        return job, PlatformProfile.model_validate(facts["profile"])
    except (KeyError, ValidationError) as error:
        message = f"{folder}: what the journal keeps of the job cannot be read; push the file again"
        raise RunFolderError(message) from error


def _source_changed(job: Job, facts: Mapping[str, Any], how: Resume, around: Surroundings) -> bool:
    """Tell whether the source is another file now; UsageError where that is not accepted.

    One that is gone is no loss: the spool holds its rows as they were.
    """
    if not job.source.exists():
        around.say(f"{job.source}: no longer there; going on with its rows as they were read")
        return False
    changed = what_changed(Fingerprint.of_facts(facts["fingerprint"]), fingerprint(job.source))
    if changed and how.source_changed == "refuse":
        message = (
            f"{job.source.name}: changed since the run began: {changed}; put the old file back, "
            "or go on with --source-changed=accept, or push the new file as a run of its own"
        )
        raise UsageError(message)
    return bool(changed)


class _Run:
    """A run with its folder and journal, from the target to the report."""

    def __init__(
        self, prepared: Prepared, folder: Path, journal: Journal, around: Surroundings, how: Resume | None = None
    ) -> None:
        self.prepared = prepared
        self.folder = folder
        self.journal = journal
        self.around = around
        self.how = how

    async def load(self, source: Source) -> Report:
        """Read the source, spool it by company, and send it."""
        async with connected(self.prepared, self.around) as (sender, url):
            known, first = await first_contact(sender, self.prepared)
            job = self.prepared.job
            picked = pick_companies(known, job.companies, job.partitions, read_text=_read_text)
            if self.prepared.unused:
                left_out = ", ".join(self.prepared.unused)
                self.around.say(f"columns that {job.entity} does not take, left out: {left_out}")
            self.journal.state({"fingerprint": fingerprint(job.source).facts()})
            write_spool(source, self.folder / SPOOL, _assign(self.prepared, source, picked, known))
            with open_spool(self.folder / SPOOL) as spool:
                if not spool.index.rows:
                    self.around.say(f"{job.source.name}: no rows, so there is nothing to load")
                return await self._send(spool, sender, url, first)

    async def go_on(self, spool: Spool) -> Report:
        """Send what is not settled of rows that were spooled before."""
        async with connected(self.prepared, self.around) as (sender, url):
            if self.prepared.job.to == EMBEDDED and self.around.app is None:
                self.around.say(f"run {self.folder.name}: its embedded mock server is gone with the rows it held")
            _, first = await first_contact(sender, self.prepared)
            return await self._send(spool, sender, url, first)

    async def change_source(self, old: Spool) -> Report:
        """Read the source anew; rows that were there before keep the outcomes they have."""
        source = open_source(self.prepared.job.source, format=self.prepared.job.format)
        async with connected(self.prepared, self.around) as (sender, url):
            known, first = await first_contact(sender, self.prepared)
            job = self.prepared.job
            picked = pick_companies(known, job.companies, job.partitions, read_text=_read_text)
            book = self._book(old, 0.0)
            name = f"spool-{self.journal.last_call()}.arrow"
            write_spool(source, self.folder / name, _assign(self.prepared, source, picked, known))
            with open_spool(self.folder / name) as spool:
                from saasload.run.carry import Known, carry  # noqa: PLC0415 rarely needed

                then = Known(book.statuses, book.notes, self.journal.ids())
                try:
                    self.journal.begin_source(name, carry(old, spool, then))
                except BaseException:
                    (self.folder / name).unlink(missing_ok=True)
                    raise
                self.journal.state({"fingerprint": fingerprint(job.source).facts()})
                self.around.say(
                    f"{job.source.name}: read anew, {spool.index.rows:,} rows; known ones keep their outcomes"
                )
                return await self._send(spool, sender, url, first)

    async def prove(self, spool: Spool) -> "Proof":
        """Ask the target for the rows that were accepted."""
        async with connected(self.prepared, self.around) as (sender, url):
            _, first = await first_contact(sender, self.prepared)
            from saasload.verify import Verifier  # noqa: PLC0415 a load needs none

            clock = clock_of(self.prepared, self.around, first)
            book = self._book(spool, clock.wall() - clock.now())
            verifier = Verifier(self.prepared, spool, book.statuses, sender.send, clock)
            async with open_budget(self.prepared, self.around, url, clock, first) as budget:
                return await verifier.prove(self.folder.name, budget)

    def _hint(self, url: str, first: Reply) -> int | None:
        """Say where an adaptive limit starts: what the target states, what the last load into it found, the profile."""
        if self.prepared.job.parallel != "auto":
            return None
        stated = first.headers.get(self.prepared.profile.parallel_header.lower(), "")
        if stated.isdecimal() and 0 < int(stated) <= self.prepared.job.connections:
            return int(stated)
        return latest_parallel(self.folder.parent, url) or self.prepared.profile.parallel_hint

    def _fall_back(self, load: Load, mode: Mode) -> Load:
        """Go on in another mode with the rows that are not settled, and remember it for the run."""
        reason = load.driver.stop_reason if load.driver is not None else ""
        self.around.say(f"{reason}: going on by {mode}")
        job = self.prepared.job.model_copy(update={"mode": mode})
        self.prepared = prepare(job, self.prepared.profile, load.spool.schema)
        self.journal.state({"job": job.facts()})
        load.book.go_on_by(mode)
        following = Load(self.prepared, load.spool, load.book, load.clock)
        following.hint = load.hint
        following.accepted_before = load.accepted_before
        following.retries_before, following.refused_before = load.retries, load.refused
        return following

    def _book(self, spool: Spool, wall_offset: float) -> Book:
        rows = {Company(company): part.rows for company, part in spool.index.companies.items()}
        times = Times(self.prepared.mode, wall_offset, threads=self.around.app is None)
        book = Book(self.journal, rows=spool.index.rows, companies=rows, times=times)
        book.replay()
        return book

    async def _send(self, spool: Spool, sender: Sender, url: str, first: Reply) -> Report:
        began = anyio.current_time()
        clock = clock_of(self.prepared, self.around, first)
        offset = clock.wall() - clock.now()
        book = self._book(spool, offset)
        settle_refused(spool, book, self.prepared.company_column)
        if self.how is not None:
            in_doubt = book.counts[RowStatus.IN_DOUBT]
            settled = f"{book.counts.total() - in_doubt:,} of {spool.index.rows:,} rows settled"
            settled += f", {in_doubt:,} in doubt" if in_doubt else ""
            self.around.say(f"going on with run {self.folder.name}: {settled}")
        load = Load(self.prepared, spool, book, clock)
        load.hint = self._hint(url, first)
        try:
            load.in_doubt(self.how.in_doubt if self.how is not None else "skip")
        except UsageError:
            write_row_files(self.folder, spool, book)  # what a person is sent to look at, as it is now
            raise
        self.journal.state({"state": "sending", "to": url})
        async with open_budget(self.prepared, self.around, url, clock, first) as budget:
            while True:
                load.say, load.observer = self.around.say, self.around.observer
                await load.run(sender.send, budget, self.around.watch, signals=self.around.signals)
                if load.next_mode is None:
                    break
                load = self._fall_back(load, load.next_mode)
        try:
            load.write_files(self.folder)
            report = load.report(self.folder, url, anyio.current_time() - began)
            report.save(self.folder)
            self.journal.state({"state": "stopped" if report.unsent else "finished"})
        except RunFolderError as error:
            # The rows are where the journal says, so this is a stop, and a resume writes the files.
            load.failure = load.failure or str(error)
            report = load.report(self.folder, url, anyio.current_time() - began)
        self.around.observer.ended(report)
        return report


def _read_text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "not UTF-8 text"
        message = f"--companies @{name}: cannot be read: {reason}"
        raise UsageError(message) from error


def _check_files(job: Job) -> None:
    """Try what is read later beside the source, before a target is called or a mock server started."""
    # a target may have a company whose code reads like a query; the embedded one has numbers
    if job.to == EMBEDDED or job.companies.strip().startswith("@"):
        check_selection(job.companies, read_text=_read_text)
    if job.token_file is not None:
        TokenFile(job.token_file)


def _assign(prepared: Prepared, source: Source, picked: Sequence[CompanyInfo], known: Sequence[CompanyInfo]) -> Assign:
    codes = [company.code for company in picked]
    if prepared.company_column is None:
        return Dealt(codes)
    everyone = [company.code for company in known]
    return ByColumn(source.schema, prepared.company_column, companies=codes, known=everyone)
