"""Whatever the latencies, the clocks and the instant of the platform's count: no limit is ever exceeded."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saasload.policy.ledger_windows import Rule

from .world import Platform, World

DAY_S = 86_400.0
seeds = st.integers(0, 2**32)


def load(platform: Platform, rule: Rule, seed: int, *, clients: int, lanes: int, longest_s: float) -> World:
    """Build clients whose calls last anything up to `longest_s`, and are counted at any instant of that."""
    rng = random.Random(seed)
    scale = rng.choice([0.01, 0.1, 1.0])
    return World(
        platform,
        [rule],
        clients,
        lanes,
        rng,
        latency=lambda rng: rng.random() * longest_s * scale,
        fraction=lambda rng: rng.choice([0.0, 1.0, rng.random()]),
    )


@st.composite
def matches(draw: st.DrawFn) -> tuple[Rule, Platform]:
    """A rule with a platform that it holds for: a sliding one holds on the clock too."""
    kind, by_clock = draw(st.sampled_from([("sliding", False), ("sliding", True), ("fixed", True)]))
    period_s = draw(st.sampled_from([1.0, 20.0, 60.0]))
    rule = Rule("minute", "company", kind, draw(st.integers(1, 12)), period_s)
    ahead_s = draw(st.floats(-1000.0, 1000.0))
    return rule, Platform(rule, by_clock=by_clock, ahead_s=ahead_s, headers=draw(st.booleans()))


@given(seeds, matches(), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_no_window_is_ever_exceeded(seed: int, match: tuple[Rule, Platform], clients: int, lanes: int) -> None:
    """One to four clients, sliding windows and such on the clock, with headers that prove it and without."""
    rule, platform = match

    world = load(platform, rule, seed, clients=clients, lanes=lanes, longest_s=1.5 * rule.period_s)
    world.run(8 * rule.period_s)

    assert platform.refused == 0
    assert platform.accepted > 0


@given(seeds, st.integers(1, 4), st.floats(-40_000.0, 40_000.0))
@settings(max_examples=20, deadline=None)
def test_no_day_is_ever_exceeded(seed: int, clients: int, ahead_s: float) -> None:
    """A UTC day that ends somewhere in the load: calls on the wire at midnight count on both sides."""
    rule = Rule("day", "company", "fixed", 300, DAY_S)
    platform = Platform(rule, by_clock=True, ahead_s=ahead_s, headers=False)

    world = load(platform, rule, seed, clients=clients, lanes=2, longest_s=100.0)
    world.run(DAY_S)

    assert platform.refused == 0
    assert 300 <= platform.accepted <= 600


@given(seeds, st.integers(1, 25), st.booleans())
@settings(max_examples=25, deadline=None)
def test_rows_are_counted_where_a_limit_counts_rows(seed: int, rows: int, by_clock: bool) -> None:
    """A call of many rows waits until there is room for all of them."""
    rule = Rule("minute", "company", "fixed" if by_clock else "sliding", 60, 60.0, cost="row")
    platform = Platform(rule, by_clock=by_clock, headers=False)

    world = load(platform, rule, seed, clients=2, lanes=2, longest_s=20.0)
    world.rows = rows
    world.run(600.0)

    assert platform.refused == 0
    assert platform.accepted > 0


@given(seeds, st.booleans(), st.floats(1.0, 200.0))
@settings(max_examples=20, deadline=None)
def test_a_client_that_dies_takes_nothing_from_the_limit_and_gives_its_place_back(
    seed: int, by_clock: bool, die_at: float
) -> None:
    """What it had leased counts as spent until it has run out; the others then have all of it."""
    rule = Rule("minute", "company", "fixed" if by_clock else "sliding", 10, 60.0)
    platform = Platform(rule, by_clock=by_clock, headers=False)

    world = load(platform, rule, seed, clients=3, lanes=2, longest_s=5.0)
    world.die_at = world.now + die_at
    world.run(1200.0)

    assert platform.refused == 0
    assert platform.accepted >= 10 * (1200 - 200) / 65


@pytest.mark.parametrize("clients", [1, 2, 4])
def test_what_others_use_is_left_to_them(clients: int) -> None:
    """Somebody outside takes 20 of 60 each minute: the replies tell, and the rest is used to within 3 %."""
    rule = Rule("minute", "company", "fixed", 60, 60.0)
    platform = Platform(rule, by_clock=True)
    platform.others = 20

    world = World(platform, [rule], clients, 2, random.Random(1), lambda rng: rng.uniform(0.1, 1.0))
    world.run(1800.0)

    assert platform.refused == 0
    assert platform.accepted >= 0.97 * 40 * 30


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize(("kind", "by_clock", "least"), [("sliding", False, 0.966), ("sliding", True, 0.985),
                                                         ("fixed", True, 0.985)])  # fmt: skip
@pytest.mark.parametrize("latency", [(0.1, 0.1), (0.1, 2.0), (2.0, 2.0)])
def test_throughput_is_near_the_limits_own_ceiling(
    clients: int, kind: str, by_clock: bool, least: float, latency: tuple[float, float]
) -> None:
    """At 60 a minute for an hour; a sliding window gives up one latency a period, one on the clock nothing."""
    rule = Rule("minute", "company", kind, 60, 60.0)  # type: ignore[arg-type] # one of the kinds
    platform = Platform(rule, by_clock=by_clock, ahead_s=0.37)

    world = World(platform, [rule], clients, 4, random.Random(1), lambda rng: rng.uniform(*latency))
    world.run(1800.0)

    assert platform.refused == 0
    assert platform.accepted >= least * 1800
