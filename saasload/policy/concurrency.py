"""How many calls to have on the wire, found while loading: for the whole target, and in each company."""

import math
import random
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

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
WIDEST = 0.35
"""Standard errors by which the knee is taken for higher than it seems, up to a factor of 1.4: a call too many
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


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call on the wire; the driver hands it back with the reply."""

    company: Company
    started: float
    in_flight: int
    in_company: int
    turn: int
    company_turn: int
    number: int


@dataclass(frozen=True, slots=True)
class Change:
    """A limit that changed; company None is the whole target."""

    at: float
    company: Company | None
    before: int
    after: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Lesson:
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

    @property
    def size(self) -> float:
        """Return how many of a round's calls it takes to know its mean."""
        steady = 0.0 if self.fit is None else min(MOST, self.fit.variance / PRECISE)
        return max(FEWEST, steady, self.limit)

    def due(self) -> bool:
        """Say whether a round is over, or a search has found what it looked for before that."""
        if self.cohort >= COHORT * self.size or self.replies >= STRAGGLERS * self.size:
            return True
        if not self.searching or not self.turn or self.replies % FEWEST or not self.replies:
            return False
        fit = self.knee.fit()
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
        mean = self.off / self.compared
        return mean if abs(mean) > max(SURPRISE, 4 * math.sqrt(self.fit.variance / self.compared)) else 0.0

    def next_turn(self) -> None:
        """Begin a round: what was sent before it does not count in it."""
        self.turn += 1
        self.replies = self.compared = self.sent = self.cohort = 0
        self.off = 0.0
        self.reached = False
        self.pushed.clear()

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
        fit = self.fit = self.knee.fit()
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
                if self.knee.log(self.limit) < fit.highest - 0.1:
                    return min(math.exp(fit.highest), SEARCH_GAIN * self.limit), "a look at more"
                return DIP * math.exp(min(fit.knee, fit.highest)), "a look at fewer"
            case Shape.KNEE:
                self.searching = False
                knee = math.exp(fit.knee + min(DOUBT * fit.error, WIDEST))
                return knee + SPARE, f"more than {math.exp(fit.knee):.1f} queue"

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


class Concurrency:
    """An adaptive limit on two levels."""

    def __init__(self, start: int, ceiling: int, rng: random.Random, *, per_company: int = 1) -> None:
        """Start from a hint; `ceiling` and `per_company` are never exceeded."""
        self._target = _Level(max(1, min(start, ceiling)), ceiling, Knee(ceiling))
        self._per_company = per_company
        self._companies: dict[Company, _Level] = {}
        self._flying: dict[Company, int] = {}
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
        target, held = self._target, self._companies.get(company)
        if held is None:
            held = self._companies[company] = _Level(1, self._per_company, Knee(self._per_company))
        for level in (target, held):
            level.in_flight += 1
            level.sent += 1
            if level.in_flight >= level.limit:
                level.reached = True
        return Ticket(
            company,
            now,
            min(target.in_flight, target.ceiling),
            min(held.in_flight, held.ceiling),
            target.turn,
            held.turn,
            target.sent,
        )

    def settled(self, ticket: Ticket, now: float, *, rows: int, form: str, reply: Reply) -> None:
        """Count a reply, or that there will be none, and what follows from it."""
        target, held = self._target, self._companies[ticket.company]
        target.in_flight -= 1
        held.in_flight -= 1
        if reply is not Reply.ANSWERED:
            self._push_back(ticket, now, reply)
            return
        if ticket.turn == target.turn:
            target.replies += 1
            target.cohort += ticket.number <= target.size
        held.replies += ticket.company_turn == held.turn
        took = now - ticket.started
        if took > 0:
            self._listen(ticket, form, rows, took)
        if target.due():
            self._turn(target, None, now)
        if self._per_company > 1 and held.replies >= max(FEWEST, held.limit):
            self._turn(held, ticket.company, now)

    def _listen(self, ticket: Ticket, form: str, rows: int, took: float) -> None:
        target, work = self._target, self._work
        log_work = work.log(ticket.company, form, rows)
        typical = work.typical(log_work)
        # A call waits for the others' work, not for its own: a short one behind long ones is not slow.
        queue = target.queue(ticket.in_flight)
        waited = typical * queue / math.exp(log_work)
        level = math.log(took) - log_work + math.log((1 + queue) / (1 + waited))
        surplus = target.surplus(ticket.in_flight, level)
        if surplus is not None:
            self._lessons.append(_Lesson(ticket.company, form, rows, surplus, waited))
        if not work.known(form, rows):
            return
        target.hear(ticket.in_flight, level, surplus)
        if self._per_company > 1:
            held = self._companies[ticket.company]
            level -= math.log(1 + queue)
            held.hear(ticket.in_company, level, held.surplus(ticket.in_company, level))

    def _turn(self, level: _Level, company: Company | None, now: float) -> None:
        if company is None:
            self._learn()
        after, reason = level.decide(self._rng.uniform(*FADE))
        level.next_turn()
        self._set(level, company, now, (after, reason))

    def _learn(self) -> None:
        """Teach what a round's replies had beyond the round's own mean."""
        target = self._target
        fit = target.fit
        if fit is not None and not target.surprised():
            mean = target.off / target.compared if target.compared else 0.0
            for lesson in self._lessons:
                surplus = lesson.own(mean)
                self._work.learn(lesson.company, lesson.form, lesson.rows, surplus)
                self._work.learn_company(lesson.company, surplus, fit.variance)
        self._lessons.clear()

    def _push_back(self, ticket: Ticket, now: float, reply: Reply) -> None:
        target, held = self._target, self._companies[ticket.company]
        if ticket.company_turn == held.turn and held.limit > 1:
            after = held.cut(ticket.in_company)
            held.next_turn()
            self._set(held, ticket.company, now, (after, f"{reply.value}"))
        if ticket.turn != target.turn:
            return
        target.pushed.add(ticket.company)
        pushed = len(target.pushed)
        if pushed >= MANY and pushed >= MANY_SHARE * (target.replies + pushed):
            after = target.cut(ticket.in_flight)
            target.next_turn()
            self._lessons.clear()
            self._set(target, None, now, (after, f"{pushed} companies {reply.value}"))

    def _set(self, level: _Level, company: Company | None, now: float, decision: tuple[int, str]) -> None:
        after, reason = decision
        if after != level.limit:
            self.changes.append(Change(now, company, level.limit, after, reason))
            level.limit = after
