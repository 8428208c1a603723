"""The world of one mock: everything that a reset makes new."""

from bisect import bisect_left
from collections import deque
from dataclasses import asdict, dataclass, field

from mock_server.clock import Clock
from mock_server.companies import draw_companies
from mock_server.csrf import Sessions
from mock_server.entities import ACCOUNT, Entity
from mock_server.faults import Faults
from mock_server.latency import Latency
from mock_server.ledger import Ledger
from mock_server.limits import Limits
from mock_server.oauth import Door
from mock_server.rules import Rules
from mock_server.scenario import Scenario
from mock_server.store import Store

KEPT_CALLS = 10_000
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histogram of durations, in mock seconds; one more bucket has no bound."""


@dataclass(slots=True)
class Tally:
    """What came in, of one company."""

    calls: int = 0
    rows: int = 0
    errors: int = 0
    refused: int = 0
    early: int = 0
    dropped: int = 0
    in_flight: int = 0


@dataclass(slots=True)
class Durations:
    """How long the calls of one way to travel took."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0
    rows: int = 0


CallLine = tuple[float, int, str, int, int, float]
"""One call: arrival (mock s), company, endpoint, rows, status (0 = no answer), duration (mock s)."""


class World:
    """Companies, books, limits, latency, faults and counts under one clock."""

    def __init__(self, scenario: Scenario, clock: Clock, store: Store | None = None) -> None:
        """Build it from a scenario, and go on with what a store has kept."""
        self.clock = clock
        self.store = store
        self._begin(scenario)
        if store is not None:
            store.load(self.ledger)
            self._recall(store)

    def play(self, scenario: Scenario) -> None:
        """Go over to another scenario, with empty books."""
        if self.store is not None:
            self.store.clear(seed=scenario.seed)
        self._begin(scenario)

    def reset(self) -> None:
        """Start anew: empty books, fresh windows, counters and random streams. The clock goes on."""
        self.play(self.scenario)

    def _begin(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.companies = draw_companies(scenario)
        self.rules = Rules(language=scenario.language, mandatory_status=scenario.mandatory_status)
        self.unique_code = scenario.unique_code
        self.ledger = Ledger(seed=scenario.seed, log=None if self.store is None else self.store.log)
        self.faults = Faults(scenario.faults, seed=scenario.seed)
        self.limits = None if scenario.limits is None else Limits(scenario.limits, scenario.company)
        self.latency = Latency(scenario.latency, clock=self.clock, seed=scenario.seed, companies=scenario.company,
                               slowdowns=scenario.slowdowns)  # fmt: skip
        self.door = Door(scenario.token, scenario.oauth, seed=scenario.seed)
        self.sessions = None if scenario.csrf is None else Sessions(scenario.csrf, seed=scenario.seed)
        self.tallies: dict[int, Tally] = {}
        self.durations: dict[str, Durations] = {}
        self.calls: deque[CallLine] = deque(maxlen=KEPT_CALLS)
        self.calls_noted = 0
        self.not_before_s: dict[int, float] = {}
        self.in_flight = 0
        self.in_flight_max = 0
        self.internal_errors = 0
        self._batches = 0

    def _recall(self, store: Store) -> None:
        kept = store.recall("oauth")
        if kept is not None and self.door.spec is not None:
            self.door.load(kept)
        kept = store.recall("limits")
        if kept is not None and self.limits is not None:
            self.limits.load(kept)

    def remember_door(self) -> None:
        """Keep the tokens that were given out: a client that comes back has nothing else."""
        if self.store is not None and self.door.spec is not None:
            self.store.remember("oauth", self.door.dump())

    def close(self) -> None:
        """Keep what has to be kept."""
        if self.store is not None:
            if self.limits is not None:
                self.store.remember("limits", self.limits.dump())
            self.store.close()

    def tally(self, company: int) -> Tally:
        """Return the counts of a company; 0 counts what is of none."""
        tally = self.tallies.get(company)
        if tally is None:
            tally = self.tallies[company] = Tally()
        return tally

    def note(self, call: CallLine) -> None:
        """Write a call into the log."""
        self.calls.append(call)
        self.calls_noted += 1
        durations = self.durations.get(call[2])
        if durations is None:
            durations = self.durations[call[2]] = Durations()
        durations.buckets[bisect_left(BUCKETS_S, call[5])] += 1
        durations.total_s += call[5]
        durations.rows += call[3]

    def last_calls(self, number: int) -> list[CallLine]:
        """Return the last so many calls, without a walk through all of them."""
        wanted = min(number, len(self.calls))
        return [self.calls[place] for place in range(-wanted, 0)]

    def next_batch(self) -> int:
        """Number the batch replies, for boundaries that repeat in no reply."""
        self._batches += 1
        return self._batches

    def audit(self, key: str, entity: Entity = ACCOUNT) -> dict[str, object]:
        """Return what is booked and what was counted."""
        self.settle()
        books = sorted(self.ledger.books(entity).items())
        tallies = self.tallies.values()
        return {
            "entity": entity.set,
            "key": key,
            "companies": {str(company): book.audit(key) for company, book in books},
            "calls": sum(tally.calls for tally in tallies),
            "errors": sum(tally.errors for tally in tallies),
            "refused": sum(tally.refused for tally in tallies),
            "early": sum(tally.early for tally in tallies),
            "dropped": sum(tally.dropped for tally in tallies),
        }

    def settle(self) -> None:
        """Commit what is due by now."""
        self.ledger.settle(self.clock.now_s())
        if self.store is not None:
            self.store.flush()

    def stats(self) -> dict[str, object]:
        """Return the counts by company and what goes on now."""
        slots = self.latency.slots
        tallies = ((company, tally) for company, tally in sorted(self.tallies.items()) if tally.calls or company)
        return {
            "scenario": self.scenario.name,
            "time_scale": self.clock.scale,
            "now_s": self.clock.now_s(),
            "wall_s": self.clock.wall_s(),
            "in_flight": self.in_flight,
            "in_flight_max": self.in_flight_max,
            "in_service": slots.inside,
            "waiting_for_a_slot": len(slots.queue),
            "internal_errors": self.internal_errors,
            "rows": sum(book.live for book in self.ledger.books().values()),
            "companies": {str(company): asdict(tally) for company, tally in tallies},
        }
