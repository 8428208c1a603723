"""What a fitted curve says of its peak."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.experiments.models import Curve, LinearFlat, Usl

CURVES = st.one_of(
    st.builds(Usl, gamma=st.floats(1.0, 1e5), alpha=st.floats(0.0, 1.5), beta=st.floats(0.0, 0.1)),
    st.builds(LinearFlat, slope=st.floats(1.0, 1e4), ceiling=st.floats(1e4, 1e6)),
)


def test_the_law_peaks_where_gunther_says() -> None:
    """The peak is at the root of (1 - alpha) / beta."""
    assert Usl(100.0, 0.05, 0.001).peak(1000.0).parallel == pytest.approx(math.sqrt(0.95 / 0.001))


def test_a_law_without_coherency_rises_to_the_last_level() -> None:
    """Without beta there is no peak, and none is made up beyond what was tried."""
    assert Usl(100.0, 0.05, 0.0).peak(64.0).parallel == 64.0


def test_a_line_with_a_ceiling_is_as_wide_as_its_places() -> None:
    """Peak and knee are where the line meets the ceiling."""
    peak = LinearFlat(slope=100.0, ceiling=800.0).peak(100.0)

    assert (peak.parallel, peak.knee, peak.ninety, peak.rate) == pytest.approx((8.0, 8.0, 7.2, 800.0))


def test_levels_below_the_ceiling_bound_the_peak() -> None:
    """Where the levels end on the slope, the peak is the last level."""
    assert LinearFlat(slope=100.0, ceiling=800.0).peak(4.0).parallel == 4.0


@given(CURVES, st.floats(1.0, 500.0))
def test_no_level_beats_the_peak_and_ninety_gives_ninety(curve: Curve, limit: float) -> None:
    """Within what was tried nothing is higher, and 90 % of it is reached where it is said to be."""
    peak = curve.peak(limit)

    tried = [curve.at(1.0 + (limit - 1.0) * step / 50) for step in range(51)]
    assert max(tried) <= peak.rate * (1 + 1e-9)
    assert 1.0 <= peak.ninety <= peak.parallel <= limit
    assert curve.at(peak.ninety) >= 0.9 * peak.rate * (1 - 1e-6)
    assert peak.ninety == 1.0 or curve.at(peak.ninety) == pytest.approx(0.9 * peak.rate, rel=1e-5)
