"""The world of one mock: everything that a reset makes new."""

from collections import deque
from dataclasses import asdict, dataclass

from mock_server.clock import Clock
from mock_server.companies import draw_companies
from mock_server.faults import Faults
from mock_server.latency import Latency
from mock_server.ledger import Ledger
from mock_server.limits import Limits
from mock_server.rules import Rules
from mock_server.scenario import Scenario

KEPT_CALLS = 10_000


@dataclass(slots=True)
class Tally:
    """What came in, of one company."""

    calls: int = 0
    rows: int = 0
    errors: int = 0
    refused: int = 0
    early: int = 0
    dropped: int = 0


CallLine = tuple[float, int, str, int, int, float]
"""One call: arrival (mock s), company, endpoint, rows, status (0 = no answer), duration (mock s)."""


class World:
    """Companies, books, limits, latency, faults and counts under one clock."""

    def __init__(self, scenario: Scenario, clock: Clock) -> None:
        """Build it from a scenario."""
        self.scenario = scenario
        self.clock = clock
        self.companies = draw_companies(scenario)
        self.rules = Rules(language=scenario.language, mandatory_status=scenario.mandatory_status)
        self.unique_code = scenario.unique_code
        self.reset()

    def reset(self) -> None:
        """Start anew: empty books, fresh windows, counters and random streams. The clock goes on."""
        scenario = self.scenario
        self.ledger = Ledger(seed=scenario.seed)
        self.faults = Faults(scenario.faults, seed=scenario.seed)
        self.limits = None if scenario.limits is None else Limits(scenario.limits, scenario.company)
        self.latency = Latency(scenario.latency, clock=self.clock, seed=scenario.seed, companies=scenario.company)
        self.tallies: dict[int, Tally] = {}
        self.calls: deque[CallLine] = deque(maxlen=KEPT_CALLS)
        self.not_before_s: dict[int, float] = {}
        self.in_flight = 0
        self.in_flight_max = 0
        self.internal_errors = 0
        self._batches = 0

    def tally(self, company: int) -> Tally:
        """Return the counts of a company."""
        tally = self.tallies.get(company)
        if tally is None:
            tally = self.tallies[company] = Tally()
        return tally

    def next_batch(self) -> int:
        """Number the batch replies, for boundaries that repeat in no reply."""
        self._batches += 1
        return self._batches

    def audit(self, key: str) -> dict[str, object]:
        """Return what is booked and what was counted."""
        self.ledger.settle(self.clock.now_s())
        books = sorted(self.ledger.books.items())
        tallies = self.tallies.values()
        return {
            "companies": {str(company): book.audit(key) for company, book in books},
            "calls": sum(tally.calls for tally in tallies),
            "errors": sum(tally.errors for tally in tallies),
            "refused": sum(tally.refused for tally in tallies),
            "early": sum(tally.early for tally in tallies),
            "dropped": sum(tally.dropped for tally in tallies),
        }

    def stats(self) -> dict[str, object]:
        """Return the counts by company and what goes on now."""
        slots = self.latency.slots
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
            "rows": sum(book.live for book in self.ledger.books.values()),
            "companies": {str(company): asdict(tally) for company, tally in sorted(self.tallies.items())},
        }
