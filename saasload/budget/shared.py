"""One door for calls: what a process asks before a call leaves, and tells after it is back.

The door holds leases that it spends by itself, so that most calls ask no store. What was spent travels back with the
next question. It waits for nothing but the store's answer: that a call may not leave yet is a returned time.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from saasload.budget.store import Store, StoreLostError
from saasload.model import Company
from saasload.policy.alignment import Alignment
from saasload.policy.headers import LimitFacts
from saasload.policy.ledger_windows import Ask, Heard, Rule, Spent, WindowState
from saasload.policy.retry import FLOOR_S
from saasload.policy.skew import SkewEstimate
from saasload.policy.window import NEVER

WANT = 10
"""No lease is larger."""

OTHERS = 16
"""How many windows a question brings up to date beside those it is about."""

LOST_S = 2.0
"""How soon a store that does not answer is asked again."""

SPREAD_S = 5.0
SPREADS = 50
"""After a reset, lanes start spread over a fiftieth of the period, and never over more than SPREAD_S."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: ask again at `until`. `free_at` is when the limit, as far as is known, lets a call through.

    `rule` names the limit for people. The two times differ where another process may give back what it holds.
    """

    until: float
    free_at: float
    rule: str


class _Held(NamedTuple):
    """Why nothing can be leased now: `others` may give back units, `herd` lanes would come back at one instant."""

    slot: "_Slot"
    ready: float
    others: bool
    herd: bool


_Lease = tuple[str, int, float]
"""Its name, the units left, and until when they may be spent."""


@dataclass(slots=True)
class _Slot:
    """One window, as this process sees it."""

    key: str
    rule: Rule
    alignment: Alignment
    leases: deque[_Lease] = field(default_factory=deque)
    tell: list[Spent] = field(default_factory=list)
    heard: Heard | None = None
    closed: Wait | None = None

    @property
    def idle(self) -> int:
        return sum(units for _, units, _ in self.leases)


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to make one call, from `at` on."""

    company: Company
    at: float
    parts: tuple[tuple[_Slot, "_Lease"], ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a door is told once.

    `process` names it among all that ever share the store; `user` is whose limits of scope `user` are meant. No call
    lasts longer than `longest_s`. Times are in target seconds, of which `time_scale` pass in one of ours.
    """

    process: str
    longest_s: float
    user: str = ""
    time_scale: float = 1.0


class SharedBudget:
    """All limits of a target, for one process among those that share a store."""

    def __init__(
        self, rules: Sequence[Rule], store: Store, terms: Terms, *, rng: random.Random, say: Callable[[str], None]
    ) -> None:
        """Take the limits; `rng` spreads lanes after a reset, and `say` hears when the store goes and comes."""
        self._rules = tuple(rules)
        self._store = store
        self._terms = terms
        self._rng = rng
        self._say = say
        self._slots: dict[str, _Slot] = {}
        self._sets: dict[tuple[Company, str], tuple[_Slot, ...]] = {}
        self._held: list[tuple[float, int, _Slot]] = []
        self._count = 0
        self._telling: dict[str, _Slot] = {}
        self._lost = self._closed = False
        # The store's clock is the one that all processes have in common.
        self._ahead = store.clock_ahead_s * terms.time_scale
        self.skew = SkewEstimate()
        self.asked = 0

    async def reserve(self, company: Company, wall: float, *, endpoint: str = "", rows: int = 1) -> Ticket | Wait:
        """Let a call leave now, or say when to ask again."""
        slots = self._sets.get((company, endpoint)) or self._set(company, endpoint)
        wall += self._ahead
        while True:
            lacking = [slot for slot in slots if not self._has(slot, wall, _cost(slot.rule, rows))]
            for slot in lacking:
                if slot.closed is not None and wall < slot.closed.until:
                    return self._ours(slot.closed)  # as another lane was told
            if not lacking:
                # Nothing is awaited between this look and the taking, so nobody else can take it.
                parts = tuple((slot, _take(slot, _cost(slot.rule, rows))) for slot in slots)
                return Ticket(company, wall, parts)
            wait = await self._fill(lacking, wall, rows)
            if wait is not None:
                return self._ours(wait)

    def _ours(self, wait: Wait) -> Wait:
        return Wait(wait.until - self._ahead, wait.free_at - self._ahead, wait.rule) if self._ahead else wait

    def settled(
        self, ticket: Ticket, wall: float, facts: LimitFacts | None = None, *, failed: bool = False, left: bool = True
    ) -> None:
        """Take what became of a call: back, or given up, at `wall`.

        `failed` says that its status counts against an error limit; `left` is False where it certainly never reached
        the target. `facts` are what its reply said; see `refused` for a reply that asks to wait.
        """
        wall += self._ahead
        skew = self.skew.heard(facts.date_s, ticket.at, wall) if facts is not None and left else self.skew.now
        for slot, lease in ticket.parts:
            if left and (failed or slot.rule.kind != "errors"):
                fact = None if facts is None else facts.windows.get(slot.rule.name)
                at_s = None if fact is None else fact.reset_at_s
                slot.tell.append(Spent(lease[0], lease[1], ticket.at, wall, skew, at_s=at_s))
                self._telling[slot.key] = slot
            elif wall < lease[2]:
                slot.leases.append(lease)  # not spent after all: good for another call
            else:
                self._unspent(slot, lease)
            if facts is not None and left:
                self._hear(slot, ticket, facts, wall)

    def refused(self, ticket: Ticket, wall: float, wait_s: float, facts: LimitFacts | None = None) -> None:
        """Keep every process from the limit that a reply refused a call for, until the wait it asks for is over.

        Call it beside `settled`. Where the reply does not say which limit that is, it is taken for the company's own
        with the shortest period.
        """
        wall += self._ahead
        names = {fact.window for fact in facts.exhausted()} if facts is not None else set()
        own = [slot for slot, _ in ticket.parts if slot.rule.kind != "errors"]
        named = [slot for slot in own if slot.rule.name in names]
        shortest = sorted(own, key=lambda slot: (slot.rule.scope not in {"company", "endpoint"}, slot.rule.period_s))
        for slot in named or shortest[:1]:
            self._give_back(slot)
            longest_s = max(FLOOR_S, wait_s, slot.heard.refused_s if slot.heard is not None else 0.0)
            slot.heard = Heard(ticket.at, wall, self.skew.now, refused_s=longest_s)
            slot.alignment = Alignment(slot.rule.units, slot.rule.period_s)
            self._telling[slot.key] = slot

    def saw_date(self, facts: LimitFacts, sent: float, wall: float) -> None:
        """Learn the target's clock from a reply to a call that no limit is known for."""
        self.skew.heard(facts.date_s, sent + self._ahead, wall + self._ahead)

    def release(self, company: Company) -> None:
        """Give back what is leased for a company that needs no more calls."""
        for (other, _), slots in self._sets.items():
            if other == company:
                for slot in slots:
                    if slot.rule.scope in {"company", "endpoint"}:
                        self._give_back(slot)

    async def aclose(self) -> None:
        """Give back all that is leased, tell all that was spent, and let go of the store."""
        if self._closed:
            return
        self._closed = True
        for slot in self._slots.values():
            self._give_back(slot)
        try:
            while self._telling:
                await self._ask([], 0.0, 1)
        except StoreLostError as error:
            self._say(f"{error}; what this process held is free again when its leases run out")
        await self._store.aclose()

    def _set(self, company: Company, endpoint: str) -> tuple[_Slot, ...]:
        slots = tuple(self._slot(rule, company, endpoint) for rule in self._rules)
        self._sets[company, endpoint] = slots
        return slots

    def _slot(self, rule: Rule, company: Company, endpoint: str) -> _Slot:
        whose = {"app": "", "user": self._terms.user, "company": company, "endpoint": f"{company}/{endpoint}"}
        key = f"{rule.name}/{whose[rule.scope]}"
        if key not in self._slots:
            self._slots[key] = _Slot(key, rule, Alignment(rule.units, rule.period_s))
        return self._slots[key]

    def _has(self, slot: _Slot, wall: float, units: int) -> bool:
        """Tell whether a lease at hand covers a call that leaves now; what is too old goes back."""
        while slot.leases:
            _, left, until = slot.leases[0]
            if wall < until and left >= units:
                return True
            self._unspent(slot, slot.leases.popleft())
        return False

    def _give_back(self, slot: _Slot) -> None:
        while slot.leases:
            self._unspent(slot, slot.leases.popleft())

    def _unspent(self, slot: _Slot, lease: _Lease) -> None:
        slot.tell.append(Spent(lease[0], lease[1], 0.0, 0.0, self.skew.now, charged=False))
        if slot.heard is not None:
            slot.heard = slot.heard._replace(idle=max(0, slot.heard.idle - lease[1]))
        self._telling[slot.key] = slot

    def _hear(self, slot: _Slot, ticket: Ticket, facts: LimitFacts, wall: float) -> None:
        fact = facts.windows.get(slot.rule.name)
        if fact is None:
            return
        proved = slot.rule.proof and slot.alignment.heard(ticket.at, wall, fact.used, fact.reset_at_s)
        before, used = slot.heard, fact.used
        if before is not None and used is not None and before.used is not None and before.at_s == fact.reset_at_s:
            used = max(used, before.used)  # replies may overtake each other
        slot.heard = Heard(
            ticket.at,
            wall,
            self.skew.now,
            fact.limit,
            used,
            fact.reset_at_s,
            slot.idle,
            proved,
            before.refused_s if before is not None else 0.0,
        )
        if fact.remaining is not None and fact.remaining < slot.idle:
            self._give_back(slot)

    async def _fill(self, lacking: list[_Slot], wall: float, rows: int) -> Wait | None:
        """Lease for the windows that lack, all or none of them."""
        while self._held and self._held[0][0] <= wall:
            _, _, slot = heapq.heappop(self._held)
            self._has(slot, wall, 1)
        try:
            wait = await self._ask(lacking, wall, rows)
        except StoreLostError as error:
            if not self._lost:
                self._lost = True
                self._say(f"{error}; nothing leaves beyond what is leased until it answers again")
            return Wait(wall + LOST_S, NEVER, "the shared budget does not answer")
        if self._lost:
            self._lost = False
            self._say("the shared budget answers again; going on")
        return wait

    async def _ask(self, lacking: list[_Slot], wall: float, rows: int) -> Wait | None:
        """Tell what was spent and lease anew, in one change of the store."""
        about = {slot.key: slot for slot in lacking}
        for key, slot in self._telling.items():
            if len(about) >= len(lacking) + OTHERS:
                break
            about[key] = slot
        told = [(slot, *self._taken_along(slot)) for slot in about.values()]
        asks = self._asks(lacking, rows)

        def act(windows: Mapping[str, WindowState]) -> dict[str, int] | _Held:
            for slot, spent, heard in told:
                _tell(windows[slot.key], slot.rule, spent, heard)
            return self._lease(windows, asks, wall)

        self.asked += 1
        answer = await self._store.change(list(about), act)
        if isinstance(answer, _Held):
            return self._wait(answer, wall)
        for slot, ask in asks:
            granted = answer[slot.key]
            slot.leases.append((ask.lease, granted, wall + slot.rule.hold_s))
            self._count += 1
            heapq.heappush(self._held, (wall + slot.rule.hold_s, self._count, slot))
        return None

    def _asks(self, lacking: list[_Slot], rows: int) -> list[tuple[_Slot, Ask]]:
        asks = []
        for slot in lacking:
            self._count += 1
            units = _cost(slot.rule, rows)
            want = units if slot.rule.cost == "row" else WANT
            asks.append((slot, Ask(f"{self._terms.process}.{self._count}", units, want, self._terms.longest_s)))
        return asks

    def _lease(
        self, windows: Mapping[str, WindowState], asks: list[tuple[_Slot, Ask]], wall: float
    ) -> dict[str, int] | _Held:
        skew = self.skew.now
        latest: _Held | None = None
        for slot, ask in asks:
            state = windows[slot.key]
            ready = state.ready_at(slot.rule, ask.units, wall, skew)
            if ready > wall and (latest is None or ready > latest.ready):
                others = ready == NEVER or state.leased > 0
                latest = _Held(slot, ready, others, state.frees_together(slot.rule, ready))
        if latest is not None:
            return latest
        return {slot.key: windows[slot.key].lease(slot.rule, ask, wall, skew) for slot, ask in asks}

    def _taken_along(self, slot: _Slot) -> tuple[list[Spent], Heard | None]:
        """Take what is to be told about a window, once only.

        If the store fails now it stays untold, for it may have been heard all the same, and told twice it would free
        units that are in use. The lease then runs out, and counts as spent.
        """
        spent, heard = slot.tell, slot.heard
        slot.tell, slot.heard = [], None
        self._telling.pop(slot.key, None)
        return spent, heard

    def _wait(self, held: _Held, wall: float) -> Wait:
        rule, until = held.slot.rule, held.ready
        if held.herd:
            until += self._rng.uniform(0.0, min(SPREAD_S, rule.period_s / SPREADS))
        if held.others:
            # Another process, or a call of ours that is on the wire, may give back what it holds.
            until = min(until, wall + (min(rule.hold_s, 1.0) if held.ready == NEVER else rule.hold_s))
        held.slot.closed = Wait(until, held.ready, rule.name)
        return held.slot.closed


def _cost(rule: Rule, rows: int) -> int:
    return min(rows, rule.units) if rule.cost == "row" else 1


def _take(slot: _Slot, units: int) -> _Lease:
    lease, left, until = slot.leases[0]
    if left == units:
        slot.leases.popleft()
    else:
        slot.leases[0] = (lease, left - units, until)
    return lease, units, until


def _tell(state: WindowState, rule: Rule, spent: Sequence[Spent], heard: Heard | None) -> None:
    for item in spent:
        state.settle(rule, item)
    if heard is not None:
        state.hear(rule, heard)
