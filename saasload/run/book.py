"""Keep what becomes of every row, and of every call: in memory for the load, in the journal for good."""

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from saasload.model import Call, Company, Note, Outcomes, RowStatus, Trip, all_rows
from saasload.run.commit import GroupCommit
from saasload.run.journal import CARRIED, LOOK_UP, Entry, Journal, Sending, Settled, unpack_notes, unpack_rows
from saasload.run.tables import ACCEPTED, CALLS, TableWriter

CRASHED = Note("crash", "the process ended while the call was on the wire")
_NAMES = {int(status): status.name.lower() for status in RowStatus}
_ACCEPTED = frozenset({RowStatus.CREATED, RowStatus.UPDATED, RowStatus.UNCHANGED})


@dataclass(slots=True)
class CompanyCount:
    """One company's figures."""

    rows: int = 0
    calls: int = 0
    outcomes: Counter[RowStatus] = field(default_factory=Counter)

    @property
    def settled(self) -> int:
        """How many rows have an outcome."""
        return self.outcomes.total()


@dataclass(frozen=True, slots=True)
class Times:
    """What the book writes beside a call: its mode, and the wall time, in seconds, at the clock's zero.

    `threads` lets the journal be written in a thread (asyncio only); a virtual clock would take it for asleep.
    """

    mode: str
    epoch: float
    threads: bool


