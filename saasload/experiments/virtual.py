"""Run coroutines on a virtual clock, the same way each time.

Three things would make two runs of one seed differ, and this is the one place that knows them. trio wakes tasks that
are due at the same instant in an order drawn by chance, on purpose, from a generator of its own: here that generator
is seeded, and tasks are first put in the order of their birth (trio's own switch for Hypothesis, since 0.20). The
clock jumps over every wait. And the chance of mock and loader comes from seeds that are handed in.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

EPOCH_S = 1_790_000_007.0
"""When a virtual run begins: a day in 2026, seven seconds into a minute."""


def run_virtual(main: Callable[[], Awaitable[T]], *, seed: int) -> T:
    """Run to the end in virtual time; all that is random in the order of tasks comes from the seed."""
    import trio._core._run as scheduler  # noqa: PLC0415 trio has no public way, and is an extra
    import trio.testing  # noqa: PLC0415

    before, chance = scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r.getstate()  # noqa: SLF001
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # noqa: SLF001 a Final that trio sets too
    scheduler._r.seed(seed)  # noqa: SLF001
    try:
        clock = trio.testing.MockClock(autojump_threshold=0)
        return anyio.run(main, backend="trio", backend_options={"clock": clock})
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = before  # type: ignore[misc]  # noqa: SLF001
        scheduler._r.setstate(chance)  # noqa: SLF001
