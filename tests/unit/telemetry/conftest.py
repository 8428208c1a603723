"""A load that stands still, with counts the tests choose."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from saasload.model import Company, RowStatus
from saasload.telemetry.sight import Sight

Wait = tuple[float, Company, str]


@dataclass
class StillDriver:
    """Has what a driver shows, and can fail the first looks at its waits."""

    in_flight: int = 3
    exchange: Any = field(default_factory=lambda: SimpleNamespace(retries=4, refused=2))
    waiting: list[Wait] = field(default_factory=list)
    failures: int = 0

    def waits(self) -> list[Wait]:
        """Give the waits."""
        if self.failures:
            self.failures -= 1
            raise KeyError("gone between two looks")
        return self.waiting


def still_load(**changes: Any) -> Any:
    """Make a load of 100 rows over 4 companies, whose time runs 60 times faster, with some of it changed."""
    counts = Counter({RowStatus.CREATED: 50, RowStatus.REJECTED: 7, RowStatus.IN_DOUBT: 3})
    waits = [(60.0, Company("1001"), "minute"), (120.0, Company("1002"), "minute"), (-1.0, Company("1003"), "")]
    facts = {
        "rows": 100,
        "companies": 4,
        "time_scale": 60.0,
        "book": SimpleNamespace(calls=9),
        "driver": StillDriver(waiting=waits),
        "parallelism": SimpleNamespace(limit=8),
        "counts": lambda: counts,
        "companies_done": lambda: 1,
    }
    return SimpleNamespace(**{**facts, **changes})


def prepared(mode: str = "insert") -> Any:
    """Make what a load of accounts is prepared as, as far as telemetry looks."""
    return SimpleNamespace(mode=mode, job=SimpleNamespace(entity="Account"))


@pytest.fixture
def looking() -> Callable[..., Any]:
    """Give a function that begins loads in an event loop and calls another from a thread beside it."""

    def run(read: Callable[[Sight], Any], *loads: Any) -> Any:
        async def main() -> Any:
            sight = Sight()
            for load in loads or (still_load(),):
                sight.begun(load, prepared())
            return await anyio.to_thread.run_sync(read, sight)

        return anyio.run(main)

    return run
