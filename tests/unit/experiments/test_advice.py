"""From throughputs to one number."""

from collections.abc import Callable

import numpy as np
import pytest

from saasload.experiments.advice import advise, smallest_inside
from saasload.experiments.curve import ModeCurve
from saasload.experiments.intervals import Interval, mean_interval, resample
from saasload.experiments.models import LinearFlat, Usl


def test_eight_places_need_eight_calls(make_curve: Callable[..., ModeCurve]) -> None:
    """90 % of eight places is 7.2 calls, so eight."""
    advice = make_curve(LinearFlat(25_000.0, 200_000.0).at).advice

    assert advice.recommended == 8
    assert advice.peak.value == pytest.approx(8.0, rel=0.01)
    assert advice.peak.low <= advice.peak.value <= advice.peak.high
    assert "8 parallel calls give 100%" in advice.why


def test_a_law_is_answered_below_its_peak(make_curve: Callable[..., ModeCurve]) -> None:
    """The smallest N with 90 % of the peak, and not the peak."""
    law = Usl(25_000.0, 0.03, 0.0008)
    advice = make_curve(law.at).advice

    assert advice.fits.best.curve.name == "usl"
    assert advice.recommended < 0.6 * law.peak(100.0).parallel
    assert law.at(advice.recommended) >= 0.89 * law.peak(100.0).rate


def test_a_peak_that_was_not_reached_is_said(make_curve: Callable[..., ModeCurve]) -> None:
    """A curve that still rises at its last level gets no peak made up for it."""
    advice = make_curve(lambda level: 1000.0 * level).advice

    assert "try higher levels" in advice.why


def test_the_same_seed_draws_the_same_intervals() -> None:
    """Another seed draws others, around the same value."""
    levels = np.repeat([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], 3)
    rates = np.minimum(100.0 * levels, 700.0) * np.tile([0.97, 1.0, 1.04], 6)

    one, again, other = (advise(levels, rates, seed=seed, resamples=200) for seed in (1, 1, 2))

    assert (one.peak, one.ninety) == (again.peak, again.ninety)
    assert one.peak.value == other.peak.value
    assert one.peak != other.peak


def test_one_repeat_has_no_interval() -> None:
    """Nothing is known of the scatter of a single run, and none is shown."""
    assert mean_interval([5.0], resamples=50, seed=1) == Interval(5.0, 5.0, 5.0)


def test_each_resample_has_all_levels() -> None:
    """Runs are drawn within their level: a curve cannot lose its first or last."""
    levels = np.repeat([1.0, 2.0, 3.0, 4.0], 2)

    drawn = resample(levels, levels, lambda some, _: [float(len(set(some)))], resamples=40, seed=1)

    assert set(drawn[:, 0]) == {4.0}


@pytest.mark.parametrize(("low", "high", "expected"), [(6.9, 7.2, 7), (7.0, 7.0, 7), (7.1, 7.3, 8), (0.2, 0.4, 1)])
def test_the_smallest_whole_number_inside(low: float, high: float, expected: int) -> None:
    """Or the next above, where none is inside."""
    assert smallest_inside(Interval(low, low, high)) == expected
