"""What a target is like, from nothing but its calls."""

from collections.abc import Callable

import numpy as np
import pytest

from saasload.experiments.calls import Calls
from saasload.experiments.infer import infer
from saasload.experiments.serving import in_known_order, most_at_once, serve


def test_waiting_and_service_are_told_apart(make_calls: Callable[..., Calls]) -> None:
    """Two places, three calls at once: the third begins when the first ends."""
    calls = make_calls([0.0, 0.1, 0.2, 5.0], [2.0, 3.0, 4.0, 6.0])

    served = serve(calls, 2)

    assert served.begin.tolist() == [0.0, 0.1, 2.0, 5.0]
    assert served.lasted.tolist() == pytest.approx([2.0, 2.9, 2.0, 1.0])
    assert served.busy.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_a_company_has_one_call_in_service(make_calls: Callable[..., Calls]) -> None:
    """However many places there are, its calls follow each other."""
    calls = make_calls([0.0, 0.1], [1.0, 2.0], company=["a", "a"])

    assert serve(calls, 8).begin.tolist() == [0.0, 1.0]


def test_calls_at_once_are_counted_without_those_that_just_ended(make_calls: Callable[..., Calls]) -> None:
    """A start in the millisecond of the answer before it is no overlap."""
    calls = make_calls([0.0, 0.0, 0.9995], [1.0, 2.0, 3.0])

    assert most_at_once(calls) == 2


def test_calls_of_one_instant_queue_in_an_unknown_order(make_calls: Callable[..., Calls]) -> None:
    """They are left out, unless that would be most."""
    some = make_calls([0.0, 0.0, 1.0, 2.0, 3.0], [1.0, 1.5, 2.0, 3.0, 4.0])
    all_of_them = make_calls([0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0])

    assert in_known_order(some).tolist() == [False, False, True, True, True]
    assert in_known_order(all_of_them).all()


@pytest.mark.parametrize("places", [1, 3, 8])
def test_costs_places_and_jitter_are_recovered(places: int, play: Callable[..., Calls]) -> None:
    """a, b and the number of places within 10 %, from one run of calls of different sizes."""
    found = infer([play(places=places, parallel=12, sizes=[40, 40, 10, 5])])

    cost = found.costs["batch"]
    assert found.slots == places
    assert found.saturated
    assert (cost.call_s, cost.row_s) == pytest.approx((0.4, 0.05), rel=0.1)
    assert found.error == pytest.approx(0.1, rel=0.2)
    assert not found.slower


def test_a_slow_company_is_found_and_no_other(play: Callable[..., Calls]) -> None:
    """Three times slower is recovered within 10 %."""
    found = infer([play(places=6, parallel=12, sizes=[40, 20, 10, 5, 30], slower={1007: 3.0})])

    assert list(found.slower) == ["1007"]
    assert found.slower["1007"] == pytest.approx(3.0, rel=0.1)
    assert found.costs["batch"].row_s == pytest.approx(0.05, rel=0.1)


def test_modes_have_costs_of_their_own(play: Callable[..., Calls]) -> None:
    """Runs of several modes are fitted together, places in common."""
    batch = play(places=5, parallel=10, sizes=[40, 20, 5])
    xml = play(places=5, parallel=10, sizes=[40, 20, 5], call_s=0.9, row_s=0.02, mode="xml")

    found = infer([batch, xml])

    assert found.slots == 5
    assert (found.costs["xml"].call_s, found.costs["xml"].row_s) == pytest.approx((0.9, 0.02), rel=0.1)


def test_a_target_that_was_never_full_has_at_least_so_many_places(play: Callable[..., Calls]) -> None:
    """Four calls at once in eight places show four, and that nothing waited."""
    found = infer([play(places=8, parallel=4, sizes=[40, 20, 5])])

    assert (found.slots, found.saturated) == (4, False)


def test_one_size_of_call_does_not_split(play: Callable[..., Calls]) -> None:
    """Then all is the row's, or the call's where a call is one row; and that is said."""
    many = infer([play(places=4, parallel=8, sizes=[20, 20, 20])]).costs["batch"]
    single = infer([play(places=4, parallel=8, sizes=[1, 1, 1])]).costs["batch"]

    assert (many.split, many.call_s) == (False, 0.0)
    assert many.row_s == pytest.approx(1.4 / 20, rel=0.05)
    assert single.call_s == pytest.approx(0.45, rel=0.05)


def test_a_growing_queue_is_seen_to_slow_calls(play: Callable[..., Calls]) -> None:
    """Runs at several degrees of parallelism show what a doubling of the queue costs."""
    runs = [
        play(places=6, parallel=parallel, sizes=[40, 20, 10, 5], companies=60, wait_coef=0.05, sigma=0.05)
        for parallel in (4, 10, 24, 48)
    ]

    assert infer(runs).wait_coef > 0.02


def test_a_minute_limit_is_read_off_the_refusals(make_calls: Callable[..., Calls]) -> None:
    """As many as went through in the clock minute that refused."""
    begin = [second * 0.5 for second in range(100)]
    status = [200 if place < 60 else 429 for place in range(100)]
    calls = make_calls(begin, [moment + 0.1 for moment in begin], company=["a"] * 100, status=status)

    assert infer([calls]).calls_per_minute == 60
    assert infer([calls.where(calls.answered)]).calls_per_minute is None
    assert np.isclose(infer([calls]).costs["batch"].call_s, 0.1)
