"""One company's queue: what goes next."""

from collections import deque
from collections.abc import Iterable, Iterator

from saasload.doubt import Doubts, Rows
from saasload.model import Call, Company, Outcomes


class Quiet:
    """Nothing to send now: rows in doubt wait until the platform can no longer be storing them."""

    __slots__ = ("until",)

    def __init__(self, until: float) -> None:
        """Say when they may be settled."""
        self.until = until


class Lane:
    """The calls of one company, cut as they are needed.

    First those that were not executed, then fresh rows, then what settles the rows in doubt.
    """

    def __init__(self, company: Company, rows: Rows, doubts: Doubts) -> None:
        """Begin with the company's fresh rows."""
        self.company = company
        self.doubts = doubts
        self._queue: Iterator[Call | Outcomes] = rows.fresh()
        self._first: deque[Call] = deque()

    def next(self, now: float) -> Call | Outcomes | Quiet | None:
        """Take what goes next; None where nothing is left."""
        if self._first:
            return self._first.popleft()
        item = next(self._queue, None)
        if item is not None or not self.doubts.open:
            return item
        if now < self.doubts.ready_at():
            return Quiet(self.doubts.ready_at())
        self._queue = self.doubts.calls()
        return self.next(now)

    def put_back(self, calls: Iterable[Call]) -> None:
        """Queue calls before all others, in their order."""
        self._first.extendleft(reversed(list(calls)))
