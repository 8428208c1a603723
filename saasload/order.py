"""Rows with one key, in a mode that creates or updates by it: the older is settled before the newer leaves."""

from collections.abc import Iterable, Iterator

from saasload.model import Call, Note, Outcomes, RowStatus
from saasload.wire.cut import shrink

REPLACED = "replaced"
"""The reason of a row in doubt that needs nothing more: a newer row of the source is there under its key."""

_OPEN = frozenset({RowStatus.IN_DOUBT, RowStatus.NOT_ATTEMPTED})


def replaced_note() -> Note:
    """Say why a row that was in doubt is not sent again."""
    return Note(REPLACED, "a newer row of the source has this key, and is there")


class KeyOrder:
    """Keeps a company's rows of one key in the order of the source, whatever is lost, refused or repeated.

    Only rows that are not settled are kept in mind: those in doubt, those held back, and, unless calls of the company
    follow each other anyway (`one_by_one`), those on the wire. In one call a key may stand twice: the platform works
    through it in order.
    """

    def __init__(self, overhead: int, *, one_by_one: bool) -> None:
        """Begin with nothing unsettled; `overhead` is what a call weighs beside its rows."""
        self._overhead = overhead
        self._one_by_one = one_by_one
        self._unsettled: dict[str, set[int]] = {}

    def admit(self, call: Call) -> tuple[Call | None, Call | None]:
        """Part a call into what may leave now and what has to wait for an older row of its key."""
        if self._one_by_one and not self._unsettled:
            return call, None
        leaving: set[int] = set()
        for row, key in _keyed(call):
            older = self._unsettled.get(key)
            if older is None or not any(other < row and other not in leaving for other in older):
                leaving.add(row)
        held = set(call.rows) - leaving
        self.unsettled((row, key) for row, key in _keyed(call) if row in held or not self._one_by_one)
        if not held:
            return call, None
        return (self._part(call, leaving) if leaving else None), self._part(call, held)

    def unsettled(self, rows: Iterable[tuple[int, str]]) -> None:
        """Keep rows and their keys in mind."""
        for row, key in rows:
            if key.strip():
                self._unsettled.setdefault(key.strip(), set()).add(row)

    def settled(self, call: Call, outcomes: Outcomes) -> Outcomes:
        """Let go of a call's rows, but for those that go again at once; a row that a newer one replaced is done."""
        if outcomes.notes and not _OPEN.isdisjoint(outcomes.statuses):
            outcomes = _without_replaced(call, outcomes)
        if self._unsettled:
            for (row, key), status in zip(_keyed(call), outcomes.statuses, strict=True):
                if status is not RowStatus.NOT_ATTEMPTED:
                    self._forget(row, key)
        return outcomes

    def dropped(self, outcomes: Outcomes) -> None:
        """Let go of rows that are settled without a call."""
        if self._unsettled:
            rows = set(outcomes.rows)
            for key in list(self._unsettled):
                for row in self._unsettled[key] & rows:
                    self._forget(row, key)

    def _forget(self, row: int, key: str) -> None:
        rows = self._unsettled.get(key)
        if rows is not None:
            rows.discard(row)
            if not rows:
                del self._unsettled[key]

    def _part(self, call: Call, rows: set[int]) -> Call:
        part = shrink(call, rows, self._overhead)
        return Call(call.company, part.fragments, part.size, call.attempt)


def _without_replaced(call: Call, outcomes: Outcomes) -> Outcomes:
    """See a row whose answer is missing as done where a newer row of its call, with its key, was accepted.

    Sent again it would put the older values over the newer ones.
    """
    newest = {key: row for (row, key), status in zip(_keyed(call), outcomes.statuses, strict=True) if status.accepted}
    newest.pop("", None)
    statuses, notes = list(outcomes.statuses), dict(outcomes.notes)
    for place, (row, key) in enumerate(_keyed(call)):
        if statuses[place] in _OPEN and newest.get(key, 0) > row:
            statuses[place] = RowStatus.UNCHANGED
            notes[row] = replaced_note()
    return Outcomes(outcomes.rows, statuses, outcomes.ids, notes, outcomes.retry_after)


def _keyed(call: Call) -> Iterator[tuple[int, str]]:
    """Give each row with its key as the platform compares it: without what pads it."""
    return zip(call.rows, map(str.strip, call.fragments.keys), strict=True)
