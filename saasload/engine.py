"""Put the house together for one job; loads as library calls."""

import contextlib
import os
import random
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
from pydantic import ValidationError

from saasload.budget import COMMON_EPOCH_S, SharedBudget, open_store, store_name
from saasload.budget.shared import Terms as BudgetTerms
from saasload.clock import Clock
from saasload.companies import read_companies
from saasload.embedded import DEFAULT_TIME_SCALE, embedded_server
from saasload.errors import BusyError, DecodeError, InDoubtError, NotSentError, RunFolderError, TargetError, UsageError
from saasload.job import EMBEDDED, Job
from saasload.load import Live, Load, Watch
from saasload.model import Company, Reply
from saasload.policy.headers import header_spec, read_limits
from saasload.policy.ledger_windows import rules_of
from saasload.policy.retry import GiveUp, after_refusal
from saasload.prepare import Prepared, prepare
from saasload.profile import PlatformProfile, load_profile
from saasload.run.book import Book, Times
from saasload.run.carry import Known, carry
from saasload.run.folder import find_run, make_run_folder, new_run_id
from saasload.run.journal import Journal, create_journal, open_journal
from saasload.run.lock import run_lock
from saasload.run.report import Report
from saasload.source.base import Source
from saasload.source.fingerprint import Fingerprint, fingerprint, what_changed
from saasload.source.partition import Assign, ByColumn, CompanyInfo, Dealt, pick_companies
from saasload.source.readers import open_source
from saasload.source.spool import Spool, open_spool, write_spool
from saasload.transport import App, Network, Sender, TokenFile, open_client
from saasload.verify import Proof, Verifier

SPOOL = "spool.arrow"

FIRST_TRIES = 5
FIRST_WAIT_S = 60.0
"""How often, and how long at a time, the list of companies is tried for."""

__all__ = ["Live", "Resume", "Surroundings", "push", "push_sync", "resume", "resume_sync"]

InDoubt = Literal["ask", "stop", "resend", "skip"]
SourceChanged = Literal["refuse", "accept"]


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
    watch: Watch | None = None
    say: Callable[[str], None] = _silent
    signals: bool = False


async def push(job: Job, around: Surroundings | None = None) -> Report:
    """Load a job's rows into its companies and report what became of each.

    Raises UsageError, TargetError or RunFolderError where nothing was sent; once sending has begun, whatever
    happens ends in a report.
    """
    around = around or Surroundings()
    profile = load_profile(job.profile)
    source = open_source(job.source, format=job.format)
    prepared = prepare(job, profile, source.schema)
    folder = make_run_folder(job.runs, job.run or new_run_id())
    with run_lock(folder):
        try:
            facts = {"job": job.facts(), "profile": profile.model_dump(mode="json"), "state": "begun"}
            with contextlib.closing(create_journal(folder, facts)) as journal:
                return await _Run(prepared, folder, journal, around).load(source)
        except BaseException:
            if not (folder / SPOOL).exists():
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
    folder = find_run(runs, run)
    with run_lock(folder):
        journal = open_journal(folder)
        with contextlib.closing(journal):
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


async def verify(runs: Path, run: str | None, around: Surroundings | None = None) -> Proof:
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


