"""From a run's calls to its steady throughput and its response times."""

from dataclasses import dataclass

import numpy as np

from saasload.experiments.calls import Calls
from saasload.experiments.fit import Floats

RULE = (
    "a run is measured from the answer to its N-th call (each of N workers has had one) to the moment its last call "
    "begins (from there on it only drains); rows answered in between count; with fewer than 3 N calls nothing is cut"
)
"""How warm-up and drain are cut, in the words of every report."""

SAME_S = 0.0015
"""Moments closer than this are one: a run's file keeps the start of a call in whole milliseconds."""

PERCENTILES = (50.0, 95.0, 99.0)


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a run that is measured, in seconds from its first call; `cut` says whether it is less than all."""

    begin: float
    end: float
    cut: bool


@dataclass(frozen=True, slots=True, eq=False)
class Steady:
    """A run in its steady part: rows a second, and each call's response time from its start and from its due time."""

    window: Window
    rows_per_s: float
    response: Floats
    from_due: Floats


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Response times in seconds."""

    p50: float
    p95: float
    p99: float


def steady(calls: Calls, parallel: int) -> Steady:
    """Measure a run between warm-up and drain, by `RULE`."""
    window = steady_window(calls, parallel)
    inside = (calls.end > window.begin + SAME_S) & (calls.end <= window.end + SAME_S)
    rows = float(calls.rows[inside & calls.answered].sum())
    late = calls.end - due(calls.begin, window)
    return Steady(
        window,
        rows / max(window.end - window.begin, 1e-9),
        (calls.end - calls.begin)[inside],
        np.maximum(late, calls.end - calls.begin)[inside],
    )


def steady_window(calls: Calls, parallel: int) -> Window:
    """Find the steady part of a run by `RULE`."""
    whole = Window(0.0, float(calls.end.max()), cut=False)
    if len(calls) < 3 * parallel:
        return whole
    begin = float(np.sort(calls.end)[parallel - 1])
    # the last start is the answer it followed; that answer belongs to the window, also where rounding parts the two
    last_start = float(calls.begin.max())
    end = float(calls.end[np.argmin(np.abs(calls.end - last_start))])
    return Window(begin, end, cut=True) if end > begin else whole


def due(begin: Floats, window: Window) -> Floats:
    """Say when each call should have begun, had the run kept one even pace in its window.

    A loader that waits for each answer sends late whatever follows a slow one, and measures it from its late start:
    the slow second shows in one call instead of in all that had to wait (coordinated omission; G. Tene, wrk2). The pace
    is the run's own: its calls, in the order they began, spread evenly from the window's begin to its end.
    """
    order = np.argsort(begin, kind="stable")
    inside = (begin[order] >= window.begin - SAME_S) & (begin[order] < window.end - SAME_S)
    count = int(inside.sum())
    first = int(np.argmax(inside)) if count else 0
    step = (window.end - window.begin) / max(count, 1)
    when = np.empty_like(begin)
    when[order] = window.begin + (np.arange(len(begin)) - first) * step
    return when


def percentiles(values: Floats) -> Percentiles:
    """Give p50, p95 and p99."""
    if not len(values):
        return Percentiles(0.0, 0.0, 0.0)
    p50, p95, p99 = np.percentile(values, PERCENTILES)
    return Percentiles(float(p50), float(p95), float(p99))
