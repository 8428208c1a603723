"""Carry outcomes over to a source that has changed: rows are the same where all their values are."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from saasload.errors import UsageError
from saasload.model import ROW_COLUMN, Company, Note, Outcomes, RowStatus
from saasload.source.spool import Spool

Content = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the rows as they were: status by row number, notes, and the target's ids."""

    statuses: bytearray
    notes: Mapping[int, Note]
    ids: Mapping[int, str]


def carry(old: Spool, new: Spool, known: Known) -> Iterator[tuple[Company, Outcomes]]:
    """Give the new row numbers the outcomes that the same rows had, company by company.

    Only what the target has heard of is carried: a row that was refused here is judged anew. Raises UsageError
    where rows cannot be told apart: the columns differ, or equal rows had different outcomes; and where one that the
    target has heard of would go to another company now, as rows do that are dealt by their place.
    """
    if set(old.schema.names) != set(new.schema.names):
        gone = ", ".join(sorted(set(old.schema.names) ^ set(new.schema.names)))
        message = f"the source has other columns than it had ({gone}): its rows cannot be told apart by content"
        raise UsageError(message)
    names = [name for name in old.schema.names if name != ROW_COLUMN]
    elsewhere: dict[int, str] = {}
    for company in dict.fromkeys((*new.index.companies, *old.index.companies)):
        settled = _settled(old, company, names, known)
        if settled:
            outcomes = _matched(new, company, names, settled, known)
            # the hash alone: these may be all rows of the source
            elsewhere.update((hash(content), company) for content, rows in settled.items() if rows)
            if len(outcomes):
                yield Company(company), outcomes
    if elsewhere:
        _stay_put(new, names, elsewhere)


def _stay_put(new: Spool, names: list[str], gone: Mapping[int, str]) -> None:
    """Refuse a row that went to one company and would go to another now."""
    for company in new.index.companies:
        for row, content in _rows(new, company, names):
            before = gone.get(hash(content), company)
            if before != company:
                message = (
                    f"row {row} of the new source would go to company {company}, and went to {before} before: rows "
                    "without a company are dealt by their place; push the new rows as a run of their own"
                )
                raise UsageError(message)


def _settled(spool: Spool, company: str, names: list[str], known: Known) -> dict[Content, deque[int]]:
    """Sort a company's settled rows by content; equal rows must all be settled, and alike."""
    found: dict[Content, deque[int]] = defaultdict(deque)
    fates: dict[Content, int] = {}
    if company not in spool.index.companies:
        return {}
    for row, content in _rows(spool, company, names):
        status = _fate(row, known)
        if fates.setdefault(content, status) != status:
            message = (
                f"row {row} of the old source equals another one that had a different outcome: told apart by nothing"
            )
            raise UsageError(message)
        if status:
            found[content].append(row)
    return dict(found)


def _fate(row: int, known: Known) -> int:
    status = known.statuses[row]
    refused_here = status == RowStatus.REJECTED and not known.notes[row].http_status
    return 0 if refused_here else status


def _matched(
    spool: Spool, company: str, names: list[str], settled: Mapping[Content, deque[int]], known: Known
) -> Outcomes:
    rows, statuses, ids, notes = [], [], [], {}
    for row, content in _rows(spool, company, names) if company in spool.index.companies else ():
        before = settled.get(content)
        if not before:
            continue
        old = before.popleft()
        rows.append(row)
        statuses.append(RowStatus(known.statuses[old]))
        ids.append(known.ids.get(old, ""))
        if old in known.notes:
            notes[row] = known.notes[old]
    return Outcomes(rows, statuses, ids, notes)


def _rows(spool: Spool, company: str, names: list[str]) -> Iterator[tuple[int, Content]]:
    for batch in spool.company_batches(company):
        columns = [batch.column(name).to_pylist() for name in names]
        numbers = batch.column(ROW_COLUMN).to_pylist()
        for row, *values in zip(numbers, *columns, strict=True):
            # lists and dictionaries of nested columns have no hash
            yield row, tuple(value if _plain(value) else repr(value) for value in values)


def _plain(value: object) -> bool:
    return not isinstance(value, list | dict)
