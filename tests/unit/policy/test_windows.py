"""Windows: what the server counts, whenever it counts."""

import heapq
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.policy.window import NEVER, FixedWindow, SlidingWindow, Window

# Eighths of a second add up exactly, so that "one period later" is exactly that.
eighths = st.integers(0, 400).map(lambda count: count / 8)
trips = st.lists(st.tuples(eighths, eighths, st.integers(0, 4).map(lambda quarter: quarter / 4)), max_size=25)


def counted(window: Window, made: list[tuple[float, float, float]], start: float) -> list[float]:
    """Send calls as early as the window allows; return when the server counted each.

    A call is made of the time we think before it, its latency, and where between sending and reply it is counted.
    """
    now = start
    replies: list[float] = []
    instants = []
    for think, latency, fraction in made:
        due = now + think
        for _ in range(10_000):
            ready = max(due, window.ready_at(now))
            if replies and replies[0] <= ready:
                now = max(now, heapq.heappop(replies))
                window.settled(now)
            elif ready <= now:
                break
            else:
                assert ready < NEVER, "only a reply can free a slot, and none is on its way"
                now = ready
        else:
            pytest.fail("the window never lets the call leave")
        window.sending(now)
        heapq.heappush(replies, now + latency)
        instants.append(now + fraction * latency)
    return sorted(instants)


@given(st.integers(1, 5), st.sampled_from([1.0, 10.0, 60.0]), trips)
def test_a_sliding_window_holds_by_the_servers_count(
    calls: int, period: float, made: list[tuple[float, float, float]]
) -> None:
    """Whatever the latency: no period-long stretch, wherever it begins, holds more calls than allowed."""
    instants = counted(SlidingWindow(calls, period), made, 1000.0)

    assert all(later - first >= period for first, later in zip(instants, instants[calls:], strict=False))


@given(
    st.integers(1, 5),
    st.sampled_from([20.0, 60.0]),
    trips,
    st.integers(-16, 16).map(lambda eighth: eighth / 8),
    st.integers(0, 10**6).map(lambda eighth: eighth / 8),
)
def test_a_fixed_window_holds_by_the_servers_clock(
    calls: int, period: float, made: list[tuple[float, float, float]], error: float, offset: float
) -> None:
    """Whatever the latency, and with a clock that is off by up to the margin: no period of theirs holds more."""
    instants = counted(FixedWindow(calls, period, offset=offset, margin_s=2.0), made, 1000.0)
    places = Counter(math.floor((instant + offset + error) / period) for instant in instants)

    assert all(count <= calls for count in places.values())


@pytest.mark.parametrize("window", [SlidingWindow(3, 60.0), FixedWindow(3, 60.0, offset=0.0)], ids=["sliding", "fixed"])
def test_an_empty_window_lets_its_calls_leave_at_once(window: Window) -> None:
    """All that is allowed is used, and not one more."""
    for _ in range(3):
        assert window.ready_at(630.0) == 630.0
        window.sending(630.0)

    assert window.ready_at(630.0) > 630.0


def test_a_sliding_slot_frees_one_period_after_the_reply() -> None:
    """Not after the start, when the server may not have counted yet."""
    window = SlidingWindow(1, 60.0)
    window.sending(100.0)

    assert window.ready_at(500.0) == NEVER
    window.settled(500.0)
    assert window.ready_at(500.0) == 560.0
    assert window.ready_at(560.0) == 560.0


def test_a_fixed_window_opens_with_the_platforms_next_period() -> None:
    """Its clock decides, with a margin on both sides of the boundary."""
    window = FixedWindow(1, 60.0, offset=30.0, margin_s=2.0)
    window.sending(600.0)
    window.settled(601.0)

    assert window.ready_at(602.0) == 632.0
    assert window.ready_at(629.0) == 632.0
    assert window.ready_at(631.0) == 632.0
    assert window.ready_at(632.0) == 632.0


def test_a_call_on_the_wire_at_the_boundary_counts_on_both_sides() -> None:
    """The platform may count it late; so may one be whose reply came just before our boundary."""
    across = FixedWindow(2, 60.0, offset=0.0, margin_s=2.0)
    across.sending(610.0)
    across.sending(611.0)
    across.settled(659.0)
    across.settled(661.0)

    assert across.ready_at(662.0) == 722.0


def test_no_margin_is_wider_than_a_tenth_of_the_period() -> None:
    """A window of a second still sends."""
    window = FixedWindow(1, 1.0, offset=0.0)

    assert window.ready_at(100.5) == 100.5
    assert window.ready_at(100.95) == pytest.approx(101.1)
