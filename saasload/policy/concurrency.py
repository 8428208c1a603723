"""How many calls to have on the wire, found while loading: for the whole target, and in each company."""

import math
import random
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from saasload.model import Company
from saasload.policy.concurrency_knee import Knee
from saasload.policy.concurrency_level import FEWEST, Level, Seen
from saasload.policy.concurrency_work import Work

FADE = (0.93, 0.97)
"""What earlier replies weigh after each round, drawn anew: loaders that share a target must not probe in step."""

MANY = 3
MANY_SHARE = 0.25
"""So many companies, and this share of a round's replies, refused or failed: then it is the target, not they."""

BUSY = 0.3
"""Where this process works for so much of a core's time, replies wait for itself as much as for the target: then
rising round trips are no reason for fewer calls than at the start. A core that others want too is never much busier."""

CALM = 4
"""Rounds in which it worked less, until what replies take is the target's own time again: near that half, a limit
that follows every other round would swing."""

KEPT = 1000
"""Changes kept for the report: enough for a day at one a minute, and a bound for worse."""


class Reply(Enum):
    """What came back, as far as this policy cares."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """Too many, or too busy: 429 and 503."""
    FAILED = "failed"
    """No answer in time, a lost connection, or another 5xx."""


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
        self._target = Level(start, ceiling, Knee(ceiling), start=start, size=max(FEWEST, start))
        self._per_company = per_company
        self._companies: dict[Company, Level] = {}
        self._work = Work()
        self._rng = rng
        self._start = start
        self._spent: float | None = None
        self._turned = 0.0
        self._calm = CALM
        self.found = start
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
            held = self._companies[company] = Level(1, self._per_company, Knee(self._per_company))
        return Ticket(company, now, self._target.send(), held.send())

    def settled(self, ticket: Ticket, now: float, *, rows: int, form: str, reply: Reply, spent: float = 0.0) -> None:
        """Count a reply, or that there will be none, and what follows from it.

        `spent` is how long a core has worked for this process so far, in seconds of the same time as `now`.
        """
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
        if self._spent is None:
            self._spent, self._turned = spent, now
        if target.due():
            self._turn_target(now, spent)
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

    def _turn_target(self, now: float, spent: float) -> None:
        """End a round of the target: one in which this process took the time lowers nothing."""
        passed, worked = now - self._turned, spent - (self._spent or 0.0)
        self._turned, self._spent = now, spent
        self._calm = 0 if worked > BUSY * passed else self._calm + 1
        self._turn(self._target, None, now, least=0 if self._calm >= CALM else self._start)
        self.found = self._target.limit

    def _turn(self, level: Level, company: Company | None, now: float, *, least: int = 0) -> None:
        if company is None:
            self._learn()
        after, reason = level.decide(self._rng.uniform(*FADE))
        if after < least:
            after, reason = level.unheard(least), "this machine is what takes the time"
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

    def _change(self, level: Level, company: Company | None, now: float, decision: tuple[int, str]) -> None:
        after, reason = decision
        if after != level.limit:
            self.changes.append(Change(now, company, level.limit, after, reason))
        level.next_turn(after)
