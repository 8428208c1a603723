"""Adaptive limits against the best fixed number of calls: `python -m bench.concurrency`, in simulated time.

The rivals are rewritten from their sources, with their own defaults but for the start, which is the same for all:
Vector's ARC (`src/sinks/util/adaptive_concurrency/controller.rs`), Netflix concurrency-limits' Gradient2Limit and
VegasLimit (`concurrency-limits-core/.../limit/`). They know one limit for all and no companies.
"""

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import Pool

from bench.concurrency_sim import SCENARIOS, Controller, Result, Scenario, Simulation
from bench.tables import table
from saasload.model import Company
from saasload.policy.concurrency import Concurrency, Reply, Ticket
from saasload.policy.concurrency_level import Seen

FIXED = (1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 64, 100)
START = 10
CEILING = 100
WARM_SHARE = 0.2
WARM_CALLS = 5
"""Warm-up: the first fifth of the time, or five of the longest calls, and as long again after a change."""


class Fixed:
    """As many calls as it was told."""

    def __init__(self, limit: int) -> None:
        """Take the limit."""
        self.limit = limit
        self.in_flight = 0

    def company_limit(self, company: Company) -> int:  # noqa: ARG002 knows no companies
        """Leave companies to the scenario."""
        return CEILING

    def sent(self, company: Company, now: float) -> Ticket:
        """Count."""
        self.in_flight += 1
        return Ticket(company, now, Seen(self.in_flight, 0, 0), None)

    def settled(
        self, ticket: Ticket, now: float, *, rows: int, form: str, reply: Reply, spent: float = 0.0  # noqa: ARG002
    ) -> None:  # fmt: skip
        """Count, and learn."""
        flying, self.in_flight = self.in_flight, self.in_flight - 1
        self.heard(now, now - ticket.started, flying, reply is Reply.ANSWERED)

    def heard(self, now: float, took: float, in_flight: int, good: bool) -> None:  # noqa: FBT001 one shape for all
        """Learn nothing."""


class Arc(Fixed):
    """Vector's ARC: AIMD on push-back and on a mean round trip beyond its past mean and 2.5 deviations."""

    def __init__(self, limit: int) -> None:
        """Start with no past."""
        super().__init__(limit)
        self._mean = self._variance = self._until = 0.0
        self._times: list[float] = []
        self._known = self._pushed = self._reached = False

    def sent(self, company: Company, now: float) -> Ticket:
        """Count, and see whether the limit is used."""
        ticket = super().sent(company, now)
        self._reached |= self.in_flight >= self.limit
        return ticket

    def heard(self, now: float, took: float, in_flight: int, good: bool) -> None:  # noqa: ARG002, FBT001 one shape
        """Decide once a mean round trip."""
        self._pushed |= not good
        if good:
            self._times.append(took)
        current = statistics.fmean(self._times) if self._times else None
        if not self._known:
            if current is not None:
                self._known, self._mean, self._until = True, current, now + current
            return
        if now < self._until:
            return
        bound = self._mean + 2.5 * math.sqrt(self._variance)
        if self._reached and not self._pushed and current is not None and current <= self._mean:
            self.limit = min(self.limit + 1, 200)
        elif self._pushed or (current or 0.0) >= bound:
            self.limit = max(int(self.limit * 0.9), 1)
        if current is not None:
            off = current - self._mean
            self._mean += 0.4 * off
            self._variance = 0.6 * (self._variance + 0.4 * off * off)
        self._until, self._times, self._pushed, self._reached = now + self._mean, [], False, False


class Gradient2(Fixed):
    """Netflix' Gradient2: long-term mean over current round trip, by call."""

    def __init__(self, limit: int) -> None:
        """Start with no past; the least limit is 1 here, 20 there."""
        super().__init__(limit)
        self._estimate = float(limit)
        self._long = self._sum = 0.0
        self._count = 0

    def heard(self, now: float, took: float, in_flight: int, good: bool) -> None:  # noqa: ARG002, FBT001 one shape
        """Follow the gradient."""
        self._count += 1
        if self._count <= 10:
            self._sum += took
            self._long = self._sum / self._count
        else:
            self._long += (took - self._long) * 2 / 601
        if self._long / took > 2:
            self._long *= 0.9
        if in_flight < self._estimate / 2:
            return
        gradient = max(0.5, min(1.0, self._long / took))
        self._estimate = min(200.0, max(1.0, 0.8 * self._estimate + 0.2 * (self._estimate * gradient + 4)))
        self.limit = int(self._estimate)


class Vegas(Fixed):
    """Netflix' Vegas: queue estimated against the least round trip, by call."""

    def __init__(self, limit: int) -> None:
        """Start with no past."""
        super().__init__(limit)
        self._estimate = float(limit)
        self._least = math.inf
        self._count = 0
        self._rng = random.Random(1)
        self._probe = self._rng.uniform(0.5, 1)

    def heard(self, now: float, took: float, in_flight: int, good: bool) -> None:  # noqa: ARG002, FBT001 one shape
        """Keep the queue between alpha and beta."""
        self._count += 1
        if self._probe * 30 * self._estimate <= self._count:
            self._probe, self._count, self._least = self._rng.uniform(0.5, 1), 0, took
            return
        if took < self._least:
            self._least = took
            return
        step = max(1, int(math.log10(int(self._estimate))))
        queue = math.ceil(self._estimate * (1 - self._least / took))
        if not good:
            self._estimate -= step
        elif in_flight * 2 < self._estimate:
            return
        elif queue <= step:
            self._estimate += 6 * step
        elif queue < 3 * step:
            self._estimate += step
        elif queue > 6 * step:
            self._estimate -= step
        self._estimate = max(1.0, min(200.0, self._estimate))
        self.limit = int(self._estimate)


