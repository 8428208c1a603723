"""One window's books, as several processes keep them together.

A window here is told the time, as everywhere in `policy`, and can be written down and read back, so that a store may
keep it. Room is handed out as *leases*: so many units that one process may spend until a time. A unit that is leased
counts as used until it is settled, so no process has to trust another; a lease whose process died runs out, and
then counts as if all of it had been spent at the last possible moment.

What the server counts, and when, is never seen. A call was counted at some instant between its leaving and its reply,
and the server's clock is known within the bounds of a `Skew`. Sliding windows free a unit one period after the reply
(docs/decisions/0003); windows on the clock charge a call to every period it may have been counted in.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import orjson

from saasload.policy.skew import Skew
from saasload.policy.window import NEVER
from saasload.profile import Limit

Scope = Literal["app", "user", "company", "endpoint"]
Kind = Literal["sliding", "fixed", "errors"]

LONGEST_PAUSE_S = 3600.0
"""A window that the store forgot is left alone for a period if that is no longer; a day goes on from what we know."""

SHARE = 8
"""A lease takes at most this part of what is left: near its end a window is handed out call by call."""

LONGEST_HOLD_S = 5.0
HOLDS = 12
"""A lease may be spent for a twelfth of the window's period, and never longer than LONGEST_HOLD_S."""

GRAIN = 600
"""Sliding windows of many units keep their times to the period's 600th part, rounded up."""

PRECISE = 200

_KEPT = 6
"""Freed units are remembered for a sixth of the period longer, for replies that speak of the time before."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One limit: `units` (calls or rows) in a period.

    `errors` counts only calls that fail, and stops one short of its number: at the number itself the platform blocks.
    With `proof`, a sliding rule gives way to the platform's clock where its replies prove that it counts so.
    """

    name: str
    scope: Scope
    kind: Kind
    units: int
    period_s: float
    cost: Literal["call", "row"] = "call"
    proof: bool = True

    @property
    def hold_s(self) -> float:
        """How long a lease may be spent."""
        return min(LONGEST_HOLD_S, self.period_s / HOLDS)


def rules_of(limits: Sequence[Limit]) -> tuple[Rule, ...]:
    """Make rules of a profile's limits."""
    return tuple(
        Rule(limit.label, limit.scope, limit.kind, limit.calls, limit.period_s, limit.cost) for limit in limits
    )


@dataclass(frozen=True, slots=True)
class Ask:
    """So many units are needed, and up to `want` are welcome, under a name that no other lease ever had.

    They may be spent for the rule's `hold_s`; what is not settled `lasts_s` after that counts as spent.
    """

    lease: str
    units: int
    want: int
    lasts_s: float


class Spent(NamedTuple):
    """What became of some units of a lease: unused where `charged` is False.

    `sent` and `replied` are readings of the common wall clock, `skew` what the process knew of the server's. `at_s` is
    the reset that the call's own reply states, on the server's clock: it tells in which period the call was counted.
    """

    lease: str
    units: int
    sent: float
    replied: float
    skew: Skew
    charged: bool = True
    at_s: float | None = None


class Heard(NamedTuple):
    """What a reply said about one window, and what its process held of it unspent when it came.

    `at_s` is the reset as an instant of the server's clock; `grid` says that replies have proved the window to be one
    on the clock; `refused_s` is above 0 where the call was refused for this window: so long nothing may leave.
    """

    sent: float
    replied: float
    skew: Skew
    limit: int | None = None
    used: int | None = None
    at_s: float | None = None
    idle: int = 0
    grid: bool = False
    refused_s: float = 0.0


