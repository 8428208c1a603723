"""One company's queue: what goes next."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from saasload.doubt import Doubts, Rows
from saasload.model import Call, Company, Outcomes
from saasload.order import KeyOrder


class Quiet:
    """Nothing to send now: rows in doubt wait until the platform can no longer be storing them."""

    __slots__ = ("until",)

    def __init__(self, until: float) -> None:
        """Say when they may be settled."""
        self.until = until


class Lane:
    """The calls of one company, cut as they are needed.

    First those that were not executed, then fresh rows, then what settles the rows in doubt, and last the rows that
    waited for these: with an `order`, no row leaves before an older one of its key is settled.
    """

    def __init__(self, company: Company, rows: Rows, doubts: Doubts, order: KeyOrder | None = None) -> None:
        """Begin with the company's fresh rows."""
        self.company = company
        self.doubts = doubts
        self._rows = rows
        self._order = order
        self._queue: Iterator[Call | Outcomes] = rows.fresh()
        self._first: deque[Call] = deque()
        self._held: list[Call] = []

    def next(self, now: float) -> Call | Outcomes | Quiet | None:
        """Take what goes next; None where nothing is left, or what is left waits for a call on the wire."""
        item = self._take()
        if item is not None:
            return item
        if self.doubts.open:
            if now < self.doubts.ready_at():
                return Quiet(self.doubts.ready_at())
            self._queue = self.doubts.calls()
            return self.next(now)
        if not self._held:
            return None
        # A row in doubt that was given up may still be stored, and must not come after one that waited for it.
        if now < self.doubts.quiet_until:
            return Quiet(self.doubts.quiet_until)
        self._queue, self._held = iter(self._held), []
        return self._take()

    def put_back(self, calls: Iterable[Call]) -> None:
        """Queue calls before all others, in their order."""
        self._first.extendleft(reversed(list(calls)))

    def answered(self, call: Call, outcomes: Outcomes) -> Outcomes:
        """See a call's outcomes for what they are, by what is known of its rows from before."""
        if self._order is not None:
            outcomes = self._order.settled(call, outcomes)
        return self.doubts.reconsider(outcomes)

    def lost(self, rows: Sequence[int], now: float) -> set[int]:
        """Take rows in doubt; return those that something can be done about."""
        taken = self.doubts.add(rows, now)
        if self._order is not None and taken:
            self._order.unsettled((row, key) for row, (key, _) in self._rows.sent(taken).items())
        return taken

    def _take(self) -> Call | Outcomes | None:
        """Take the first item that may leave, and put aside what may not."""
        while True:
            item = self._first.popleft() if self._first else next(self._queue, None)
            if self._order is None or item is None:
                return item
            if isinstance(item, Outcomes):
                self._order.dropped(item)
                return item
            leaving, held = self._order.admit(item)
            if held is not None:
                self._held.append(held)
            if leaving is not None:
                return leaving
