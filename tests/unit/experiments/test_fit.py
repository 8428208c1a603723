"""Fits find the parameters that made the data, and AICc finds the shape."""

import numpy as np
import pytest

from saasload.errors import UsageError
from saasload.experiments.fit import Floats, aicc, compare, fit_flat, fit_usl, usl_at_once
from saasload.experiments.models import Curve, LinearFlat, Usl

LEVELS = np.repeat([1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 32.0, 64.0, 100.0], 5)


def _noisy(curve: Curve, noise: float) -> Floats:
    draw = np.random.default_rng(3).normal(0.0, noise, len(LEVELS))
    return np.array([curve.at(level) for level in LEVELS]) * np.exp(draw)


@pytest.mark.parametrize("law", [Usl(100.0, 0.05, 0.0008), Usl(7.0, 0.2, 0.0), Usl(1e6, 0.0, 0.002)], ids=repr)
def test_the_law_is_found_exactly_without_noise(law: Usl) -> None:
    """Both ways to fit give back what made the data."""
    rates = _noisy(law, 0.0)

    for found in (fit_usl(LEVELS, rates), usl_at_once(LEVELS, rates)):
        assert found.gamma == pytest.approx(law.gamma, rel=1e-5)
        assert found.alpha == pytest.approx(law.alpha, abs=1e-6)
        assert found.beta == pytest.approx(law.beta, abs=1e-6)


def test_the_law_is_found_within_ten_percent_with_noise() -> None:
    """Three per cent of scatter leave each parameter within ten."""
    found = fit_usl(LEVELS, _noisy(Usl(100.0, 0.05, 0.0008), 0.03))

    assert (found.gamma, found.alpha, found.beta) == pytest.approx((100.0, 0.05, 0.0008), rel=0.1)


@pytest.mark.parametrize("places", [1.0, 3.0, 7.5, 8.0, 50.0, 100.0])
def test_line_and_ceiling_are_found(places: float) -> None:
    """Also where they meet between two levels, at the first or at the last."""
    found = fit_flat(LEVELS, _noisy(LinearFlat(100.0, 100.0 * places), 0.0))

    assert (found.slope, found.ceiling) == pytest.approx((100.0, 100.0 * places), rel=1e-6)


@pytest.mark.parametrize(
    ("curve", "name"), [(Usl(100.0, 0.05, 0.0008), "usl"), (LinearFlat(100.0, 800.0), "linear-flat")]
)
def test_aicc_tells_the_shapes_apart(curve: Curve, name: str) -> None:
    """The shape that made the data wins, and clearly."""
    found = compare(LEVELS, _noisy(curve, 0.03))

    assert found.best.curve.name == name
    assert found.other.aicc - found.best.aicc > 10
    assert found.weight > 0.99


def test_aicc_punishes_parameters_more_with_few_points() -> None:
    """At equal error the smaller model wins, by more the fewer points there are."""
    few = aicc(0.1, points=8, free=3) - aicc(0.1, points=8, free=2)
    many = aicc(0.1, points=80, free=3) - aicc(0.1, points=80, free=2)

    assert few > many > 0
    assert aicc(0.1, points=4, free=3) == float("inf")


def test_three_levels_are_too_few() -> None:
    """What cannot be told apart is not fitted."""
    with pytest.raises(UsageError, match="3 different levels; a curve needs 4 or more"):
        compare(np.array([1.0, 2.0, 4.0, 4.0]), np.array([1.0, 2.0, 4.0, 4.0]))
