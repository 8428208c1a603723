"""A discrete-event model of one loader and one target: a heap of events, no loop and no real time."""

import heapq
import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from saasload.model import Company
from saasload.policy.concurrency import Reply, Ticket, useful

REFUSAL_S = 0.05
"""What it takes a target to say no."""


class Controller(Protocol):
    """Whoever decides how many calls are on the wire."""

    @property
    def limit(self) -> int:
        """How many calls may be on the wire."""

    def company_limit(self, company: Company) -> int:
        """How many of one company."""

    def sent(self, company: Company, now: float) -> Ticket:
        """Count a call that leaves."""

    def settled(self, ticket: Ticket, now: float, *, rows: int, form: str, reply: Reply, spent: float = 0.0) -> None:
        """Count its reply; `spent` is how long the loader's core has worked."""


@dataclass(frozen=True, slots=True)
class Phase:
    """How the target is from a time on."""

    slots: int = 8
    slower: float = 1.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A target and a load."""

    name: str
    rows: int = 10_000
    companies: int = 100
    cut: int = 25
    cost: tuple[float, float] = (0.25, 0.13)
    form: str = "batch"
    slots: int = 8
    sigma: float = 0.05
    wait_coef: float = 0.0105
    uneven: float = 0.0
    """Exponent of a Zipf law for the rows of the companies."""
    half_way: Phase | None = None
    """What the target becomes when half of the work could be done."""
    slow: float = 1.0
    """How much slower the first company is."""
    per_company: int = 1
    """Calls the loader may have in one company."""
    company_slots: int = 1
    refuse_above: int = 1_000_000
    """Calls inside beyond which the target answers 503 to whoever comes."""
    refuse_share: float = 0.0
    """Share of the first company's calls that get a 429."""

    own_s: float = 0.0
    """What a call costs the loader's one core, before its reply is heard."""

    capped: bool = False
    """Whether the loader sends no more at once than can shorten the load."""

    def sizes(self) -> list[int]:
        """Give the rows of each company."""
        weights = [1 / (place + 1) ** self.uneven for place in range(self.companies)]
        return [max(1, round(self.rows * weight / sum(weights))) for weight in weights]

    def alone_s(self, rows: int, company: int) -> float:
        """Give what a call takes with nobody else about."""
        return (self.cost[0] + self.cost[1] * rows) * (self.slow if company == 0 else 1.0)

    def turns_at(self) -> float:
        """Give the time of the change, half of what the work takes at least."""
        if self.half_way is None:
            return math.inf
        calls = (min(self.cut, size - at) for size in self.sizes() for at in range(0, size, self.cut))
        return sum(self.alone_s(rows, 1) for rows in calls) / self.slots / 2


@dataclass(slots=True)
class _Call:
    company: int
    rows: int
    ticket: Ticket


@dataclass(slots=True)
class Result:
    """What came of one run; `in_flight` has the moments it changed, with the new value."""

    makespan_s: float = 0.0
    in_flight: list[tuple[float, int]] = field(default_factory=list)
    refused: int = 0

    def after(self, begin_s: float, end_s: float) -> tuple[float, int]:
        """Return mean and maximum of the calls in flight in a span of time."""
        area, most, last, count = 0.0, 0, begin_s, 0
        for at, value in [*self.in_flight, (self.makespan_s, 0)]:
            until = min(max(at, begin_s), end_s)
            if until > last:
                area += count * (until - last)
                most, last = max(most, count), until
            count = value
        return area / max(end_s - begin_s, 1e-9), most


