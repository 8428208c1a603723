"""Measure throughput at several degrees of parallelism, and say which one to use."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saasload.experiments.advice import Advice, advise
from saasload.experiments.fit import check_levels
from saasload.experiments.intervals import Interval, mean_interval
from saasload.experiments.loads import Client, Ran
from saasload.experiments.measure import Percentiles
from saasload.experiments.plan import CurvePlan, loads_of
from saasload.experiments.practice import has_limits, read_scenario
from saasload.experiments.runs import Ground, make_runs
from saasload.profile import Mode

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Level:
    """One degree of parallelism in one mode, over its repeats.

    Throughputs in rows an hour; response times in seconds, the mean of the repeats' percentiles.
    """

    mode: Mode
    parallel: int
    repeats: int
    calls: int
    refused: int
    steady: Interval
    whole: float
    response: Percentiles
    from_due: Percentiles
    cut: bool
    client: Client | None


@dataclass(frozen=True, slots=True)
class ModeCurve:
    """One mode's levels, and what they advise."""

    mode: Mode
    rows_per_call: int
    levels: tuple[Level, ...]
    advice: Advice


@dataclass(frozen=True, slots=True)
class CurveResult:
    """All curves of an experiment, with the plan they follow from and the runs they rest on."""

    plan: CurvePlan
    profile: str
    curves: tuple[ModeCurve, ...]
    runs: tuple[Ran, ...]

    @property
    def simulated(self) -> bool:
        """Whether the target was a scenario, and not a system."""
        return self.plan.to is None


def run_curve(plan: CurvePlan, *, done: Callable[[Ran], None], keep: Path | None = None) -> CurveResult:
    """Make all runs of a plan and fit a curve to each mode; `done` is told of each run.

    Runs against a target other than the mock keep their folders in `keep`.
    """
    check_levels(np.array(plan.parallel, dtype=np.float64))
    profile = plan.profile or "mock"
    if plan.to is None:
        limited = has_limits(read_scenario(plan.scenario))
        profile = plan.profile or ("mock" if limited else "mock-unlimited")
    ground = Ground(plan.scenario, plan.clock, plan.time_scale)
    if plan.to is not None:
        ground = Ground("", "real", 1.0, plan.to, plan.token, tag=f"{int(time.time()):x}", keep=keep)
    ran = make_runs(loads_of(plan, profile), ground, workers=plan.workers, done=done)
    runs = sorted(ran.values(), key=lambda run: (run.load.mode, run.load.parallel, run.load.repeat))
    curves = tuple(
        mode_curve([run for run in runs if run.load.mode == mode], rows_per_call=plan.rows_a_call(mode), seed=plan.seed)
        for mode in plan.modes
    )
    return CurveResult(plan, profile, curves, tuple(runs))


def mode_curve(runs: Sequence[Ran], *, rows_per_call: int, seed: int) -> ModeCurve:
    """Sum up one mode's runs by level, and fit its curve to the single runs."""
    parallel = np.array([run.load.parallel for run in runs], dtype=np.float64)
    rates = np.array([run.steady_rows_per_hour for run in runs], dtype=np.float64)
    advice = advise(parallel, rates, seed=seed)
    found = sorted({run.load.parallel for run in runs})
    levels = tuple(_level([run for run in runs if run.load.parallel == level], seed=seed) for level in found)
    return ModeCurve(runs[0].load.mode, rows_per_call, levels, advice)


def _level(runs: Sequence[Ran], *, seed: int) -> Level:
    first = runs[0]
    clients = [run.client for run in runs if run.client is not None]
    return Level(
        mode=first.load.mode,
        parallel=first.load.parallel,
        repeats=len(runs),
        calls=sum(run.calls for run in runs),
        refused=sum(run.refused for run in runs),
        steady=mean_interval([run.steady_rows_per_hour for run in runs], resamples=RESAMPLES, seed=seed),
        whole=_mean([run.rows_per_hour for run in runs]),
        response=_mean_percentiles([run.response for run in runs]),
        from_due=_mean_percentiles([run.from_due for run in runs]),
        cut=all(run.cut for run in runs),
        client=_worst(clients) if clients else None,
    )


def _worst(clients: Sequence[Client]) -> Client:
    return Client(
        max(client.cpu_share for client in clients),
        max(client.lag_p99_ms for client in clients),
        max(client.lag_share for client in clients),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _mean_percentiles(values: Sequence[Percentiles]) -> Percentiles:
    return Percentiles(
        _mean([value.p50 for value in values]),
        _mean([value.p95 for value in values]),
        _mean([value.p99 for value in values]),
    )