class Book:
    """The driver's recorder.

    `statuses` holds, by row number, a RowStatus, or 0 for a row without an outcome: it was not sent, or was
    certainly not executed. A row in doubt may still become something else; any other row that is settled twice
    is a fault of ours and is said at once, for all counts rest on it.
    """

    def __init__(self, journal: Journal, *, rows: int, companies: Mapping[Company, int], times: "Times") -> None:
        """Begin with nothing settled; `rows` is the highest row number."""
        self.statuses = bytearray(rows + 1)
        self.notes: dict[int, Note] = {}
        self.companies = {company: CompanyCount(count) for company, count in companies.items()}
        self.closed_by: dict[Company | None, Note] = {}
        self.counts: Counter[RowStatus] = Counter()
        self.calls = 0
        self._journal = journal
        self._times = times
        self._commit: GroupCommit[Sending | Settled] = GroupCommit(journal.write, threads=times.threads)
        self._no = journal.last_call()

    def replay(self) -> None:
        """Take over what earlier processes of this run have written; a call without an answer leaves rows in doubt.

        Raises RunFolderError for what no process of ours can have written: the file is damaged.
        """
        try:
            with _collector_off():
                self._replay()
        except (ValueError, TypeError, LookupError, OSError, OverflowError, AssertionError) as error:
            raise self._journal.damaged(error) from error

    def _replay(self) -> None:
        plain: Counter[tuple[Company, int]] = Counter()
        # a million calls of one row each are the longest that there is to read
        for chunk in self._journal.replay_many():
            if not self._replay_plain(chunk, plain):
                for entry in map(Entry._make, chunk):
                    if entry.outcome != 0 and (entry.outcome is not None or entry.form != LOOK_UP):
                        self._mark(entry.company, _outcomes(entry))
        for (company, code), count in plain.items():
            self.counts[RowStatus(code)] += count
            self.companies[company].outcomes[RowStatus(code)] += count
        for company, count in self._journal.count_calls().items():
            self.companies[company].calls += count
            self.calls += count

    def _replay_plain(self, chunk: Sequence[tuple[Any, ...]], plain: Counter[tuple[Company, int]]) -> bool:
        """Take over calls of one row each, none of which was heard of before; else take nothing, and say False."""
        companies, _, rows, _, outcomes, _, notes = zip(*chunk, strict=True)
        if None in rows or not all(outcomes) or any(notes):
            return False
        if len(set(rows)) < len(rows) or any(map(self.statuses.__getitem__, rows)):
            return False
        for row, outcome in zip(rows, outcomes, strict=True):
            self.statuses[row] = outcome
        plain.update(zip(companies, outcomes, strict=True))
        return True

    def refused_here(self, company: Company, outcomes: Outcomes) -> None:
        """Keep the outcomes of rows that need no call: they cannot be sent, or need not be any more.

        The first are not journalled: whoever goes on with the run finds them again, by what is true then. The others
        are, as outcomes that no call brought.
        """
        if any(status in _ACCEPTED for status in outcomes.statuses):
            self._no += 1
            self._commit.add(Sending(self._no, company, CARRIED, 0, 0, 1, outcomes.rows))
            self._commit.add(Settled(self._no, 0, 0.0, "", outcomes))
        self._mark(company, outcomes)

    async def sending(self, call: Call, at: float) -> int:
        """Make durable that a call is about to leave; return its number. Raises RunFolderError where that fails.

        A question changes nothing there, so it need not be durable before it leaves.
        """
        self._no += 1
        number = self._no
        form = LOOK_UP if call.question else self._times.mode
        sent_ms = int((self._times.epoch + at) * 1000)
        self._commit.add(Sending(number, call.company, form, sent_ms, call.size, call.attempt, call.rows))
        if not call.question:
            try:
                await self._commit.durable()
            except BaseException:
                # It never leaves, and that is known: without this the next process would take it for lost.
                self._commit.add(Settled(number, 0, 0.0, "not sent", None))
                raise
        return number

    def settled(self, number: int, trip: Trip, outcomes: Outcomes | None) -> None:
        """Keep what came of a call; None where nothing of it was executed."""
        self.calls += 1
        self.companies[trip.call.company].calls += 1
        self._commit.add(Settled(number, trip.status, trip.lasted * 1000.0, trip.note, outcomes))
        if outcomes is not None:
            self._mark(trip.call.company, outcomes)

    async def flush(self) -> None:
        """Make all that was kept durable."""
        await self._commit.durable()

    def closed(self, company: Company | None, note: Note) -> None:
        """Keep why a company's rest stays unsent; None stands for all companies."""
        self.closed_by.setdefault(company, note)

    def close(self) -> None:
        """Write what is not yet written."""
        self._commit.close()

    def write_tables(self, folder: Path) -> None:
        """Write accepted.parquet and calls.parquet from the journal, which knows all processes of the run."""
        with TableWriter(folder / "accepted.parquet", ACCEPTED) as accepted:
            for rows, companies, codes, ids in self._journal.single_rows():
                accepted.extend((rows, companies, [_NAMES[code] for code in codes], ids))  # type: ignore[index]
            for company, many, statuses, identities in self._journal.many_rows():
                kept = [place for place, code in enumerate(statuses) if code in _ACCEPTED]
                names = [_NAMES[statuses[place]] for place in kept]
                columns = [many[place] for place in kept], [company] * len(kept), names
                accepted.extend((*columns, [identities[place] for place in kept]))
        with TableWriter(folder / "calls.parquet", CALLS) as calls:
            for trips in self._journal.trips():
                calls.extend(trips)

    def go_on_by(self, mode: str) -> None:
        """Write calls of another mode from now on; what had stopped the one before stops nothing any more."""
        self._times = replace(self._times, mode=mode)
        self.closed_by.pop(None, None)

    def forget_doubts(self) -> None:
        """Take a person's word that rows in doubt are not there: they are unsent again, for this process.

        The journal goes on calling them in doubt until a call of theirs is answered: whoever goes on after a crash
        asks a person anew, for by then some may be there.
        """
        doubtful = [row for row, status in enumerate(self.statuses) if status == RowStatus.IN_DOUBT]
        for row in doubtful:
            self.statuses[row] = 0
            self.notes.pop(row, None)
        for count in self.companies.values():
            del count.outcomes[RowStatus.IN_DOUBT]
        del self.counts[RowStatus.IN_DOUBT]

    def why_unsent(self, company: Company) -> Note:
        """Say why the rest of a company was not sent."""
        return self.closed_by.get(company) or self.closed_by.get(None) or Note("not-reached")

    def _mark(self, company: Company, outcomes: Outcomes) -> None:
        statuses = self.statuses
        tally: dict[RowStatus, int] = {}
        for row, status in zip(outcomes.rows, outcomes.statuses, strict=True):
            before = statuses[row]
            if before:
                self._unmark(row, RowStatus(before), status, tally)
            if status is not RowStatus.NOT_ATTEMPTED:
                statuses[row] = status
                tally[status] = tally.get(status, 0) + 1
        of_company = self.companies[company].outcomes if company in self.companies else Counter()
        for status, count in tally.items():
            self.counts[status] += count
            of_company[status] += count
        if outcomes.notes:
            self.notes.update(outcomes.notes)

    def _unmark(self, row: int, before: RowStatus, after: RowStatus, tally: dict[RowStatus, int]) -> None:
        if before is not RowStatus.IN_DOUBT:
            message = f"row {row} is settled twice: {before.name}, then {after.name}"
            raise AssertionError(message)
        tally[before] = tally.get(before, 0) - 1
        self.statuses[row] = 0
        self.notes.pop(row, None)


@contextmanager
def _collector_off() -> Iterator[None]:
    """Keep the garbage collector from walking all that is loaded each time some thousand plain tuples were made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _outcomes(entry: Entry) -> Outcomes:
    """Make outcomes of a journal's entry, without the target's ids."""
    rows = (entry.row,) if entry.rows is None else unpack_rows(entry.rows)
    if entry.outcome is None:
        return all_rows(rows, RowStatus.IN_DOUBT, CRASHED)  # type: ignore[arg-type]
    codes = entry.outcomes if entry.outcomes is not None else bytes((entry.outcome,)) * len(rows)
    notes = {} if entry.notes is None else unpack_notes(entry.notes)
    return Outcomes(rows, [RowStatus(code) for code in codes], (), notes)  # type: ignore[arg-type]