class Simulation:
    """One load through one controller, longest remaining company first."""

    def __init__(self, scenario: Scenario, controller: Controller, seed: int) -> None:
        """Start with everything to send."""
        self._scenario = scenario
        self._controller = controller
        self._rng = random.Random(seed)
        self._turns_at = scenario.turns_at()
        self._left = scenario.sizes()
        self._unsent = list(self._left)
        self._again: list[deque[int]] = [deque() for _ in self._left]
        self._flying = [0] * len(self._left)
        self._ready = [(-rows, place) for place, rows in enumerate(self._left)]
        heapq.heapify(self._ready)
        self._queued = [True] * len(self._left)
        self._events: list[tuple[float, int, str, _Call | int]] = []
        self._seq = 0
        self._queue: deque[_Call] = deque()
        self._busy = 0
        self._locked: dict[int, int] = {}
        self._lockers: dict[int, deque[_Call]] = {}
        self._on_wire = 0
        self._own_until = self._worked = 0.0
        self.result = Result()

    def run(self) -> Result:
        """Send all rows, and say how it went."""
        now = 0.0
        self._fill(now)
        while self._events:
            now, _, kind, what = heapq.heappop(self._events)
            if isinstance(what, int):
                self._enqueue(what)
            elif kind == "refused":
                self._back(what, now, Reply.REFUSED)
                self._again[what.company].append(what.rows)
                self.result.refused += 1
                self._at(now + 2.0, "free", what.company)
            elif kind == "served" and self._scenario.own_s:
                self._leave(what, now)
                self._hear(what, now)
            else:
                if kind == "served":
                    self._leave(what, now)
                self._left[what.company] -= what.rows
                self._back(what, now, Reply.ANSWERED)
                self._enqueue(what.company)
            self._fill(now)
        if sum(self._left):
            raise AssertionError("rows were left over")
        self.result.makespan_s = now
        return self.result

    def _at(self, time: float, kind: str, what: _Call | int) -> None:
        self._seq += 1
        heapq.heappush(self._events, (time, self._seq, kind, what))

    def _enqueue(self, company: int) -> None:
        if not self._queued[company] and (self._unsent[company] or self._again[company]):
            self._queued[company] = True
            heapq.heappush(self._ready, (-self._left[company], company))

    def _fill(self, now: float) -> None:
        most = useful(sum(self._left), max(self._left)) if self._scenario.capped else len(self._left) * 1000
        while self._ready and self._on_wire < min(self._controller.limit, most):
            _, company = heapq.heappop(self._ready)
            self._queued[company] = False
            room = min(self._scenario.per_company, self._controller.company_limit(Company(str(company))))
            if self._flying[company] < room:
                self._send(company, now)
                if self._flying[company] < room:
                    self._enqueue(company)

    def _send(self, company: int, now: float) -> None:
        if self._again[company]:
            rows = self._again[company].popleft()
        else:
            rows = min(self._scenario.cut, self._unsent[company])
            self._unsent[company] -= rows
        call = _Call(company, rows, self._controller.sent(Company(str(company)), now))
        self._flying[company] += 1
        self._on_wire += 1
        self.result.in_flight.append((now, self._on_wire))
        scenario = self._scenario
        inside = self._busy + len(self._queue)
        if inside >= scenario.refuse_above or (company == 0 and self._rng.random() < scenario.refuse_share):
            self._at(now + REFUSAL_S, "refused", call)
        elif self._locked.get(company, 0) >= scenario.company_slots:
            self._lockers.setdefault(company, deque()).append(call)
        else:
            self._locked[company] = self._locked.get(company, 0) + 1
            self._queue.append(call)
            self._serve(now)

    def _slots(self, now: float) -> int:
        turned = self._scenario.half_way
        return turned.slots if turned is not None and now >= self._turns_at else self._scenario.slots

    def _serve(self, now: float) -> None:
        scenario = self._scenario
        while self._queue and self._busy < self._slots(now):
            call = self._queue.popleft()
            self._busy += 1
            lasts = scenario.alone_s(call.rows, call.company)
            lasts *= 1 + scenario.wait_coef * math.log2(1 + len(self._queue))
            if scenario.half_way is not None and now >= self._turns_at:
                lasts *= scenario.half_way.slower
            self._at(now + lasts * self._luck(), "served", call)

    def _leave(self, call: _Call, now: float) -> None:
        self._busy -= 1
        waiting = self._lockers.get(call.company)
        if waiting:
            self._queue.append(waiting.popleft())
        else:
            self._locked[call.company] -= 1
        self._serve(now)

    def _hear(self, call: _Call, now: float) -> None:
        """Let a reply wait for the loader's core, and have it worked on."""
        lasts = self._scenario.own_s * self._luck()
        self._own_until = max(self._own_until, now) + lasts
        self._worked += lasts
        self._at(self._own_until, "heard", call)

    def _luck(self) -> float:
        sigma = self._scenario.sigma
        return math.exp(self._rng.gauss(0.0, sigma) - sigma**2 / 2) if sigma else 1.0

    def _back(self, call: _Call, now: float, reply: Reply) -> None:
        self._flying[call.company] -= 1
        self._on_wire -= 1
        self.result.in_flight.append((now, self._on_wire))
        form, spent = self._scenario.form, self._worked - max(0.0, self._own_until - now)
        self._controller.settled(call.ticket, now, rows=call.rows, form=form, reply=reply, spent=spent)


