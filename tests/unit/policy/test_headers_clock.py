"""What replies prove of the platform's clock: how far it is from ours, and whether limits go by it."""

import math

from hypothesis import given
from hypothesis import strategies as st

from saasload.policy.alignment import Alignment
from saasload.policy.skew import Skew, SkewEstimate

NOON = 1_638_447_300.0
exchanges = st.lists(
    st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 5.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1
)


@given(st.floats(-1e5, 1e5), exchanges)
def test_the_servers_clock_is_never_outside_the_bounds(ahead_s: float, made: list[tuple[float, ...]]) -> None:
    """Whatever the latency, wherever in it the Date is made, and if that is up to a second old."""
    estimate, now = SkewEstimate(), NOON
    for think_s, latency_s, fraction, stale_s in made:
        now += think_s
        date_s = math.floor(now + fraction * latency_s + ahead_s - stale_s)
        skew = estimate.heard(date_s, now, now + latency_s)
        now += latency_s

        assert skew.lo - 1e-6 <= ahead_s <= skew.hi + 1e-6


def test_more_replies_narrow_the_bounds() -> None:
    """Dates are whole seconds, and what they leave open shrinks with replies at other moments of the second."""
    estimate = SkewEstimate()
    first = estimate.heard(math.floor(NOON + 90.0), NOON, NOON + 0.3)
    for tenth in range(1, 30):
        sent = NOON + tenth * 1.07
        last = estimate.heard(math.floor(sent + 90.05), sent, sent + 0.1)

    assert first.hi - first.lo > 2.2
    assert last.hi - last.lo < 1.5
    assert last.lo <= 90.0 <= last.hi
    assert abs(last.middle - 90.0) < 1.0


def test_without_a_date_nothing_is_learnt() -> None:
    """The bounds stay as wide as two machines' clocks may be apart."""
    assert SkewEstimate().heard(None, NOON, NOON + 1) == Skew()


def test_servers_whose_clocks_differ_widen_the_bounds_for_good() -> None:
    """Both clocks stay possible: a load balancer may give us either."""
    estimate = SkewEstimate()
    for number in range(50):
        sent = NOON + number
        skew = estimate.heard(math.floor(sent + (30.0 if number % 2 else -30.0)), sent, sent + 0.1)

    assert skew.lo <= -30.0
    assert skew.hi >= 30.0


def test_a_count_that_drops_at_a_whole_minute_proves_a_window_on_the_clock() -> None:
    """We made three calls within the minute, and the platform counts one: it has begun anew."""
    alignment = Alignment(60, 60.0)
    proved = [alignment.heard(NOON + at, NOON + at + 1, used, NOON + reset)
              for at, used, reset in [(50, 1, 60), (52, 2, 60), (54, 3, 60), (61, 1, 120), (63, 2, 120)]]  # fmt: skip

    assert proved == [False, False, False, True, True]


def test_a_sliding_window_proves_nothing() -> None:
    """Its count keeps what lies within the last minute."""
    alignment = Alignment(60, 60.0)

    assert not any(
        alignment.heard(NOON + at, NOON + at + 1, min(number + 1, 6), NOON + 60 * (1 + at // 60))
        for number, at in enumerate(range(0, 600, 10))
    )


def test_resets_off_the_clock_prove_nothing() -> None:
    """A count may drop, but not at a whole minute: then where it drops is not known."""
    alignment = Alignment(60, 60.0)

    assert not any(
        alignment.heard(NOON + at, NOON + at + 1, used, NOON + reset)
        for at, used, reset in [(10, 1, 35), (12, 2, 35), (14, 3, 35), (36, 1, 95), (97, 1, 155)]
    )


def test_a_pause_proves_nothing() -> None:
    """After a minute without calls any window counts from one again."""
    alignment = Alignment(60, 60.0)

    assert not any(alignment.heard(NOON + at, NOON + at + 1, 1, NOON + at + 60) for at in range(0, 600, 120))
