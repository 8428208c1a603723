"""Bootstrap intervals: what other repeats of the same experiment might have given.

Percentile bootstrap (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993), ch. 13), runs drawn with
replacement *within* each level, so that every resample has all levels. With few repeats such intervals are too narrow
rather than too wide: with five, 95 % by name are about 85 % in fact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from saasload.experiments.fit import Floats

LOW, HIGH = 2.5, 97.5
"""The percentiles between which an interval lies: 95 %."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and where 95 % of the resamples put it."""

    value: float
    low: float
    high: float


def mean_interval(values: Sequence[float], *, resamples: int, seed: int) -> Interval:
    """Give the mean and its interval."""
    data = np.asarray(values, dtype=np.float64)
    drawn = data[np.random.default_rng(seed).integers(0, len(data), size=(resamples, len(data)))]
    return around(float(np.mean(data)), np.mean(drawn, axis=1))


def around(value: float, drawn: Floats) -> Interval:
    """Put the percentiles of the resamples around a value."""
    low, high = np.percentile(drawn, [LOW, HIGH])
    return Interval(value, float(low), float(high))


def resample(
    parallel: Floats, rates: Floats, fit: Callable[[Floats, Floats], Sequence[float]], *, resamples: int, seed: int
) -> Floats:
    """Fit again and again to runs drawn within each level; a row of figures a resample."""
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(parallel == level) for level in np.unique(parallel)]
    rows = []
    for _ in range(resamples):
        drawn = np.concatenate([own[rng.integers(0, len(own), size=len(own))] for own in places])
        rows.append(fit(parallel[drawn], rates[drawn]))
    return np.asarray(rows, dtype=np.float64)