RIVALS: dict[str, Callable[[int, Scenario], Controller]] = {
    "saasload": lambda seed, it: Concurrency(START, CEILING, random.Random(seed), per_company=it.per_company),
    "Vector ARC": lambda _, __: Arc(START),
    "Gradient2": lambda _, __: Gradient2(START),
    "Vegas": lambda _, __: Vegas(START),
}


def held(result: Result, scenario: Scenario) -> tuple[float, float]:
    """Return mean and most calls in flight after warm-up, in knees: the worst of the spans around a change."""
    longest = max(scenario.alone_s(min(scenario.cut, size), 1) for size in scenario.sizes())
    end, turn, change = result.makespan_s, scenario.turns_at(), scenario.half_way
    slots, slower = (scenario.slots, 1.0) if change is None else (change.slots, change.slower)
    spans = [(0.0, min(turn, end), scenario.slots, longest)]
    if turn < end:
        spans.append((turn, end, slots, longest * slower))
    found = []
    for begin, until, knee, call in spans:
        warm = begin + max(WARM_SHARE * (until - begin), WARM_CALLS * call)
        if warm < until:
            mean, most = result.after(warm, until)
            found.append((mean / knee, most / knee))
    return max((mean for mean, _ in found), default=0.0), max((most for _, most in found), default=0.0)


def measure(place: int, seed: int) -> tuple[int, int, dict[str, tuple[float, float, float]]]:
    """Run one scenario with one seed: the best fixed number, and by contender makespan over its and calls held."""
    scenario = SCENARIOS[place]
    fixed = {number: Simulation(scenario, Fixed(number), seed).run().makespan_s for number in FIXED}
    best = min(fixed, key=fixed.__getitem__)
    figures = {}
    for name, make in RIVALS.items():
        result = Simulation(scenario, make(seed, scenario), seed).run()
        figures[name] = (result.makespan_s / fixed[best], *held(result, scenario))
    return place, best, figures


def _lines(
    places: Sequence[int], measured: list[tuple[int, int, dict[str, tuple[float, float, float]]]]
) -> list[list[str]]:
    lines = []
    for place in places:
        mine = [(best, figures) for number, best, figures in measured if number == place]
        line = [SCENARIOS[place].name, str(SCENARIOS[place].slots), str(statistics.mode(best for best, _ in mine))]
        for name in RIVALS:
            loss = [100 * (figures[name][0] - 1) for _, figures in mine]
            most = [figures[name][2] for _, figures in mine]
            mean = statistics.median(figures[name][1] for _, figures in mine)
            line.append(f"{statistics.median(loss):+.1f} ({max(loss):+.1f})")
            line.append(f"{mean:.1f} / {statistics.median(most):.1f} ({max(most):.1f})")
        lines.append(line)
    return lines


def cost_us(times: int = 200_000) -> float:
    """Return microseconds of CPU a call (two decisions: sent, and settled), rounds' ends included."""
    limit = Concurrency(START, CEILING, random.Random(1))
    companies = [Company(str(number)) for number in range(100)]
    rng = random.Random(2)
    took = [rng.lognormvariate(0.0, 0.3) for _ in range(1000)]
    flying = [limit.sent(companies[number], 0.0) for number in range(8)]
    began = time.process_time()
    for number in range(times):
        now = number / 8
        limit.settled(flying[number % 8], now + 2 + took[number % 1000], rows=25, form="batch", reply=Reply.ANSWERED)
        flying[number % 8] = limit.sent(companies[number % 100], now + 1)
    return (time.process_time() - began) * 1e6 / times


def main() -> int:
    """Print one table: loss against the best fixed number in %, and calls in flight after warm-up in knees."""
    parser = argparse.ArgumentParser(prog="python -m bench.concurrency", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", action="append", help="part of a scenario's name; repeatable")
    options = parser.parse_args()
    places = [
        place for place, scenario in enumerate(SCENARIOS)
        if not options.only or any(part in scenario.name for part in options.only)
    ]  # fmt: skip
    with Pool() as pool:
        tasks = [(place, seed) for place in places for seed in range(options.seeds)]
        measured = pool.starmap(measure, tasks, chunksize=1)
    head = ["scenario", "knee", "best N"]
    for name in RIVALS:
        head += [f"{name}: loss %", "in flight"]
    print(table(head, _lines(places, measured)))
    print(
        f"\nMedian (worst) of {options.seeds} seeds. Loss: makespan over that of the best of N = "
        f"{', '.join(map(str, FIXED))}. In flight after warm-up, in knees: mean / most (worst)."
        f"\nTwo decisions (a call sent, and settled), rounds included: {cost_us():.1f} us of CPU."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
