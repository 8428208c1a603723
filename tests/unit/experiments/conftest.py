"""Calls as a target would have served them, and curves as runs would have given them."""

import heapq
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from saasload.experiments.calls import Calls
from saasload.experiments.curve import ModeCurve, mode_curve
from saasload.experiments.loads import Client, Load, Ran
from saasload.experiments.measure import Percentiles


def _calls(begin: Sequence[float], end: Sequence[float], **columns: Sequence[Any]) -> Calls:
    count = len(begin)
    return Calls(
        company=np.array(columns.get("company") or [f"{1001 + place}" for place in range(count)], dtype=np.str_),
        mode=np.array(columns.get("mode") or ["batch"] * count, dtype=np.str_),
        rows=np.array(columns.get("rows") or [1] * count, dtype=np.int64),
        status=np.array(columns.get("status") or [200] * count, dtype=np.int64),
        begin=np.array(begin, dtype=np.float64),
        end=np.array(end, dtype=np.float64),
        epoch_s=0.0,
    )


@pytest.fixture
def make_calls() -> Callable[..., Calls]:
    """Give a function that puts calls side by side; what is not given is the same for all."""
    return _calls


@pytest.fixture
def play() -> Callable[..., Calls]:
    """Give a function that plays a target with places and a queue, call by call, and notes what a client sees."""

    def run(
        *,
        places: int,
        parallel: int,
        sizes: Sequence[int],
        companies: int = 30,
        call_s: float = 0.4,
        row_s: float = 0.05,
        sigma: float = 0.1,
        slower: dict[int, float] | None = None,
        wait_coef: float = 0.0,
        mode: str = "batch",
    ) -> Calls:
        chance = random.Random(7)
        queue = [(1001 + place, number) for number in range(len(sizes)) for place in range(companies)]
        workers = [(place * 0.01, place) for place in range(parallel)]
        free: list[float] = []
        taken: list[float] = []
        lines = []
        for company, number in queue:
            arrived, worker = heapq.heappop(workers)
            begin = arrived if len(free) < places else max(arrived, heapq.heappop(free))
            waiting = sum(moment > begin for moment in taken[-parallel:]) + max(0, parallel - places)
            crowd = 1.0 + wait_coef * np.log2(1.0 + waiting)
            alone = (call_s + row_s * sizes[number]) * (slower or {}).get(company, 1.0)
            end = begin + alone * crowd * chance.lognormvariate(-sigma * sigma / 2, sigma)
            heapq.heappush(free, end)
            heapq.heappush(workers, (end + 0.002, worker))
            taken.append(begin)
            lines.append((arrived, end, str(company), sizes[number]))
        lines.sort()
        return _calls(
            [line[0] for line in lines],
            [line[1] for line in lines],
            company=[line[2] for line in lines],
            rows=[line[3] for line in lines],
            mode=[mode] * len(lines),
        )

    return run


@pytest.fixture
def make_curve() -> Callable[..., ModeCurve]:
    """Give a function that makes a mode's curve of a throughput at each level."""

    def make(at: Callable[[int], float], *, client: Client | None = None, refused: int = 0) -> ModeCurve:
        times = Percentiles(0.5, 0.9, 1.1)
        runs = [
            Ran(
                load=Load("batch", level, 100, 10_000, 25, repeat, repeat, "mock"),
                calls=400,
                accepted=10_000,
                refused=refused,
                duration_s=36e6 / at(level),
                rows_per_hour=at(level) * 0.98,
                steady_rows_per_hour=at(level) * (1.0 + 0.004 * (repeat - 1)),
                cut=True,
                response=times,
                from_due=times,
                client=client,
            )
            for level in (1, 2, 4, 6, 8, 10, 16, 32, 100)
            for repeat in range(3)
        ]
        return mode_curve(runs, rows_per_call=25, seed=1)

    return make