def verify_sync(runs: Path, run: str | None) -> Proof:
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
        async with self._connected() as (sender, url):
            known, first = await _first_contact(sender, self.prepared)
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
        async with self._connected() as (sender, url):
            if self.prepared.job.to == EMBEDDED and self.around.app is None:
                self.around.say("the embedded mock server of this run is gone with its rows; going on with a new one")
            _, first = await _first_contact(sender, self.prepared)
            return await self._send(spool, sender, url, first)

    async def change_source(self, old: Spool) -> Report:
        """Read the source anew; rows that were there before keep the outcomes they have."""
        source = open_source(self.prepared.job.source, format=self.prepared.job.format)
        async with self._connected() as (sender, url):
            known, first = await _first_contact(sender, self.prepared)
            job = self.prepared.job
            picked = pick_companies(known, job.companies, job.partitions, read_text=_read_text)
            book = self._book(old, 0.0)
            name = f"spool-{self.journal.last_call()}.arrow"
            write_spool(source, self.folder / name, _assign(self.prepared, source, picked, known))
            with open_spool(self.folder / name) as spool:
                then = Known(book.statuses, book.notes, self.journal.ids())
                self.journal.begin_source(name, carry(old, spool, then))
                self.journal.state({"fingerprint": fingerprint(job.source).facts()})
                self.around.say(
                    f"{job.source.name}: read anew, {spool.index.rows:,} rows; known ones keep their outcomes"
                )
                return await self._send(spool, sender, url, first)

    async def prove(self, spool: Spool) -> Proof:
        """Ask the target for the rows that were accepted."""
        async with self._connected() as (sender, url):
            _, first = await _first_contact(sender, self.prepared)
            clock = self._clock(first)
            book = self._book(spool, clock.wall() - clock.now())
            verifier = Verifier(self.prepared, spool, book.statuses, sender.send, clock)
            async with self._budget(url, clock, first) as budget:
                return await verifier.prove(self.folder.name, budget)

    def _clock(self, first: Reply) -> Clock:
        """Take the time to go by: ours, or a mock's, on a wall that all processes of this machine have in common."""
        if self.around.clock is not None:
            return self.around.clock
        scale = _time_scale(self.prepared, first)
        return Clock.real() if scale == 1.0 else Clock.real(scale, epoch_s=COMMON_EPOCH_S)

    @contextlib.asynccontextmanager
    async def _budget(self, url: str, clock: Clock, first: Reply) -> AsyncIterator[SharedBudget]:
        job, profile = self.prepared.job, self.prepared.profile
        name = store_name(url, profile.name, _app(self.prepared))
        store = await open_store(job.budget_place if profile.limits else "", name)
        longest_s = (job.deadline_s or profile.deadline_s) + 5.0
        terms = BudgetTerms(f"{os.getpid()}-{secrets.token_hex(4)}", longest_s, time_scale=clock.scale)
        rng = random.Random(job.seed)  # noqa: S311 spreads waits, guards nothing
        budget = SharedBudget(rules_of(profile.limits), store, terms, rng=rng, say=self.around.say)
        wall = clock.wall()
        budget.saw_date(read_limits(first.headers, header_spec(profile), wall), wall, wall)
        try:
            yield budget
        finally:
            with anyio.CancelScope(shield=True):
                await budget.aclose()

    def _book(self, spool: Spool, wall_offset: float) -> Book:
        rows = {Company(company): part.rows for company, part in spool.index.companies.items()}
        times = Times(self.prepared.mode, wall_offset, threads=self.around.app is None)
        book = Book(self.journal, rows=spool.index.rows, companies=rows, times=times)
        book.replay()
        return book

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[Sender, str]]:
        job, around = self.prepared.job, self.around
        async with _target(job, around) as url:
            network = Network(
                keepalive_s=self.prepared.profile.keepalive_s,
                proxies="none" if job.to == EMBEDDED else "environment",
            )
            auth = None if job.token_file is None else TokenFile(job.token_file)
            headers = {} if auth else {"Authorization": f"Bearer {self.prepared.token.get_secret_value()}"}
            async with open_client(
                base_url=url, parallel=job.connections, app=around.app, auth=auth, network=network
            ) as client:
                yield Sender(url, client, headers, network=network), url

    async def _send(self, spool: Spool, sender: Sender, url: str, first: Reply) -> Report:
        began = anyio.current_time()
        clock = self._clock(first)
        offset = clock.wall() - clock.now()
        load = Load(self.prepared, spool, self._book(spool, offset), clock)
        load.in_doubt(self.how.in_doubt if self.how is not None else "skip")
        self.journal.state({"state": "sending", "to": url})
        async with self._budget(url, clock, first) as budget:
            await load.run(sender.send, budget, self.around.watch, signals=self.around.signals)
        try:
            load.write_files(self.folder)
            report = load.report(self.folder, url, anyio.current_time() - began)
            report.save(self.folder)
            self.journal.state({"state": "stopped" if report.unsent else "finished"})
        except RunFolderError as error:
            # The rows are where the journal says, so this is a stop, and a resume writes the files.
            load.failure = load.failure or str(error)
            report = load.report(self.folder, url, anyio.current_time() - began)
        return report


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


async def _first_contact(sender: Sender, prepared: Prepared) -> tuple[list[CompanyInfo], Reply]:
    rng = random.Random(prepared.job.seed)  # noqa: S311 spreads waits, guards nothing
    retry = prepared.profile.retry
    for attempt in range(1, FIRST_TRIES + 1):
        try:
            return await read_companies(sender.send, prepared.profile)
        except NotSentError as error:
            message = f"{error}; is the server running, and is the address right?"
            raise TargetError(message) from error
        except (BusyError, InDoubtError, DecodeError) as error:
            # A list may be asked for as often as it takes; but whoever started this waits for a first word.
            asked = error.retry_after_s if isinstance(error, BusyError) else None
            decision = after_refusal(retry, attempt, asked, rng)
            if attempt == FIRST_TRIES or isinstance(decision, GiveUp) or decision.delay_s > FIRST_WAIT_S:
                raise TargetError(f"{error}; try again later") from error
            await anyio.sleep(decision.delay_s / max(prepared.job.time_scale or 1.0, 1.0))
    raise AssertionError


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
    return scale if 0.0 < scale <= 1e6 else 1.0


def _app(prepared: Prepared) -> str:
    """Tell one app from another at a target by its token, of which no store can give anything away."""
    job = prepared.job
    return str(job.token_file) if job.token_file is not None else prepared.token.get_secret_value()


def _assign(prepared: Prepared, source: Source, picked: Sequence[CompanyInfo], known: Sequence[CompanyInfo]) -> Assign:
    codes = [company.code for company in picked]
    if prepared.company_column is None:
        return Dealt(codes)
    everyone = [company.code for company in known]
    return ByColumn(source.schema, prepared.company_column, companies=codes, known=everyone)
