"""How many calls to have on the wire, found while loading: for the whole target, and in each company."""

import math
import random
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from saasload.model import Company
from saasload.policy.concurrency_knee import Fit, Knee, Shape
from saasload.policy.concurrency_work import Work

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
"""Replies that are off by a factor of 1.3 (in logs), and by three standard errors, are news."""

LOUDEST = 1.4
"""No single reply counts as more than four times off."""

FADE = (0.93, 0.97)
"""What earlier replies weigh after each round, drawn anew: loaders that share a target must not probe in step."""

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

CUT = 0.7
"""What is left of a limit after it was refused: between Reno's 0.5 and Vector's 0.9."""

MANY = 3
MANY_SHARE = 0.25
"""So many companies, and this share of a round's replies, refused or failed: then it is the target, not they."""

QUIET = 8
"""Rounds without a refusal after which more than what was refused is tried again."""

KEPT = 1000
"""Changes kept for the report: enough for a day at one a minute, and a bound for worse."""


class Reply(Enum):
    """What came back, as far as this policy cares."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """Too many, or too busy: 429 and 503."""
    FAILED = "failed"
    """No answer in time, a lost connection, or another 5xx."""


class Seen(NamedTuple):
    """What one level was like when a call left: calls in flight with it, the round, and its number in that."""

    in_flight: int
    turn: int
    number: int


class Ticket(NamedTuple):
    """A call on the wire; the driver hands it back with the reply. A tuple: one is made for every call."""

    company: Company
    started: float
    target: Seen
    own: Seen | None


@dataclass(frozen=True, slots=True)
class Change:
    """A limit that changed; company None is the whole target."""

    at: float
    company: Company | None
    before: int
    after: int
    reason: str


class _Lesson(NamedTuple):
    """How much longer than expected a call took, in logs, and how long it waited, in its own work."""

    company: Company
    form: str
    rows: int
    surplus: float
    waited: float

    def own(self, common: float) -> float:
        """Return what is left of the surplus for the call itself, less what the round had in common."""
        return math.log(max(math.exp(self.surplus - common) * (1 + self.waited) - self.waited, 0.05))


@dataclass(slots=True)
class _Level:
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
        chance = 3 * math.sqrt(fit.variance / self.compared + fit.error**2)
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

    def _follow(self, fit: Fit) -> tuple[float, str]:
        match fit.shape:
            case Shape.FLAT:
                if not self.reached:
                    return self.limit, ""
                gain = PROBE_GAIN if not self.searching else SEARCH_GAIN if self.turn else FIRST_GAIN
                return max(self.limit + 1.0, gain * math.exp(fit.highest)), "no queue so far"
            case Shape.RISING:
                return DIP * math.exp(fit.lowest), "all of it queues"
            case Shape.UNKNOWN:
                return self._look(fit)
            case Shape.KNEE:
                self.searching = False
                doubt = min(DOUBT * fit.error, WIDEST)
                return math.exp(fit.knee + doubt) + SPARE, f"more than {math.exp(fit.knee):.1f} queue"

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


def useful(total: int, longest: int) -> int:
    """Return how many calls in flight can shorten a load, by the rows that remain in all and in the longest company.

    A company sends one call after another, so the load ends no sooner than its longest company. More in flight
    than it takes to have all others done by then only queue, and what queues holds up the longest.

    >>> useful(10_000, 100), useful(10_000, 4_000)
    (101, 4)
    """
    return math.ceil(total / max(1, longest)) + 1


class Concurrency:
    """An adaptive limit on two levels."""

    def __init__(self, start: int, ceiling: int, rng: random.Random, *, per_company: int = 1) -> None:
        """Start from a hint; `ceiling` and `per_company` are never exceeded."""
        start = max(1, min(start, ceiling))
        self._target = _Level(start, ceiling, Knee(ceiling), size=max(FEWEST, start))
        self._per_company = per_company
        self._companies: dict[Company, _Level] = {}
        self._work = Work()
        self._rng = rng
        self._lessons: list[_Lesson] = []
        self.changes: deque[Change] = deque(maxlen=KEPT)

    @property
    def limit(self) -> int:
        """How many calls may be on the wire, all companies together."""
        return self._target.limit

    def company_limit(self, company: Company) -> int:
        """How many calls of one company may be on the wire."""
        held = self._companies.get(company)
        return 1 if held is None else held.limit

    def sent(self, company: Company, now: float) -> Ticket:
        """Count a call that leaves; its ticket goes with the reply to `settled`."""
        if self._per_company == 1:
            return Ticket(company, now, self._target.send(), None)
        held = self._companies.get(company)
        if held is None:
            held = self._companies[company] = _Level(1, self._per_company, Knee(self._per_company))
        return Ticket(company, now, self._target.send(), held.send())

    def settled(self, ticket: Ticket, now: float, *, rows: int, form: str, reply: Reply) -> None:
        """Count a reply, or that there will be none, and what follows from it."""
        target, answered = self._target, reply is Reply.ANSWERED
        target.back(ticket.target, answered=answered)
        held = None
        if ticket.own is not None:
            held = self._companies[ticket.company]
            held.back(ticket.own, answered=answered)
        if not answered:
            self._push_back(ticket, now, reply)
            return
        took = now - ticket.started
        if took > 0:
            self._listen(ticket, form, rows, took)
        if target.due():
            self._turn(target, None, now)
        if held is not None and held.due():
            self._turn(held, ticket.company, now)

    def _listen(self, ticket: Ticket, form: str, rows: int, took: float) -> None:
        target, work = self._target, self._work
        log_work = work.log(ticket.company, form, rows)
        own = math.exp(log_work)
        typical = work.typical(own)
        level = math.log(took) - log_work
        in_flight, waited = ticket.target.in_flight, 0.0
        queue = target.queue(in_flight)
        if queue:
            # A call waits for the others' work, not for its own: a short one behind long ones is not slow.
            waited = typical * queue / own
            level += math.log((1 + queue) / (1 + waited))
        surplus = target.surplus(in_flight, level)
        if surplus is not None:
            self._lessons.append(_Lesson(ticket.company, form, rows, surplus, waited))
        if not work.known(form, rows):
            return
        target.hear(in_flight, level, surplus)
        if ticket.own is not None:
            held, flying = self._companies[ticket.company], ticket.own.in_flight
            level -= math.log(1 + queue)
            held.hear(flying, level, held.surplus(flying, level))

    def _turn(self, level: _Level, company: Company | None, now: float) -> None:
        if company is None:
            self._learn()
        after, reason = level.decide(self._rng.uniform(*FADE))
        self._change(level, company, now, (after, reason))

    def _learn(self) -> None:
        """Teach what a round's replies had beyond the round's own mean."""
        target = self._target
        fit = target.fit
        if fit is not None and not target.surprised():
            mean = target.off / target.compared if target.compared else 0.0
            for lesson in self._lessons:
                surplus = lesson.own(mean)
                self._work.learn(lesson.form, lesson.rows, surplus)
                self._work.learn_company(lesson.company, surplus, fit.variance)
        self._lessons.clear()

    def _push_back(self, ticket: Ticket, now: float, reply: Reply) -> None:
        """Lower the company; and the target where many companies are refused, once a round trip."""
        target, own = self._target, ticket.own
        if own is not None:
            held = self._companies[ticket.company]
            if own.turn == held.turn and held.limit > 1:
                self._change(held, ticket.company, now, (held.cut(own.in_flight), reply.value))
        if ticket.target.turn != target.turn:
            return
        target.pushed.add(ticket.company)
        pushed = len(target.pushed)
        if pushed >= MANY and pushed >= MANY_SHARE * (target.replies + pushed):
            self._lessons.clear()
            self._change(target, None, now, (target.cut(ticket.target.in_flight), f"{pushed} companies {reply.value}"))

    def _change(self, level: _Level, company: Company | None, now: float, decision: tuple[int, str]) -> None:
        after, reason = decision
        if after != level.limit:
            self.changes.append(Change(now, company, level.limit, after, reason))
        level.next_turn(after)
