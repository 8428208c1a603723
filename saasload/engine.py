"""Put the house together for one job; loads as library calls."""

import contextlib
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
from pydantic import ValidationError

from saasload.clock import Clock
from saasload.companies import read_companies
from saasload.embedded import DEFAULT_TIME_SCALE, embedded_server
from saasload.errors import NotSentError, RunFolderError, TargetError, TransportError, UsageError
from saasload.job import EMBEDDED, Job
from saasload.load import Live, Load, Watch
from saasload.model import Company, Reply
from saasload.prepare import Prepared, prepare
from saasload.profile import PlatformProfile, load_profile
from saasload.run.book import Book, Times
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

SPOOL = "spool.arrow"

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
    prepared = prepare(job, profile, source.columns)
    folder = make_run_folder(job.runs, job.run or new_run_id())
    with run_lock(folder):
        try:
            journal = create_journal(folder)
            with contextlib.closing(journal):
                journal.state({"job": job.facts(), "profile": profile.model_dump(mode="json"), "state": "begun"})
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


async def resume(
    runs: Path, run: str | None, how: Resume | None = None, around: Surroundings | None = None
) -> Report:
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
            if not (folder / SPOOL).exists():
                source = open_source(job.source, format=job.format)
                prepared = prepare(job, profile, source.columns)
                return await _Run(prepared, folder, journal, around).load(source)
            with open_spool(folder / SPOOL) as spool:
                prepared = prepare(job, profile, spool.schema.names[:-1])
                _check_source(job, facts, how, around)
                return await _Run(prepared, folder, journal, around, how).go_on(spool)


def resume_sync(
    runs: Path, run: str | None, how: Resume | None = None, around: Surroundings | None = None
) -> Report:
    """Do what `resume` does, for callers without an event loop."""
    return anyio.run(partial(resume, runs, run, how, around), backend_options={"use_uvloop": _has_uvloop()})


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


def _check_source(job: Job, facts: Mapping[str, Any], how: Resume, around: Surroundings) -> None:
    """Refuse a source that is not what it was; the spool holds its rows as they were, so a lost one is no loss."""
    if not job.source.exists():
        around.say(f"{job.source}: no longer there; going on with its rows as they were read")
        return
    changed = what_changed(Fingerprint.of_facts(facts["fingerprint"]), fingerprint(job.source))
    if changed and how.source_changed == "refuse":
        message = (
            f"{job.source.name}: changed since the run began: {changed}; put the old file back, "
            "or go on with --source-changed=accept, or push the new file as a run of its own"
        )
        raise UsageError(message)


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
                base_url=url, parallel=job.parallel, app=around.app, auth=auth, network=network
            ) as client:
                yield Sender(url, client, headers, network=network), url

    async def _send(self, spool: Spool, sender: Sender, url: str, first: Reply) -> Report:
        began = anyio.current_time()
        clock = self.around.clock or Clock.real(_time_scale(self.prepared, first))
        offset = _wall_offset(first, clock)
        rows = {Company(company): part.rows for company, part in spool.index.companies.items()}
        times = Times(self.prepared.mode, offset, threads=self.around.app is None)
        book = Book(self.journal, rows=spool.index.rows, companies=rows, times=times)
        book.replay()
        load = Load(self.prepared, spool, book, clock, offset)
        load.in_doubt(self.how.in_doubt if self.how is not None else "skip")
        self.journal.state({"state": "sending", "to": url})
        await load.run(sender.send, self.around.watch, signals=self.around.signals)
        load.write_files(self.folder)
        report = load.report(self.folder, url, anyio.current_time() - began)
        report.save(self.folder)
        self.journal.state({"state": "stopped" if report.unsent else "finished"})
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
    try:
        return await read_companies(sender.send, prepared.profile)
    except TransportError as error:
        hint = "is the server running, and is the address right?" if isinstance(error, NotSentError) else "try again"
        raise TargetError(f"{error}; {hint}") from error


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


def _wall_offset(first: Reply, clock: Clock) -> float:
    """Estimate what the target's wall clock shows beyond our `now`, from its first reply's Date."""
    try:
        return parsedate_to_datetime(first.headers["date"]).timestamp() - clock.now()
    except (KeyError, ValueError, TypeError):
        return clock.wall() - clock.now()


def _assign(
    prepared: Prepared, source: Source, picked: Sequence[CompanyInfo], known: Sequence[CompanyInfo]
) -> Assign:
    codes = [company.code for company in picked]
    if prepared.company_column is None:
        return Dealt(codes)
    everyone = [company.code for company in known]
    return ByColumn(source.schema, prepared.company_column, companies=codes, known=everyone)
