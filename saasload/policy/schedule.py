"""Which company's lane sends next, and when."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from saasload.model import Company
from saasload.policy.budget import Budget
from saasload.policy.window import NEVER


@dataclass(slots=True)
class _Place:
    """One lane, as the schedule sees it."""

    order: int
    remaining: int
    weight: float = 1.0
    taken: int = 0
    in_flight: int = 0
    not_before: float = 0.0
    queued: bool = False
    resting: bool = False
    closed: bool = False


Order = Literal["longest", "fifo", "fair"]

_LEARN = 0.3
"""How much of a company's weight its latest call is: enough for three calls to tell a slow one."""


class Schedule:
    """Lanes in an order; those that a limit or a back-off holds wait apart, by time.

    `longest`: most work remaining first, rows by the company's pace, so that no long lane runs alone at the end.
    With one call at a time in a company this ends a whole load as early as any order can (Muntz and Coffman 1969).
    `fifo`: one company after another. `fair`: each company a call in turn.
    """

    def __init__(
        self,
        lanes: dict[Company, int],
        budget: Budget,
        *,
        per_company: Callable[[Company], int],
        order: Order = "longest",
    ) -> None:
        """Take the rows that each company's lane holds; `per_company` says how many calls one may have in flight."""
        self.total = sum(lanes.values())
        self._longest = [(-rows, company) for company, rows in lanes.items()]
        heapq.heapify(self._longest)
        self._order = order
        self._pace = 0.0
        self._budget = budget
        self._per_company = per_company
        self._lanes = {company: _Place(order, rows) for order, (company, rows) in enumerate(lanes.items())}
        self._ready: list[tuple[float, int, Company]] = []
        self._waiting: list[tuple[float, int, Company]] = []
        self._blocked: list[Company] = []
        for company in self._lanes:
            self._enqueue(company)

    @property
    def ready(self) -> int:
        """How many lanes may send now, as far as is known."""
        return len(self._ready)

    @property
    def open(self) -> int:
        """How many lanes are not closed."""
        return sum(not place.closed for place in self._lanes.values())

    def take(self, now: float) -> Company | None:
        """Choose the lane whose next call leaves now, and charge its budget; None where none may."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, company = heapq.heappop(self._waiting)
            self._lanes[company].queued = False
            self._enqueue(company)
        while self._ready:
            priority, _, company = heapq.heappop(self._ready)
            place = self._lanes[company]
            place.queued = False
            if place.closed or place.resting:
                continue
            if priority != self._priority(place):
                self._enqueue(company)  # rows were settled while it stood in the queue
                continue
            ready_at = max(place.not_before, self._budget.ready_at(company, now))
            if ready_at > now:
                self._wait(company, ready_at)
                continue
            self._budget.sending(company, now)
            place.in_flight += 1
            place.taken += 1
            self._enqueue(company)
            return company
        return None

    def longest(self) -> int:
        """How many rows remain in the company that has the most."""
        longest = self._longest
        while longest:
            rows, company = longest[0]
            place = self._lanes[company]
            if place.closed:
                heapq.heappop(longest)
            elif -rows != place.remaining:
                heapq.heapreplace(longest, (-place.remaining, company))
            else:
                return place.remaining
        return 0

    def next_at(self) -> float:
        """Say when the first waiting lane may send; NEVER where none waits for a time."""
        while self._waiting and self._lanes[self._waiting[0][2]].closed:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else NEVER

    def waits(self) -> list[tuple[float, Company]]:
        """List the waiting lanes with the time each waits for, soonest first."""
        return sorted((until, company) for until, _, company in self._waiting if not self._lanes[company].closed)

    def paced(self, company: Company, row_s: float) -> None:
        """Learn from a call how long a row takes in a company, compared with the others."""
        place = self._lanes[company]
        self._pace += _LEARN * (row_s - self._pace) if self._pace else row_s
        if self._pace:
            place.weight += _LEARN * (row_s / self._pace - place.weight)

    def _priority(self, place: _Place) -> float:
        match self._order:
            case "longest":
                return -place.remaining * place.weight
            case "fair":
                return place.taken
            case "fifo":
                return 0

    def give_back(self, company: Company) -> None:
        """Take back a `take` that no call followed: nothing is charged, and the lane asks again when it may."""
        place = self._lanes[company]
        self._budget.refund(company)
        place.in_flight -= 1
        place.taken -= 1
        # With a call of its own on the wire, the lane has news only when that is back; it may stand in the queue.
        place.resting = place.in_flight > 0
        self._enqueue(company)

    def in_flight(self, company: Company) -> int:
        """Count a company's calls on the wire."""
        return self._lanes[company].in_flight

    def settled(self, company: Company, now: float, rows: int) -> None:
        """Note that a call is back and has settled some rows."""
        place = self._lanes[company]
        self._budget.settled(company, now)
        place.in_flight -= 1
        place.resting = False
        place.remaining -= rows
        self.total -= rows
        self._enqueue(company)
        blocked, self._blocked = self._blocked, []
        for other in blocked:
            self._enqueue(other)

    def skipped(self, company: Company, rows: int) -> None:
        """Note that some rows of a lane need no call."""
        self._lanes[company].remaining -= rows
        self.total -= rows

    def hold(self, company: Company, until: float) -> None:
        """Let nothing leave for a company before a time."""
        place = self._lanes[company]
        place.not_before = max(place.not_before, until)
        if place.resting:
            place.resting = False
            self._enqueue(company)

    def close(self, company: Company) -> None:
        """Let nothing leave for a company any more."""
        place = self._lanes[company]
        if not place.closed:
            self.total -= place.remaining
        place.closed = True

    def _enqueue(self, company: Company) -> None:
        place = self._lanes[company]
        if not (place.queued or place.closed or place.resting) and place.in_flight < self._per_company(company):
            place.queued = True
            heapq.heappush(self._ready, (self._priority(place), place.order, company))

    def _wait(self, company: Company, until: float) -> None:
        # Where only a reply can free a slot, `settled` puts the lane back: a reply to any company, for the limit
        # may be one that all share.
        if until == NEVER:
            self._blocked.append(company)
            return
        place = self._lanes[company]
        place.queued = True
        heapq.heappush(self._waiting, (until, place.order, company))
