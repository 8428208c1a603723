"""A platform that counts calls, clients that share a budget, and time that is only a number."""

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, TypeVar

from saasload.budget import MemoryStore, SharedBudget, Ticket, Wait
from saasload.budget.shared import Terms
from saasload.model import Company
from saasload.policy.headers import HeaderSpec, LimitFacts, WindowHeaders, read_limits
from saasload.policy.ledger_windows import Rule

T = TypeVar("T")

START = 1_767_614_400.0 + 17.0
SPEC = HeaderSpec((WindowHeaders("minute", 60.0, "x-limit", "x-remaining", "x-reset"),))


def at_once(asked: Coroutine[Any, Any, T]) -> T:
    """Run what never really waits."""
    try:
        asked.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


class Platform:
    """Counts calls as they come, in any stretch of a period or by its own clock, and refuses what is too much."""

    def __init__(self, rule: Rule, *, by_clock: bool, ahead_s: float = 0.0, headers: bool = True) -> None:
        """Start with nothing counted; `ahead_s` is what its clock shows beyond the world's."""
        self.rule = rule
        self.by_clock = by_clock
        self.ahead_s = ahead_s
        self.headers = headers
        self.others = 0
        """So many calls of somebody else come at the beginning of each period."""
        self.counted: deque[float] = deque()
        self.place = -1
        self.accepted = 0
        self.refused = 0

    def count(self, now: float, units: int = 1) -> tuple[bool, dict[str, str]]:
        """Count a call, or refuse it; return what the reply's headers say."""
        there, period = now + self.ahead_s, self.rule.period_s
        place = math.floor(there / period)
        if self.by_clock and place != self.place:
            self.counted.clear()
            self.counted.extend([there] * self.others)
            self.place = place
        while not self.by_clock and self.counted and self.counted[0] <= there - period:
            self.counted.popleft()
        allowed = len(self.counted) + units <= self.rule.units
        if allowed:
            self.counted.extend([there] * units)
            self.accepted += units
        else:
            self.refused += units
        return allowed, self._headers(there, place)

    def _headers(self, there: float, place: int) -> dict[str, str]:
        headers = {"date": formatdate(math.floor(there), usegmt=True)}
        if self.headers:
            period = self.rule.period_s
            reset = (place + 1) * period if self.by_clock else self.counted[0] + period
            headers |= {
                "x-limit": str(self.rule.units),
                "x-remaining": str(self.rule.units - len(self.counted)),
                "x-reset": str(math.ceil(reset * 1000)),
            }
        return headers


@dataclass
class World:
    """Clients whose lanes send as soon as they may, until a time or a number of calls."""

    platform: Platform
    rules: list[Rule]
    clients: int
    lanes: int
    rng: random.Random
    latency: Callable[[random.Random], float]
    fraction: Callable[[random.Random], float] = lambda rng: rng.random()
    rows: int = 1
    most: int = 10**9
    die_at: float = math.inf
    store: MemoryStore = field(default_factory=MemoryStore)
    now: float = START
    sent: int = 0

    def run(self, for_s: float) -> None:
        """Let time pass."""
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self.budgets = [self._client(number) for number in range(self.clients)]
        for number, budget in enumerate(self.budgets):
            for _ in range(self.lanes):
                self._at(START + self.rng.random(), lambda budget=budget, number=number: self._next(budget, number))
        while self._events and self._events[0][0] < START + for_s:
            self.now, _, act = heapq.heappop(self._events)
            act()

    def _client(self, number: int) -> SharedBudget:
        terms = Terms(f"client{number}", longest_s=120.0)
        budget = SharedBudget(self.rules, self.store, terms, rng=random.Random(number), say=print)
        facts = LimitFacts(date_s=math.floor(START + self.platform.ahead_s))
        budget.saw_date(facts, START - 0.3, START)
        return budget

    def _at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), act))

    def _next(self, budget: SharedBudget, number: int) -> None:
        if self.sent >= self.most or (number == 0 and self.now >= self.die_at):
            return
        got = at_once(budget.reserve(Company("118"), self.now, rows=self.rows))
        if isinstance(got, Wait):
            assert got.until > self.now
            self._at(got.until, lambda: self._next(budget, number))
            return
        self.sent += 1
        latency = self.latency(self.rng)
        back = self.now + latency
        self._at(self.now + latency * self.fraction(self.rng), lambda: self._count(budget, got, number, back))

    def _count(self, budget: SharedBudget, ticket: Ticket, number: int, back: float) -> None:
        units = self.rows if self.platform.rule.cost == "row" else 1
        allowed, headers = self.platform.count(self.now, units)
        self._at(back, lambda: self._reply(budget, ticket, number, headers, allowed))

    def _reply(self, budget: SharedBudget, ticket: Ticket, number: int, headers: dict[str, str], allowed: bool) -> None:
        if number == 0 and self.now >= self.die_at:
            return
        facts = read_limits(headers, SPEC, self.now)
        budget.settled(ticket, self.now, facts)
        if not allowed:
            budget.refused(ticket, self.now, facts.wait_s() or 1.0, facts)
        self._next(budget, number)
