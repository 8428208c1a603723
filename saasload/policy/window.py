"""One limit's bookkeeping: when the next call may leave.

A window never sees the server's count. It knows only when a call left and when its reply was in, and the
server counted it at some instant between the two; both kinds here hold for every such instant.
"""

import math
from collections import deque

NEVER = math.inf


class SlidingWindow:
    """At most `calls` in any `period_s` seconds, by the server's count.

    A slot frees one period after the *reply*, not after the start: the server may have counted the call as
    late as that. Measured with 0.1-2.1 s of jitter, anchoring on the start costs 232 refusals in 600 calls,
    anchoring on the reply none (docs/decisions/0003).
    """

    __slots__ = ("_calls", "_frees_at", "_open", "_period")

    def __init__(self, calls: int, period_s: float) -> None:
        """Start empty."""
        self._calls = calls
        self._period = period_s
        self._open = 0
        self._frees_at: deque[float] = deque()

    def ready_at(self, now: float) -> float:
        """Say when a call may leave: `now`, later, or NEVER while only a reply can free a slot."""
        frees_at = self._frees_at
        while frees_at and frees_at[0] <= now:
            frees_at.popleft()
        if self._open + len(frees_at) < self._calls:
            return now
        return frees_at[0] if self._open < self._calls else NEVER

    def sending(self, now: float) -> None:  # noqa: ARG002 the start does not matter here, only the reply
        """Count a call that leaves."""
        self._open += 1

    def refund(self) -> None:
        """Take a `sending` back: the call did not leave."""
        self._open -= 1

    def settled(self, now: float) -> None:
        """Count its reply: the slot frees one period from now."""
        self._open -= 1
        self._frees_at.append(now + self._period)


class FixedWindow:
    """At most `calls` in each period that the platform's clock is divided into.

    `offset` is what the platform's clock shows beyond ours, give or take `margin_s`. A call that is on the wire
    when the platform may have crossed a boundary counts on both sides, and within the margin nothing leaves.
    """

    __slots__ = ("_calls", "_late", "_margin", "_offset", "_open", "_period", "_place", "_used")

    def __init__(self, calls: int, period_s: float, *, offset: float, margin_s: float = 2.0) -> None:
        """Start empty; `offset` is the platform's clock less ours, in seconds."""
        self._calls = calls
        self._period = period_s
        self._offset = offset
        self._margin = min(margin_s, period_s / 10)
        self._place = -1
        self._used = 0
        self._open = 0
        self._late = 0

    def ready_at(self, now: float) -> float:
        """Say when a call may leave: `now`, or the next period."""
        there = now + self._offset
        self._turn(there)
        into = there % self._period
        if into < self._margin and self._place > 0:
            return now + self._margin - into
        if into >= self._period - self._margin:
            return now + self._period - into + self._margin
        if self._used < self._calls:
            return now
        return now + self._period - into + self._margin

    def sending(self, now: float) -> None:
        """Count a call that leaves."""
        self._turn(now + self._offset)
        self._used += 1
        self._open += 1

    def refund(self) -> None:
        """Take a `sending` back: the call did not leave."""
        self._used -= 1
        self._open -= 1

    def settled(self, now: float) -> None:
        """Note its reply: from the next period on it no longer counts, unless that may have begun there."""
        there = now + self._offset
        self._turn(there)
        self._open -= 1
        self._late += there % self._period >= self._period - self._margin

    def _turn(self, there: float) -> None:
        place = math.floor(there / self._period)
        if place > self._place:
            # Calls on the wire, there or here, may be counted on the far side of the boundary.
            late = self._late if place == self._place + 1 else 0
            self._place, self._used, self._late = place, self._open + late, 0


Window = SlidingWindow | FixedWindow