BATCH: tuple[float, float] = (0.25, 0.13)
XML: tuple[float, float] = (0.5, 0.0864)
INSERT: tuple[float, float] = (0.146, 0.13)

SCENARIOS: Sequence[Scenario] = (
    Scenario("seeds, batch of 25"),
    Scenario("seeds, batch of 250", rows=20_000, cut=250, uneven=0.6),
    Scenario("seeds, xml of 91", rows=20_000, cut=91, cost=XML, form="xml"),
    Scenario("seeds, insert", cut=1, cost=INSERT, form="insert"),
    Scenario("knee 4, batch", slots=4),
    Scenario("knee 4, insert", slots=4, cut=1, cost=INSERT, form="insert"),
    Scenario("knee 24, batch", slots=24, rows=20_000),
    Scenario("knee 24, xml of 25", slots=24, rows=20_000, cut=25, cost=XML, form="xml"),
    Scenario("knee 24, insert", slots=24, cut=1, cost=INSERT, form="insert"),
    Scenario("half the slots half way, batch", rows=20_000, half_way=Phase(slots=4)),
    Scenario("half the slots half way, insert", cut=1, cost=INSERT, form="insert", half_way=Phase(slots=4)),
    Scenario("3 x slower half way, batch", rows=20_000, half_way=Phase(slower=3.0)),
    Scenario("3 x slower half way, insert", cut=1, cost=INSERT, form="insert", half_way=Phase(slower=3.0)),
    Scenario("one slow of ten, batch", companies=10, slow=10.0),
    Scenario("one slow of ten, insert", companies=10, slow=10.0, cut=1, cost=INSERT, form="insert"),
    Scenario("jitter 0.5, batch", rows=20_000, sigma=0.5),
    Scenario("jitter 0.5, xml of 91", rows=20_000, sigma=0.5, cut=91, cost=XML, form="xml"),
    Scenario("jitter 0.5, insert", sigma=0.5, cut=1, cost=INSERT, form="insert"),
    Scenario("jitter 0.5, knee 24, batch", rows=20_000, sigma=0.5, slots=24),
    Scenario("503 above 12 inside, batch", slots=24, rows=20_000, refuse_above=12),
    Scenario("429 for one company, batch", refuse_share=0.2),
    Scenario("uneven, batch of 250", rows=20_000, cut=250, uneven=1.0),
    Scenario("uneven, batch of 250, no more than useful", rows=20_000, cut=250, uneven=1.0, capped=True),
    Scenario("uneven, batch of 25, no more than useful", rows=20_000, uneven=1.2, capped=True),
    Scenario("answers at once, insert", cut=1, cost=(0.0005, 0.0), slots=1, sigma=0.3, form="insert", own_s=0.0006),
    Scenario("answers at once, batch", rows=50_000, cost=(0.003, 0.0), slots=1, sigma=0.3, own_s=0.004),
    Scenario("2 calls a company, 1 served", rows=20_000, companies=20, per_company=2),
    Scenario("4 calls a company, 2 served", rows=20_000, companies=6, per_company=4, company_slots=2, slots=12),
)