class WindowState:
    """The books of one window."""

    __slots__ = (
        "_blocked", "_distrust", "_expect", "_freeing", "_frees", "_leases", "_limit", "_lost", "_on_grid", "_others",
        "_seen", "_shared", "_used",
    )  # fmt: skip

    def __init__(self) -> None:
        """Start with nothing used."""
        self._frees: list[tuple[float, int]] = []
        self._freeing = 0
        self._used: dict[int, int] = {}
        self._others: dict[int, int] = {}
        self._expect = 0
        self._leases: dict[str, tuple[int, float, float, float, float]] = {}
        self._blocked = -NEVER
        self._limit = 0
        self._seen: dict[int, tuple[int, int]] = {}
        self._on_grid = self._distrust = self._lost = self._shared = False

    def ready_at(self, rule: Rule, units: int, now: float, skew: Skew) -> float:
        """Say when so many units may be leased: `now`, later, or NEVER while only settling can free them.

        More units than the limit has are taken for the limit: the platform must have a word to say to such a call.
        """
        self._settle_expired(rule, now)
        if self._lost:
            self._lost = False
            if rule.period_s <= LONGEST_PAUSE_S:
                self._blocked = max(self._blocked, now + rule.period_s)
        if self._blocked > now:
            return self._blocked
        limit = self._ceiling(rule)
        if self._fixed(rule):
            return self._ready_on_grid(rule, min(units, limit), now, skew)
        return self._ready_sliding(rule, limit - min(units, limit), now)

    def lease(self, rule: Rule, ask: Ask, now: float, skew: Skew) -> int:
        """Lease the units that `ready_at` allows now, and up to `want` while there is plenty; return how many."""
        room = self._room(rule, now, skew)
        granted = max(min(ask.units, self._ceiling(rule)), min(ask.want, room // SHARE))
        self._leases[ask.lease] = (granted, now, now + rule.hold_s + ask.lasts_s, skew.lo, skew.hi)
        return granted

    def settle(self, rule: Rule, spent: Spent) -> None:
        """Book what became of leased units; a lease that has run out is booked already."""
        held, *rest = self._leases.pop(spent.lease, (0, 0.0, 0.0, 0.0, 0.0))
        units = min(held, spent.units)
        if held > units:
            self._leases[spent.lease] = (held - units, rest[0], rest[1], rest[2], rest[3])
        if units and spent.charged:
            places = _places(rule, spent.sent + spent.skew.lo, spent.replied + spent.skew.hi)
            stated = _stated_place(rule, spent.at_s)
            if stated is not None and stated in places:
                places = range(stated, stated + 1)
            self._charge(rule, units, places, spent.replied)

    def hear(self, rule: Rule, heard: Heard) -> None:
        """Correct the books by what a reply said: never downwards for what is left, for others may share it."""
        if heard.limit is not None:
            self._limit = heard.limit
        if heard.refused_s > 0.0:
            self._blocked = max(self._blocked, heard.replied + heard.refused_s)
            # Where the platform refuses although its clock's period had room, it does not count by the clock.
            self._distrust = self._distrust or (self._on_grid and rule.kind == "sliding")
            self._on_grid = self._on_grid and not self._distrust
        elif heard.grid and not self._distrust:
            self._on_grid = True
        if heard.used is None or rule.kind == "errors":
            return
        place = _place_of(rule, heard)
        if place is not None:
            own = self._used.get(place, 0) + self._leased(place, rule.period_s) - heard.idle
            self._others[place] = max(self._others.get(place, 0), heard.used - own)
            self._expect = self._others[max(self._others)]
            self._shared = self._shared or self._expect > 0
            if heard.used >= self._seen.get(place, (0, 0))[0]:
                self._seen[place] = (heard.used, self._used.get(place, 0))
        if not self._fixed(rule):
            own = self._not_freed(heard.sent)[0] + self._leased() - heard.idle
            if heard.used > own:
                self._frees_at(heard.replied + rule.period_s, heard.used - own, rule)

    def frees_together(self, rule: Rule, ready: float) -> bool:
        """Tell whether all who wait for an instant that `ready_at` gave would come back at once."""
        return ready == self._blocked or self._fixed(rule)

    def used(self, rule: Rule, now: float, skew: Skew) -> int:
        """Count what is used or leased now, others' share included."""
        return self._ceiling(rule) - self._room(rule, now, skew)

    @property
    def leased(self) -> int:
        """How many units are leased and not settled."""
        return self._leased()

    def lost(self) -> None:
        """Note that the store forgot the window, and these are the last books known: others may have spent since."""
        self._lost = True

    def dump(self) -> bytes:
        """Write the books down."""
        flags = [self._on_grid, self._distrust, self._lost, self._shared]
        blocked = None if self._blocked == -NEVER else self._blocked
        others = [(place, units, *self._seen.get(place, (0, 0))) for place, units in self._others.items()]
        used = list(self._used.items())
        return orjson.dumps([self._frees, used, others, self._expect, self._leases, blocked, self._limit, flags])

    @classmethod
    def load(cls, written: bytes) -> "WindowState":
        """Read books that were written down."""
        state = cls()
        values: list[Any] = orjson.loads(written)
        frees, used, others, state._expect, leases, blocked, state._limit, flags = values
        state._frees = [(frees_at, units) for frees_at, units in frees]
        state._freeing = sum(units for _, units in frees)
        state._used = dict(used)
        state._others = {place: units for place, units, _, _ in others}
        state._seen = {place: (counted, then) for place, _, counted, then in others}
        state._leases = {name: (held, *rest) for name, (held, *rest) in leases.items()}
        state._blocked = -NEVER if blocked is None else blocked
        state._on_grid, state._distrust, state._lost, state._shared = flags
        return state

    def _ceiling(self, rule: Rule) -> int:
        if rule.kind == "errors":
            return max(1, rule.units - 1)
        return self._limit or rule.units

    def _fixed(self, rule: Rule) -> bool:
        return rule.kind == "fixed" or (self._on_grid and rule.proof and rule.kind == "sliding")

    def _leased(self, place: int | None = None, period_s: float = 1.0) -> int:
        if place is None:
            return sum(lease[0] for lease in self._leases.values())
        return sum(held for held, since, _, lo, _ in self._leases.values() if (since + lo) // period_s <= place)

    def _taken_in(self, rule: Rule, place: int) -> int:
        used, leased = self._used.get(place, 0), self._leased(place, rule.period_s)
        others = self._others.get(place)
        if others is None:
            # One call is always let through to ask: what others used in the last period may be over.
            return used + leased + min(self._expect, self._ceiling(rule) - 1)
        if not self._shared:
            return used + leased + others
        # Which of the leased units are in the platform's count is not known; where others count too, none may be.
        counted, then = self._seen[place]
        return max(used + leased + others, counted + used - then + leased)

    def _room(self, rule: Rule, now: float, skew: Skew) -> int:
        limit = self._ceiling(rule)
        if self._fixed(rule):
            return limit - max(self._taken_in(rule, place) for place in _places(rule, now + skew.lo, now + skew.hi))
        return limit - self._leased() - self._not_freed(now)[0]

    def _ready_on_grid(self, rule: Rule, units: int, now: float, skew: Skew) -> float:
        room_from = self._ceiling(rule) - units
        for place in reversed(_places(rule, now + skew.lo, now + skew.hi)):
            if self._taken_in(rule, place) > room_from:
                return max(math.nextafter(now, NEVER), (place + 1) * rule.period_s - skew.lo)
        return now

    def _ready_sliding(self, rule: Rule, room_from: int, now: float) -> float:
        kept_from = now - rule.period_s / _KEPT
        while self._frees and self._frees[0][0] <= kept_from:
            self._freeing -= self._frees.pop(0)[1]
        waiting, first = self._not_freed(now)
        taken, at = self._leased() + waiting, now
        while taken > room_from and first < len(self._frees):
            at, units = self._frees[first]
            taken -= units
            first += 1
        return at if taken <= room_from else NEVER

    def _not_freed(self, now: float) -> tuple[int, int]:
        """Count the units that are not free yet; with the place of the first of them."""
        first = bisect_right(self._frees, (now, 1 << 62))
        return self._freeing - sum(units for _, units in self._frees[:first]), first

    def _charge(self, rule: Rule, units: int, places: range, replied: float) -> None:
        """Charge units to all the periods of the server's clock that it may have counted them in."""
        if rule.kind != "errors":
            if places[-1] not in self._used:
                self._used = {place: used for place, used in self._used.items() if place > places[-1] - 3}
                self._others = {place: used for place, used in self._others.items() if place > places[-1] - 3}
                self._seen = {place: seen for place, seen in self._seen.items() if place in self._others}
            for place in places:
                self._used[place] = self._used.get(place, 0) + units
        if rule.kind != "fixed":
            self._frees_at(replied + rule.period_s, units, rule)

    def _frees_at(self, frees: float, units: int, rule: Rule) -> None:
        self._freeing += units
        if self._ceiling(rule) > PRECISE:
            grain = rule.period_s / GRAIN
            frees = math.ceil(frees / grain) * grain
            if self._frees and self._frees[-1][0] == frees:
                self._frees[-1] = (frees, self._frees[-1][1] + units)
                return
        insort(self._frees, (frees, units))

    def _settle_expired(self, rule: Rule, now: float) -> None:
        for name in [name for name, lease in self._leases.items() if lease[2] <= now]:
            held, since, until, lo, hi = self._leases.pop(name)
            self._charge(rule, held, _places(rule, since + lo, until + hi), until)


def _places(rule: Rule, first: float, last: float) -> range:
    """List the periods of the server's clock that an interval touches, by number."""
    return range(math.floor(first / rule.period_s), math.floor(last / rule.period_s) + 1)


def _place_of(rule: Rule, heard: Heard) -> int | None:
    """Tell the period that a reply speaks of, None where that is not certain."""
    stated = _stated_place(rule, heard.at_s)
    if stated is not None or rule.kind != "fixed":
        return stated
    places = _places(rule, heard.sent + heard.skew.lo, heard.replied + heard.skew.hi)
    return places[0] if len(places) == 1 else None


def _stated_place(rule: Rule, reset_at_s: float | None) -> int | None:
    """Tell the period that ends with a stated reset, None where that is not a whole number of periods."""
    if reset_at_s is None or reset_at_s % rule.period_s != 0.0:
        return None
    return math.floor(reset_at_s / rule.period_s) - 1
