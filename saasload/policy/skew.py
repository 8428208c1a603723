"""What the platform's clock shows beyond ours, as bounds that hold.

A reply's Date is a whole second that began before the reply did, and the reply was made between its request and its
arrival. So each exchange gives an interval that the difference lies in, and the intersection of all of them soon
is as narrow as the fastest reply (the rule of Marzullo's algorithm, which NTP uses, RFC 5905 section 11.2.1).
"""

from dataclasses import dataclass

STALE_S = 1.0
"""A server may make its Date once a second and use it for all replies until the next (nginx, Kestrel, uvicorn)."""

DRIFT = 1e-4
"""Quartz clocks go wrong by less than this: 100 ppm."""

NOTABLE_S = 0.01

UNKNOWN_S = 5.0
"""What two machines' clocks may differ by where no reply has told: far more than NTP leaves."""


@dataclass(frozen=True, slots=True)
class Skew:
    """The server's clock less ours lies between `lo` and `hi`, in seconds."""

    lo: float = -UNKNOWN_S
    hi: float = UNKNOWN_S

    @property
    def middle(self) -> float:
        """The best single guess."""
        return (self.lo + self.hi) / 2.0


class SkewEstimate:
    """Bounds that narrow with each reply."""

    __slots__ = ("_apart", "_at", "_known", "now")

    def __init__(self) -> None:
        """Know nothing."""
        self._known = False
        self._at = 0.0
        self._apart = 0.0
        self.now = Skew()

    def heard(self, date_s: float | None, sent: float, replied: float) -> Skew:
        """Narrow the bounds by one reply, whose request left and which arrived at these readings of our wall clock.

        Where a reply contradicts what is known - our clock was set, or the platform has several servers whose clocks
        differ - both stay possible from then on.
        """
        if date_s is None:
            return self.now
        lo, hi = date_s - replied, date_s + 1.0 + STALE_S - sent
        if self._known:
            drifted = DRIFT * max(0.0, replied - self._at)
            known_lo, known_hi = self.now.lo - drifted, self.now.hi + drifted
            if lo <= known_lo and hi >= known_hi and drifted < NOTABLE_S:
                return self.now
            if lo > known_hi or hi < known_lo:
                self._apart = max(self._apart, lo - known_hi, known_lo - hi)
                lo, hi = min(lo, known_lo), max(hi, known_hi)
            else:
                lo, hi = max(lo, known_lo), min(hi, known_hi)
                short = self._apart - (hi - lo)
                lo, hi = (lo, hi) if short <= 0.0 else (lo - short, hi + short)
        self._known, self._at = True, replied
        self.now = Skew(lo, hi)
        return self.now
