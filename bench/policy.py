"""Microseconds a decision: a program of its own, `python -m bench.policy`; no wire, no loop."""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from saasload.model import Company, RowStatus, all_rows
from saasload.policy.budget import Budget
from saasload.policy.schedule import Schedule
from saasload.policy.window import SlidingWindow
from saasload.profile import PlatformProfile, load_profile
from saasload.run.journal import Sending, Settled, create_journal

TIMES = 20_000
REPEATS = 7
NOON_S = 43_200.0


def _window() -> Callable[[], None]:
    window = SlidingWindow(60, 60.0)

    def decide() -> None:
        for now in range(TIMES):
            window.ready_at(float(now))
            window.sending(float(now))
            window.settled(float(now))

    return decide


def _budget(profile: PlatformProfile) -> Callable[[], None]:
    budget = Budget(profile.limits, offset=NOON_S)
    companies = [Company(str(number)) for number in range(100)]

    def decide() -> None:
        for number in range(TIMES):
            now = number * 0.1
            company = companies[number % 100]
            budget.ready_at(company, now)
            budget.sending(company, now)
            budget.settled(company, now)

    return decide


def _schedule(profile: PlatformProfile, companies: int) -> Callable[[], None]:
    lanes = {Company(str(number)): TIMES * 4 + number for number in range(companies)}
    schedule = Schedule(lanes, Budget(profile.limits, offset=NOON_S), per_company=lambda _: 1)

    def decide() -> None:
        for number in range(TIMES):
            now = number * 0.1
            company = schedule.take(now)
            if company is not None:
                schedule.settled(company, now, 1)

    return decide


def _nothing_ready(profile: PlatformProfile) -> Callable[[], None]:
    schedule = Schedule({Company("1"): 10}, Budget(profile.limits, offset=NOON_S), per_company=lambda _: 1)
    schedule.take(0.0)

    def decide() -> None:
        for _ in range(TIMES):
            schedule.take(1.0)
            schedule.next_at()

    return decide


def _journal(folder: Path) -> Callable[[], None]:
    """Write calls as ten workers do: ten announced in one commit, ten settled in the next."""
    journal = create_journal(Path(tempfile.mkdtemp(dir=folder)), {})
    company, outcomes = Company("1001"), all_rows([1], RowStatus.CREATED)

    def decide() -> None:
        for first in range(1, TIMES, 10):
            numbers = range(first, first + 10)
            journal.write([Sending(number, company, "insert", 1_800_000_000_000, 500, 1, [1]) for number in numbers])
            journal.write([Settled(number, 201, 100.0, "", outcomes) for number in numbers])
        journal.close()

    return decide


def main() -> None:
    """Print microseconds a decision, by what is decided: median, least and most of seven."""
    free, limited = load_profile("mock-unlimited"), load_profile("mock")
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        cases: dict[str, Callable[[], Callable[[], None]]] = {
            "SlidingWindow: ready_at, sending, settled": _window,
            "Budget of the mock (2 windows): the same": lambda: _budget(limited),
            "Schedule without limits, 100 companies: take, settled": lambda: _schedule(free, 100),
            "Schedule without limits, 10,000 companies": lambda: _schedule(free, 10_000),
            "Schedule with the mock's limits, 100 companies": lambda: _schedule(limited, 100),
            "Schedule with the mock's limits, 10,000 companies": lambda: _schedule(limited, 10_000),
            "Schedule with nothing ready: take, next_at": lambda: _nothing_ready(limited),
            "Journal: a call announced and settled, ten in a commit": lambda: _journal(Path(folder)),
        }
        for name, make in cases.items():
            took = []
            for _ in range(REPEATS):
                decide = make()
                began = time.process_time()
                decide()
                took.append((time.process_time() - began) * 1e6 / TIMES)
            figures[name] = [statistics.median(took), min(took), max(took)]
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
