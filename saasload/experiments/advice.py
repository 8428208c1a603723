"""From measured throughputs to one number: how parallel?"""

import math
from dataclasses import dataclass

import numpy as np

from saasload.experiments.fit import Comparison, Floats, compare, fit_flat, usl_at_once
from saasload.experiments.intervals import Interval, around, resample
from saasload.experiments.models import Curve, LinearFlat

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Advice:
    """What a curve says: both fits, where the better one peaks, and the N to use.

    `peak`, `ninety` and `knee` are degrees of parallelism, `rate` is the throughput at the peak.
    """

    fits: Comparison
    peak: Interval
    ninety: Interval
    knee: Interval
    rate: Interval
    recommended: int
    why: str


def advise(parallel: Floats, rates: Floats, *, seed: int, resamples: int = RESAMPLES) -> Advice:
    """Fit both models, keep the better one, and take the smallest N that gives 90 % of its peak."""
    fits = compare(parallel, rates)
    limit = float(np.max(parallel))
    curve = fits.best.curve
    best = curve.peak(limit)

    def figures(levels: Floats, values: Floats) -> tuple[float, float, float, float]:
        again = fit_flat(levels, values) if isinstance(curve, LinearFlat) else usl_at_once(levels, values)
        peak = again.peak(limit)
        return peak.parallel, peak.ninety, peak.knee, peak.rate

    drawn = resample(parallel, rates, figures, resamples=resamples, seed=seed)
    peak, ninety, knee, rate = (
        around(value, drawn[:, place]) for place, value in enumerate((best.parallel, best.ninety, best.knee, best.rate))
    )
    recommended = smallest_inside(ninety)
    return Advice(fits, peak, ninety, knee, rate, recommended, _why(curve, peak, recommended, limit))


def smallest_inside(interval: Interval) -> int:
    """Return the smallest whole number inside an interval, or the next above where it holds none.

    >>> smallest_inside(Interval(6.9, 6.8, 7.2)), smallest_inside(Interval(6.5, 6.4, 6.6))
    (7, 7)
    """
    # a hair of tolerance: a figure that is 8 but for its last digit is 8
    return max(1, math.ceil(interval.low - 1e-6))


def _why(curve: Curve, peak: Interval, recommended: int, limit: float) -> str:
    share = min(1.0, curve.at(recommended) / curve.at(peak.value))
    if peak.value >= limit - 1e-6:
        return (
            f"{recommended} parallel calls give {share:.0%} of what {limit:.0f} give, the most that was tried; "
            "the peak lies there or beyond, so try higher levels"
        )
    if isinstance(curve, LinearFlat):
        return (
            f"{recommended} parallel calls give {share:.0%} of the most this target can do; its "
            f"{peak.value:.1f} places are then busy, and more calls only wait in its queue"
        )
    return (
        f"{recommended} parallel calls give {share:.0%} of the most this target can do; the peak is at "
        f"{peak.value:.0f}, and what lies between buys little and costs the others"
    )
