"""Jitter, paces of companies, slow-downs and the crowd."""

import random
import statistics
from typing import Any

import anyio
import pytest

from mock_server.clock import Clock
from mock_server.jitter import company_factor, jitter
from mock_server.latency import Latency, contention
from mock_server.scenario import CompanySpec, Cost, JitterSpec, LatencySpec, SlowdownSpec, SpreadSpec


def draws(**spec: Any) -> list[float]:
    """Draw many factors, in order of size."""
    rng, latency = random.Random(1), LatencySpec(jitter=JitterSpec(**spec))
    return sorted(jitter(latency, rng) for _ in range(20_000))


def test_constant_is_constant() -> None:
    """Each call takes what it costs."""
    assert set(draws(kind="constant")) == {1.0}


def test_uniform_stays_between_its_bounds() -> None:
    """And its mean lies in the middle."""
    found = draws(kind="uniform", low=0.8, high=1.6)

    assert found[0] >= 0.8
    assert found[-1] <= 1.6
    assert statistics.fmean(found) == pytest.approx(1.2, rel=0.01)


def test_log_normal_has_the_median_and_the_p99_that_were_asked_for() -> None:
    """The two numbers that people know of a service."""
    found = draws(kind="log-normal", median=1.5, p99=6.0)

    assert found[10_000] == pytest.approx(1.5, rel=0.03)
    assert found[19_800] == pytest.approx(6.0, rel=0.08)


def test_pareto_has_a_heavy_tail_and_a_cap() -> None:
    """Nothing below the lowest, a mean above the median, and single calls that take for ever, up to the cap."""
    found = draws(kind="pareto", low=0.5, alpha=1.5, cap=40.0)

    assert found[0] >= 0.5
    assert found[10_000] == pytest.approx(0.5 * 2 ** (1 / 1.5), rel=0.03)
    assert found[-1] == 40.0


def test_the_crowd_follows_the_scalability_law() -> None:
    """Throughput is gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))."""
    spec = LatencySpec(busy_coef=0.02, coherency_coef=0.001)

    assert contention(spec, busy=10, waiting=0) == pytest.approx(1 + 0.02 * 9 + 0.001 * 10 * 9)


@pytest.mark.parametrize("clients", [1, 4, 16, 40])
def test_a_curve_comes_out_as_it_was_set(virtual: Any, clients: int) -> None:
    """With a slot for everybody, the throughput of n clients is that of the law, within 3 %."""
    spec = LatencySpec(slots=1000, busy_coef=0.03, coherency_coef=0.002, jitter_sigma=0.2, insert=Cost(call_s=1.0))

    async def main() -> float:
        clock, done = Clock(), 0
        clock.start()
        latency = Latency(spec, clock=clock, seed=7, companies={})

        async def client(company: int) -> None:
            nonlocal done
            for _ in range(200):
                await latency.serve(company, "insert", rows=1, unchanged=0, abandoned=lambda _: None)
                done += 1

        async with anyio.create_task_group() as tasks:
            for company in range(clients):
                tasks.start_soon(client, company)
        return done / clock.now_s()

    expected = clients / (1 + 0.03 * (clients - 1) + 0.002 * clients * (clients - 1))
    assert virtual(main) == pytest.approx(expected, rel=0.03 if clients == 1 else 0.06)


def test_each_company_has_a_pace_of_its_own() -> None:
    """Drawn from the seed, whatever other companies there are, with the spread that was asked for."""
    spread = SpreadSpec(median=2.0, p99=8.0)
    paces = sorted(company_factor(spread, company=company, seed=7) for company in range(2000))

    assert paces[1000] == pytest.approx(2.0, rel=0.1)
    assert paces[1980] == pytest.approx(8.0, rel=0.25)
    assert company_factor(spread, company=5, seed=7) == company_factor(spread, company=5, seed=7)
    assert company_factor(spread, company=5, seed=7) != company_factor(spread, company=5, seed=8)
    assert company_factor(None, company=5, seed=7) == 1.0


def make(spec: LatencySpec, *slowdowns: SlowdownSpec, **companies: CompanySpec) -> Latency:
    """Make a latency with a clock that starts now."""
    clock = Clock()
    clock.start()
    own = {int(name[1:]): value for name, value in companies.items()}
    return Latency(spec, clock=clock, seed=7, companies=own, slowdowns=slowdowns)


def test_an_override_takes_the_place_of_the_draw(virtual: Any) -> None:
    """What a scenario says of one company counts."""

    async def main() -> tuple[float, float]:
        latency = make(LatencySpec(by_company=SpreadSpec(median=5.0, p99=5.0)), c1=CompanySpec(slower=10.0))
        return latency.pace(1), latency.pace(2)

    assert virtual(main) == (10.0, 5.0)


def test_a_slow_down_begins_and_ends(virtual: Any) -> None:
    """Calls that begin meanwhile take longer; other companies do not where one is named."""
    spec = LatencySpec(insert=Cost(call_s=1.0))

    async def main() -> list[float]:
        latency = make(spec, SlowdownSpec(at_s=1.5, for_s=3.0, factor=4.0, company=1))
        ends = []
        for company in (1, 2, 1, 1):
            await latency.serve(company, "insert", rows=1, unchanged=0, abandoned=lambda _: None)
            ends.append(anyio.current_time())
        return ends

    assert virtual(main) == [1.0, 2.0, 6.0, 7.0]
