"""Run loads in virtual time, for our tests and for those of people who build on saasload."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from saasload.clock import Clock
from saasload.engine import Surroundings, push
from saasload.job import Job
from saasload.run.report import Report
from saasload.transport import App

T = TypeVar("T")

EPOCH_S = 1_790_000_007.0
"""When a simulated load begins unless told otherwise: a day in 2026, seven seconds into a minute."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """A load that ran in virtual time: what it reports, and the folder with its files."""

    report: Report
    folder: Path


def simulate(job: Job, app: App, *, epoch_s: float = EPOCH_S) -> Simulation:
    """Run a job against an ASGI application in this process, on a clock that jumps over every wait.

    Needs trio (`pip install trio`). Hours pass in seconds, and the same job gives the same figures each time,
    if the application waits with anyio and takes its wall time from `epoch_s` and the running loop's clock.
    """
    around = Surroundings(app=app, clock=Clock.virtual(epoch_s=epoch_s))
    report = run_virtual(partial(push, job, around), seed=job.seed)
    return Simulation(report, Path(report.folder))


def run_virtual(main: Callable[[], Awaitable[T]], *, seed: int | None) -> T:
    """Run to the end in virtual time; all that is random in the order of tasks comes from the seed, if there is one.

    Three things would make two runs of one seed differ, and this is the one place that knows them. trio wakes tasks
    that are due at the same instant in an order drawn by chance, on purpose, from a generator of its own: here that
    generator is seeded, and tasks are first put in the order of their birth (trio's own switch for Hypothesis, since
    0.20). The clock jumps over every wait. And the chance of loader and application comes from seeds handed to them.
    """
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
