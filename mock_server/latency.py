"""How long a call takes: the company's lock, then a shared slot, then the service itself."""

import math
import random
from collections import deque
from collections.abc import Callable

import anyio

from mock_server.clock import Clock
from mock_server.jitter import company_factor, jitter
from mock_server.scenario import CompanySpec, Cost, Endpoint, LatencySpec, SlowdownSpec


class Gate:
    """First come, first served; at most `places` inside."""

    __slots__ = ("inside", "places", "queue")

    def __init__(self, places: int) -> None:
        """Open with nobody inside."""
        self.places = places
        self.inside = 0
        self.queue: deque[anyio.Event] = deque()

    async def enter(self) -> None:
        """Wait for a place and take it."""
        if self.inside < self.places and not self.queue:
            self.inside += 1
            return
        turn = anyio.Event()
        self.queue.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.leave()  # the place had been handed over already
            else:
                self.queue.remove(turn)
            raise

    def leave(self) -> None:
        """Hand the place to the first in the queue, or give it back."""
        if self.queue:
            self.queue.popleft().set()
        else:
            self.inside -= 1


def service_s(cost: Cost, *, rows: int, unchanged: int) -> float:
    """Return what a call takes with nobody else about.

    >>> service_s(Cost(call_s=0.25, row_s=0.13), rows=25, unchanged=0)
    3.5
    """
    unchanged_s = cost.row_s if cost.unchanged_row_s is None else cost.unchanged_row_s
    return cost.call_s + cost.row_s * rows + unchanged_s * unchanged


def contention(spec: LatencySpec, *, busy: int, waiting: int) -> float:
    """Return how much slower a call is with `busy` calls in service, itself included, and `waiting` ones queued.

    The first factor is that of the Universal Scalability Law, contention and coherency.

    >>> contention(LatencySpec(busy_coef=0.01, wait_coef=0.02), busy=1, waiting=0)
    1.0
    """
    crowd = 1 + spec.busy_coef * (busy - 1) + spec.coherency_coef * busy * (busy - 1)
    return crowd * (1 + spec.wait_coef * math.log2(1 + waiting))


class Latency:
    """Serves calls at the pace of a scenario.

    Randomness comes from one stream a company, so a company more or less changes nothing for the others.
    """

    def __init__(
        self,
        spec: LatencySpec,
        *,
        clock: Clock,
        seed: int,
        companies: dict[int, CompanySpec],
        slowdowns: tuple[SlowdownSpec, ...] = (),
    ) -> None:
        """Start idle."""
        self._slowdowns = slowdowns
        self._paces: dict[int, float] = {}
        self._spec = spec
        self._clock = clock
        self._seed = seed
        self._companies = companies
        self._locks: dict[int, Gate] = {}
        self._streams: dict[int, random.Random] = {}
        self.slots = Gate(spec.slots)
        self._costs: dict[Endpoint, Cost] = {"insert": spec.insert, "batch": spec.batch, "xml": spec.xml}
        self._free = {mode: cost == Cost(unchanged_row_s=cost.unchanged_row_s) for mode, cost in self._costs.items()}

    def is_free(self, endpoint: Endpoint) -> bool:
        """Say whether such calls take no time at all, so that nothing need be known about them beforehand."""
        return self._free.get(endpoint, self._spec.read_s == 0.0)

    async def serve(
        self, company: int, endpoint: Endpoint, *, rows: int, unchanged: int, abandoned: Callable[[float], None]
    ) -> None:
        """Wait until the call has been served.

        When the caller is cancelled during the service, `abandoned` is told when it would have ended: the
        platform does not notice that nobody listens any more. Cancelled in the queue, the call never happens.
        """
        if endpoint == "read":
            await self._clock.sleep(self._spec.read_s)
            return
        lock = self._lock(company)
        await lock.enter()
        try:
            await self.slots.enter()
            try:
                lasts_s = self._draw(company, service_s(self._costs[endpoint], rows=rows, unchanged=unchanged))
                ends_s = self._clock.now_s() + lasts_s
                try:
                    await self._clock.sleep(lasts_s)
                except anyio.get_cancelled_exc_class():
                    abandoned(ends_s)
                    raise
            finally:
                self.slots.leave()
        finally:
            lock.leave()

    def _draw(self, company: int, alone_s: float) -> float:
        spec = self._spec
        stream = self._streams.get(company)
        if stream is None:
            stream = self._streams[company] = random.Random(f"{self._seed}:{company}")  # noqa: S311 - a simulation
        crowd = contention(spec, busy=self.slots.inside, waiting=len(self.slots.queue))
        return alone_s * self.pace(company) * self._slowdown(company) * crowd * jitter(spec, stream)

    def pace(self, company: int) -> float:
        """Return how many times as long as usual a company's calls take."""
        pace = self._paces.get(company)
        if pace is None:
            special = self._companies.get(company)
            own = None if special is None else special.slower
            drawn = company_factor(self._spec.by_company, company=company, seed=self._seed) if own is None else own
            pace = self._paces[company] = drawn
        return pace

    def _slowdown(self, company: int) -> float:
        """Return the factor of the slow-down that goes on, if any."""
        if not self._slowdowns:
            return 1.0
        now_s = self._clock.now_s()
        for one in self._slowdowns:
            lasts = one.at_s <= now_s and (one.for_s is None or now_s < one.at_s + one.for_s)
            if lasts and one.company in {None, company}:
                return one.factor
        return 1.0

    def _lock(self, company: int) -> Gate:
        lock = self._locks.get(company)
        if lock is None:
            special = self._companies.get(company)
            own = None if special is None else special.per_company
            lock = self._locks[company] = Gate(own or self._spec.per_company)
        return lock
