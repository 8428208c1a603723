"""Prove from replies that a platform counts in periods of its clock, and not in a sliding window.

A window anchored on replies is safe on either platform, and on one that counts by the clock gives away the rest of
each period after a pause. Two things together are proof: each reset is a whole number of periods, and a reply counts
fewer calls than we alone have certainly made in the period that ends with it. A sliding window cannot do that.
"""

from collections import deque


class Alignment:
    """Watches one window's replies."""

    __slots__ = ("_made", "_off_grid", "_period", "_reset", "proved")

    def __init__(self, units: int, period_s: float) -> None:
        """Start with no evidence."""
        self._period = period_s
        self._made: deque[tuple[float, float]] = deque(maxlen=min(units, 1000))
        self._reset = 0.0
        self._off_grid = False
        self.proved = False

    def heard(self, sent: float, replied: float, used: int | None, reset_at_s: float | None) -> bool:
        """Take one accepted call's times and what its reply says; return whether the matter is proved by now."""
        if used is not None and reset_at_s is not None and not self.proved:
            self._off_grid = self._off_grid or reset_at_s % self._period != 0.0
            if reset_at_s > self._reset and not self._off_grid:
                # Certainly counted before this call was, and no longer than a period before it.
                surely = sum(then > replied - self._period and back <= sent for then, back in self._made)
                self.proved = self._reset > 0.0 and used <= surely
            self._reset = max(self._reset, reset_at_s)
        if not self.proved:
            self._made.append((sent, replied))
        return self.proved
