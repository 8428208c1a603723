"""One run of an experiment: what to load, and what came of it."""

from dataclasses import dataclass

from saasload.experiments.measure import Percentiles
from saasload.profile import Mode


@dataclass(frozen=True, slots=True)
class Load:
    """One run: `rows` over `companies` by `mode`, so many calls at once.

    `times` loads the same rows again into the same target and measures the last time. With `shape` "eleven" each
    company's hundred rows travel in eleven uploads.
    """

    mode: Mode
    parallel: int
    companies: int
    rows: int
    rows_per_call: int
    repeat: int
    seed: int
    profile: str
    times: int = 1
    shape: str = "even"


CPU_BOUND = 0.8
LAG_BOUND = 0.25


@dataclass(frozen=True, slots=True)
class Client:
    """What the loader itself needed, on a real clock: a share of one core, and how late its event loop woke.

    `lag_share` is the late waking at p99 as a share of the median response time, in real seconds both.
    """

    cpu_share: float
    lag_p99_ms: float
    lag_share: float

    @property
    def is_bottleneck(self) -> bool:
        """Whether the loader, rather than the target, may be what was measured."""
        return self.cpu_share > CPU_BOUND or self.lag_share > LAG_BOUND


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run; times are in the target's seconds, rates in rows an hour.

    `duration_s` is from the first call's start to the last answer. `rows_per_hour` is over the whole run, as published
    tables have it; `steady_rows_per_hour` without warm-up and drain. `response` is from each call's start, `from_due`
    from when an even pace would have begun it.
    """

    load: Load
    calls: int
    accepted: int
    refused: int
    duration_s: float
    rows_per_hour: float
    steady_rows_per_hour: float
    cut: bool
    response: Percentiles
    from_due: Percentiles
    client: Client | None
