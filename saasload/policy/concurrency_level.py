"""One limit on calls in flight, and what was heard that it rests on."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from saasload.model import Company
from saasload.policy.concurrency_knee import Fit, Knee, Shape

FIRST_GAIN = 2.0
SEARCH_GAIN = 1.5
"""Doubled once, for a hint may be too low, then by half more as long as no queue shows: TCP's slow start
doubles on, and ends at up to twice the knee."""

PROBE_GAIN = 1.25
"""What is tried above the highest number known to be good, later on (BBR's ProbeBW gain)."""

DIP = 0.7
"""Where the knee may be lower than all that was tried, this share of the lowest is tried."""

SLOWER_DIP = 0.5
"""Tried where replies suddenly take longer: half, which tells fewer places from slower ones in one round trip."""

SPARE = 0.3
"""Calls kept waiting at the target beyond the knee, so that no place there is idle between two calls."""

EVIDENCE = 5.0
FIRST_EVIDENCE = 12.0
"""How much better than a flat line a hinge must fit, in variances: see Knee.fit. The first round, of a handful
of replies, must not hold a load below its knee: it takes more to convince."""

SURPRISE = 0.26
SURE = 4.0
"""Replies that are off by a factor of 1.3 (in logs), and by so many standard errors, are news. At three, a load of a
hundred rounds under large jitter forgets all it knows for nothing."""

LOUDEST = 1.4
"""No single reply counts as more than four times off."""

COHORT = 0.9
STRAGGLERS = 3
"""A round ends when so many of the first calls sent in it are back: taking the first replies, whosever they
are, would take the quick ones and find the target quicker than it is. Or after so many times as many replies:
one hopeless call must not stop the clock."""

FEWEST = 4
MOST = 16
PRECISE = 0.13**2
"""Calls a round has at least, and more where jitter is large: a mean is to be known within 13 %, if 16 do."""

DOUBT = 1.5
WIDEST = 0.4
"""Standard errors by which the knee is taken for higher than it seems, up to a factor of 1.5: a call too many
waits and costs next to nothing, a place left idle costs all it could do, and is never missed."""

LARGE_JITTER = 0.06
LARGE_DOUBT = 3.5
LARGE_WIDEST = 1.1
"""Where the variance is above this (a sigma of 0.25), a few lucky calls look like a knee far too low. So it takes more
standard errors, up to a factor of 3, to hold fewer calls than at the start; never for more than at the start."""

CUT = 0.7
"""What is left of a limit after it was refused: between Reno's 0.5 and Vector's 0.9."""

QUIET = 8
"""Rounds without a refusal after which more than what was refused is tried again."""


class Seen(NamedTuple):
    """What one level was like when a call left: calls in flight with it, the round, and its number in that."""

    in_flight: int
    turn: int
    number: int


@dataclass(slots=True)
class Level:
    """One limit and what it rests on."""

    limit: int
    ceiling: int
    knee: Knee
    fit: Fit | None = None
    turn: int = 0
    in_flight: int = 0
    sent: int = 0
    replies: int = 0
    cohort: int = 0
    reached: bool = False
    searching: bool = True
    off: float = 0.0
    compared: int = 0
    allowed: float = math.inf
    quiet: int = 0
    pushed: set[Company] = field(default_factory=set)

    start: int = 1
    """The hint it began with."""

    size: float = FEWEST
    """How many of a round's calls it takes to know its mean."""

    def send(self) -> Seen:
        """Count a call that leaves."""
        self.in_flight += 1
        self.sent += 1
        if self.in_flight >= self.limit:
            self.reached = True
        return Seen(min(self.in_flight, self.ceiling), self.turn, self.sent)

    def back(self, seen: Seen, *, answered: bool) -> None:
        """Count its reply."""
        self.in_flight -= 1
        if seen.turn == self.turn:
            self.replies += answered
            self.cohort += seen.number <= self.size

    def due(self) -> bool:
        """Say whether a round is over, or a search has found what it looked for before that."""
        if self.cohort >= COHORT * self.size or self.replies >= STRAGGLERS * self.size:
            return True
        if not self.searching or not self.turn or self.replies % FEWEST or not self.replies:
            return False
        fit = self.knee.fit(EVIDENCE)
        return fit is not None and fit.shape is Shape.KNEE and fit.knee < self.knee.log(self.limit) - SURPRISE

    def queue(self, in_flight: int) -> float:
        """Return how long a call waits with so many in flight, in service times."""
        fit = self.fit
        if fit is None or fit.shape is Shape.FLAT:
            return 0.0
        return max(0.0, math.exp(self.knee.log(in_flight) - fit.knee) - 1)

    def surplus(self, in_flight: int, level: float) -> float | None:
        """Say how far a reply is from what the last round lets expect; None where that says nothing of it."""
        fit = self.fit
        if fit is None:
            return None
        at = self.knee.log(in_flight)
        if at > fit.highest + 0.1 or (at < fit.lowest - 0.1 and fit.shape is not Shape.FLAT):
            return None
        return level - fit.level(at)

    def hear(self, in_flight: int, level: float, surplus: float | None) -> None:
        """Take a reply's round trip, in logs and for a unit of work."""
        if surplus is not None and self.fit is not None:
            self.off += min(max(surplus, -LOUDEST), LOUDEST)
            self.compared += 1
            widest = 3 * math.sqrt(self.fit.variance)
            level -= surplus - min(max(surplus, -widest), widest)
        self.knee.add(in_flight, level)

    def surprised(self) -> float:
        """Return by how much this round was off, in logs, where that is more than chance; else 0."""
        if self.compared < FEWEST or self.fit is None or self.searching:
            return 0.0
        mean, fit = self.off / self.compared, self.fit
        chance = SURE * math.sqrt(fit.variance / self.compared + fit.error**2)
        return mean if abs(mean) > max(SURPRISE, chance) else 0.0

    def next_turn(self, limit: int) -> None:
        """Begin a round with a limit: what was sent before it does not count in it."""
        self.limit = limit
        self.turn += 1
        self.replies = self.compared = self.sent = self.cohort = 0
        self.off = 0.0
        self.reached = False
        self.pushed.clear()
        steady = 0.0 if self.fit is None else min(MOST, self.fit.variance / PRECISE)
        self.size = max(FEWEST, steady, limit)

    def decide(self, fade: float) -> tuple[int, str]:
        """End a round: the limit that follows from it, and why."""
        surprise = self.surprised()
        if surprise:
            self.knee.forget()
            self.fit = None
            if surprise > 0:
                return self._within(self.limit * SLOWER_DIP), f"replies take {math.exp(surprise):.1f} times as long"
            return self.limit, ""
        self.knee.fade(fade)
        fit = self.fit = self.knee.fit(EVIDENCE if self.turn else FIRST_EVIDENCE)
        if fit is None:
            return self.limit, ""
        wanted, reason = self._follow(fit)
        return self._within(wanted), reason

    def unheard(self, limit: int) -> int:
        """Forget what says nothing of the target, and take a limit that is not lower for it."""
        self.knee.forget()
        self.fit = None
        return self._within(limit)

    def _follow(self, fit: Fit) -> tuple[float, str]:
        match fit.shape:
            case Shape.FLAT:
                if not self.reached:
                    return self.limit, ""
                gain = PROBE_GAIN if not self.searching else SEARCH_GAIN if self.turn else FIRST_GAIN
                return max(self.limit + 1.0, gain * math.exp(fit.highest)), "no queue so far"
            case Shape.RISING:
                # One lone early call with few in flight may be the lowest: no lower than a dip from here.
                return DIP * max(self.limit, math.exp(fit.lowest)), "all of it queues"
            case Shape.UNKNOWN:
                return self._look(fit)
            case Shape.KNEE:
                self.searching = False
                return self._above(fit), f"more than {math.exp(fit.knee):.1f} queue"

    def _above(self, fit: Fit) -> float:
        """Return the knee and what doubt adds to it: more of that, up to the start, where jitter is large."""
        wanted = math.exp(fit.knee + min(DOUBT * fit.error, WIDEST)) + SPARE
        if fit.variance <= LARGE_JITTER or wanted >= self.start:
            return wanted
        return min(self.start, math.exp(fit.knee + min(LARGE_DOUBT * fit.error, LARGE_WIDEST)) + SPARE)

    def _look(self, fit: Fit) -> tuple[float, str]:
        """Try the other end where too little is known: more after fewer, and fewer after more."""
        if self.searching or self.limit == 1:
            return self.limit + 1.0, "a look at more"
        if self.knee.log(self.limit) < fit.highest - 0.1:
            return min(math.exp(fit.highest), SEARCH_GAIN * self.limit), "a look at more"
        return DIP * math.exp(min(fit.knee, fit.highest)), "a look at fewer"

    def _within(self, wanted: float) -> int:
        self.quiet += 1
        if self.quiet >= QUIET and self.allowed < math.inf:
            self.quiet, self.allowed = 0, max(self.allowed * 1.1, self.allowed + 1)
        return max(1, math.floor(min(round(wanted), self.ceiling, self.allowed)))

    def cut(self, refused_at: int) -> int:
        """Lower the limit after a refusal with so many in flight, and remember that."""
        self.allowed = max(1.0, min(self.allowed, refused_at - 1))
        self.quiet = 0
        self.searching = False
        return max(1, math.floor(min(self.limit * CUT, self.allowed)))
