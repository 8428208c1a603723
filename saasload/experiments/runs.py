"""Make the runs of an experiment, each against a fresh target, and measure them."""

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import numpy as np
from pydantic import SecretStr

from saasload.clock import Clock
from saasload.engine import Live, Surroundings, push, push_sync
from saasload.errors import TargetError
from saasload.experiments.calls import read_calls
from saasload.experiments.loads import Client, Load, Ran
from saasload.experiments.measure import percentiles, steady
from saasload.experiments.practice import make_app, mock_child
from saasload.experiments.workload import BYTES_OF_TEN, write_customers, write_eleven_uploads
from saasload.job import Job, make_job
from saasload.run.report import Report
from saasload.testing import EPOCH_S, run_virtual

PATIENCE_S = 36_000.0
"""A call is never given up for being slow: in an experiment that is what is measured."""
TICK_S = 0.01


@dataclass(frozen=True, slots=True)
class Ground:
    """Where runs are made: `to` without a value is the bundled mock, on the virtual clock or as a child.

    `tag` begins the codes of all rows.
    Run folders are kept in `keep`: whoever writes to a real target wants to know what; else they are thrown away.
    """

    scenario: str
    clock: str
    time_scale: float
    to: str | None = None
    token: SecretStr | None = None
    tag: str = "C"
    keep: Path | None = None


def make_runs(loads: Sequence[Load], ground: Ground, *, workers: int, done: Callable[[Ran], None]) -> dict[Load, Ran]:
    """Make runs in the order given; `done` is told of each. Virtual ones are shared out over processes."""
    results: dict[Load, Ran] = {}
    if ground.clock == "real" or workers == 1 or len(loads) < 2:
        for load in loads:
            results[load] = make_run(load, ground)
            done(results[load])
        return results
    # spawned, not forked: a fork would copy what threads of Arrow hold locked
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_deaf) as pool:
        for ran in pool.map(partial(make_run, ground=ground), loads):
            results[ran.load] = ran
            done(ran)
    return results


def _deaf() -> None:
    """Leave Ctrl-C to the process that started us: it drops what has not begun."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def spare_cores() -> int:
    """How many runs may be made at once on a virtual clock."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def make_run(load: Load, ground: Ground) -> Ran:
    """Make one run and measure it."""
    with tempfile.TemporaryDirectory(prefix="saasload-", dir=_scratch(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        source = folder / "customers.parquet"
        if load.shape == "eleven":
            write_eleven_uploads(source, companies=load.companies, rows=load.rows)
        else:
            write_customers(source, rows=load.rows, tag=_tag(load, ground))
        job = make_job(
            source=source, runs=ground.keep or folder / "runs", profile=load.profile, mode=load.mode,
            parallel=load.parallel, partitions=load.companies, rows_per_call=load.rows_per_call, seed=load.seed,
            deadline_s=PATIENCE_S,
            bytes_per_call=BYTES_OF_TEN if load.shape == "eleven" else None,
        )  # fmt: skip
        if ground.clock == "virtual":
            return _measured(load, _push_virtual(load, ground, job), None)
        return _run_real(load, ground, job)


def _scratch() -> str | None:
    """Choose where run folders are written: in memory, if there is such a place.

    A load makes each call durable before it leaves. On a disk that takes milliseconds, which a virtual clock does not
    count but the user waits for, and which a clock run 50 times faster would count 50 times.
    """
    memory = "/dev/shm"  # noqa: S108 not by a fixed name: the folder in it gets a random one
    return memory if os.access(memory, os.W_OK) else None


def _tag(load: Load, ground: Ground) -> str:
    """Begin the codes of a run so that no other run of the experiment has them: a target keeps what it was sent."""
    return f"{ground.tag}{load.mode[0]}{load.parallel}.{load.repeat}." if ground.to else ground.tag


def _push_virtual(load: Load, ground: Ground, job: Job) -> Report:
    app = make_app(ground.scenario, seed=load.seed, epoch_s=EPOCH_S)

    async def main() -> Report:
        around = Surroundings(app=app, clock=Clock.virtual(epoch_s=EPOCH_S))
        for number in range(load.times - 1):
            await push(job.model_copy(update={"run": f"before-{number}"}), around)
        return await push(job.model_copy(update={"run": "measured"}), around)

    return run_virtual(main, seed=load.seed)


def _run_real(load: Load, ground: Ground, job: Job) -> Ran:
    with _target(load, ground) as url:
        scale = ground.time_scale if ground.to is None else None
        name = f"{load.mode}-{load.parallel}-{load.repeat}" if ground.keep else None
        told = {"run": name, "to": url, "token": ground.token, "time_scale": scale}
        lags: list[float] = []
        cpu_s, real_s = time.process_time(), time.perf_counter()
        report = push_sync(job.model_copy(update=told), Surroundings(watch=partial(_watch, lags)))
        cpu_s, real_s = time.process_time() - cpu_s, time.perf_counter() - real_s
    lag_s = float(np.percentile(lags, 99.0)) if lags else 0.0
    response_s = max(percentiles(_responses(report)).p50 / report.time_scale, 1e-9)
    return _measured(load, report, Client(cpu_s / real_s, lag_s * 1000.0, lag_s / response_s))


@contextlib.contextmanager
def _target(load: Load, ground: Ground) -> Iterator[str]:
    if ground.to is not None:
        yield ground.to
        return
    with mock_child(ground.scenario, seed=load.seed, time_scale=ground.time_scale) as url:
        yield url


async def _watch(lags: list[float], _live: Live) -> None:
    """Note how much later than asked the event loop wakes a sleeper."""
    while True:
        until = anyio.current_time() + TICK_S
        await anyio.sleep_until(until)
        lags.append(max(0.0, anyio.current_time() - until))


def _responses(report: Report) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    calls = read_calls(Path(report.folder))
    return np.asarray(calls.end - calls.begin, dtype=np.float64)


def _measured(load: Load, report: Report, client: Client | None) -> Ran:
    """Measure a run whose folder is still there."""
    calls = read_calls(Path(report.folder))
    calls = calls.where(calls.mode == load.mode)  # and not the reads that ask what became of rows in doubt
    if not len(calls) or not report.accepted:
        reason = report.stopped or next(iter(report.reasons), "no row was accepted")
        message = f"{load.mode} with {load.parallel} parallel: nothing to measure: {reason}"
        raise TargetError(message)
    found = steady(calls, load.parallel)
    lasted_s = float(calls.end.max())  # the loader's own preparation is not sped up with the target's time: left out
    return Ran(
        load=load,
        calls=report.calls,
        accepted=report.accepted,
        refused=report.refused,
        duration_s=lasted_s,
        rows_per_hour=report.accepted * 3600.0 / max(lasted_s, 1e-9),
        steady_rows_per_hour=found.rows_per_s * 3600.0,
        cut=found.window.cut,
        response=percentiles(found.response),
        from_due=percentiles(found.from_due),
        client=client,
    )
