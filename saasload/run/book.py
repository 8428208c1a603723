"""Keep what becomes of every row, and of every call."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from saasload.model import Call, Company, Note, Outcomes, RowStatus, Trip
from saasload.run.tables import ACCEPTED, CALLS, TableWriter


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


class Book:
    """The driver's recorder: one byte a row, one line a call, and the accepted rows as they come.

    `statuses` holds, by row number, a RowStatus, or 0 for a row without an outcome: it was not sent. A row
    settled twice is a fault of ours and is said at once, for all counts rest on it.
    """

    def __init__(self, folder: Path, *, rows: int, companies: Mapping[Company, int], mode: str, epoch: float) -> None:
        """Open the files that grow with the load; `epoch` is the wall time, in seconds, at the clock's zero."""
        self.statuses = bytearray(rows + 1)
        self.notes: dict[int, Note] = {}
        self.companies = {company: CompanyCount(count) for company, count in companies.items()}
        self.closed_by: dict[Company | None, Note] = {}
        self.counts: Counter[RowStatus] = Counter()
        self.calls = 0
        self._mode = mode
        self._epoch = epoch
        self._accepted = TableWriter(folder / "accepted.parquet", ACCEPTED)
        self._calls = TableWriter(folder / "calls.parquet", CALLS)

    def refused_here(self, company: Company, outcomes: Outcomes) -> None:
        """Keep the outcomes of rows that were not sent since they cannot be."""
        self._keep(company, outcomes)

    def sending(self, call: Call) -> None:
        """Take note that a call is about to leave."""

    def settled(self, call: Call, outcomes: Outcomes) -> None:
        """Keep the outcomes of rows that need nothing more."""
        self._keep(call.company, outcomes)

    def closed(self, company: Company | None, note: Note) -> None:
        """Keep why a company's rest stays unsent; None stands for all companies."""
        self.closed_by.setdefault(company, note)

    def trip(self, trip: Trip) -> None:
        """Keep one request's line."""
        call = trip.call
        self.calls += 1
        self.companies[call.company].calls += 1
        at_ms = int((self._epoch + trip.started) * 1000)
        self._calls.add(
            (at_ms, call.company, self._mode, len(call.rows), call.size,
             trip.status, call.attempt, trip.lasted * 1000.0, trip.note)
        )  # fmt: skip

    def close(self) -> None:
        """Finish the files that grew with the load."""
        self._accepted.close()
        self._calls.close()

    def why_unsent(self, company: Company) -> Note:
        """Say why the rest of a company was not sent."""
        return self.closed_by.get(company) or self.closed_by.get(None) or Note("not-reached")

    def _keep(self, company: Company, outcomes: Outcomes) -> None:
        statuses = self.statuses
        for row, status in zip(outcomes.rows, outcomes.statuses, strict=True):
            if statuses[row]:
                message = f"row {row} is settled twice: {RowStatus(statuses[row]).name}, then {status.name}"
                raise AssertionError(message)
            statuses[row] = status
        tally = Counter(outcomes.statuses)
        self.counts.update(tally)
        if company in self.companies:
            self.companies[company].outcomes.update(tally)
        self.notes.update(outcomes.notes)
        if not outcomes.notes:
            names = [status.name.lower() for status in outcomes.statuses]
            self._accepted.extend((outcomes.rows, [company] * len(names), names, outcomes.ids))
            return
        for row, status, identity in zip(outcomes.rows, outcomes.statuses, outcomes.ids, strict=True):
            if status.accepted:
                self._accepted.add((row, company, status.name.lower(), identity))
