"""Run loads in virtual time, for our tests and for those of people who build on saasload."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from saasload.clock import Clock
from saasload.engine import Surroundings, push
from saasload.job import Job
from saasload.run.report import Report
from saasload.transport import App

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
    import trio._core._run as scheduler  # noqa: PLC0415 see below
    import trio.testing  # noqa: PLC0415 trio is not needed for loads

    # trio runs tasks that wake at one instant in an order it draws, so that nobody relies on it. Here the same
    # job is to give the same figures, so the tasks are sorted and the draw is made the same; trio has both
    # switches for this purpose, and Hypothesis uses the second.
    scheduler._r.seed(job.seed)  # noqa: SLF001
    before = scheduler._ALLOW_DETERMINISTIC_SCHEDULING  # noqa: SLF001
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc] # noqa: SLF001
    around = Surroundings(app=app, clock=Clock.virtual(epoch_s=epoch_s))
    clock = trio.testing.MockClock(autojump_threshold=0)
    try:
        report = anyio.run(partial(push, job, around), backend="trio", backend_options={"clock": clock})
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = before  # type: ignore[misc] # noqa: SLF001
    return Simulation(report, Path(report.folder))
