"""Latency: locks, slots, crowd and jitter, on virtual time."""

from typing import Any

import anyio
import pytest

from mock_server.clock import Clock
from mock_server.jitter import jitter
from mock_server.latency import Gate, Latency, contention
from mock_server.scenario import CompanySpec, Cost, LatencySpec

ONE_SECOND = LatencySpec(slots=2, insert=Cost(call_s=1.0), xml=Cost(row_s=1.0, unchanged_row_s=0.1))


def ignore(_: float) -> None:
    """Take no notice of an abandoned call."""


def make(spec: LatencySpec, **companies: CompanySpec) -> Latency:
    """Make a latency with a clock that starts now."""
    clock = Clock()
    clock.start()
    return Latency(spec, clock=clock, seed=7, companies={int(key[1:]): value for key, value in companies.items()})


async def finish(latency: Latency, companies: list[int]) -> dict[int, list[float]]:
    """Send a call for each company at once; return when they ended."""
    ends: dict[int, list[float]] = {}

    async def one(company: int) -> None:
        await latency.serve(company, "insert", rows=1, unchanged=0, abandoned=ignore)
        ends.setdefault(company, []).append(anyio.current_time())

    async with anyio.create_task_group() as tasks:
        for company in companies:
            tasks.start_soon(one, company)
    return ends


def test_calls_of_one_company_wait_for_each_other(virtual: Any) -> None:
    """One call at a time in a company, though slots are free."""

    async def main() -> Any:
        return await finish(make(ONE_SECOND), [1, 1, 1])

    assert virtual(main) == {1: [1.0, 2.0, 3.0]}


def test_companies_share_the_slots(virtual: Any) -> None:
    """Three companies and two slots: one waits."""

    async def main() -> Any:
        return await finish(make(ONE_SECOND), [1, 2, 3])

    ends = virtual(main)

    assert sorted(end for times in ends.values() for end in times) == [1.0, 1.0, 2.0]


def test_a_slow_company_is_slow_alone(virtual: Any) -> None:
    """An override slows one company and no other."""

    async def main() -> Any:
        return await finish(make(ONE_SECOND, c1=CompanySpec(slower=10.0)), [1, 2])

    assert virtual(main) == {1: [10.0], 2: [1.0]}


def test_an_unchanged_row_costs_less(virtual: Any) -> None:
    """Rows that change nothing have their own price."""

    async def main() -> float:
        await make(ONE_SECOND).serve(1, "xml", rows=2, unchanged=10, abandoned=ignore)
        return anyio.current_time()

    assert virtual(main) == pytest.approx(3.0)


def test_the_company_in_front_of_a_gate_goes_first(virtual: Any) -> None:
    """A place that becomes free is handed to the first in the queue, also when somebody gives up."""

    async def main() -> list[str]:
        gate = Gate(1)
        order: list[str] = []
        await gate.enter()

        async def visit(name: str) -> None:
            await gate.enter()
            order.append(name)
            await anyio.sleep(1)
            gate.leave()

        async with anyio.create_task_group() as tasks:
            for place, name in enumerate(("a", "gives up", "c")):
                with anyio.CancelScope():
                    if name == "gives up":
                        with anyio.move_on_after(0.1):
                            await gate.enter()
                    else:
                        tasks.start_soon(visit, name)
                await anyio.sleep(place * 0.1 + 0.01)
            gate.leave()
        assert (gate.inside, len(gate.queue)) == (0, 0)
        return order

    assert virtual(main) == ["a", "c"]


def test_a_call_given_up_in_service_still_ends_in_time(virtual: Any) -> None:
    """The platform does not notice that its caller has gone, and the next call is not held up for ever."""

    async def main() -> tuple[list[float], Any]:
        latency = make(ONE_SECOND)
        heard: list[float] = []
        with anyio.move_on_after(0.25):
            await latency.serve(1, "insert", rows=1, unchanged=0, abandoned=heard.append)
        return heard, await finish(latency, [1])

    assert virtual(main) == ([1.0], {1: [1.25]})


def test_a_crowd_slows_everybody() -> None:
    """The formula of the measurements: busy calls add, waiting calls add by their logarithm."""
    spec = LatencySpec(busy_coef=0.01, wait_coef=0.02)

    assert contention(spec, busy=8, waiting=0) == pytest.approx(1.07)
    assert contention(spec, busy=1, waiting=7) == pytest.approx(1.06)


def test_jitter_has_a_mean_of_one() -> None:
    """Jitter moves calls apart and leaves the total alone."""
    import random  # noqa: PLC0415 - here only

    rng = random.Random(1)
    draws = [jitter(LatencySpec(jitter_sigma=0.3), rng) for _ in range(20_000)]

    assert sum(draws) / len(draws) == pytest.approx(1.0, abs=0.01)


def test_another_company_does_not_change_the_draws(virtual: Any) -> None:
    """Each company has a random stream of its own."""
    spec = LatencySpec(slots=9, jitter_sigma=0.3, insert=Cost(call_s=1.0))

    async def alone() -> Any:
        return await finish(make(spec), [1, 1])

    async def together() -> Any:
        return await finish(make(spec), [1, 2, 1, 3])

    assert virtual(alone)[1] == virtual(together)[1]


def test_time_runs_faster_at_a_scale(virtual: Any) -> None:
    """At scale 20 a mock second takes a twentieth."""

    async def main() -> tuple[float, float, float]:
        clock = Clock(scale=20.0, epoch0_s=1000.0)
        clock.start()
        await clock.sleep(10.0)
        return anyio.current_time(), clock.now_s(), clock.wall_s()

    assert virtual(main) == (0.5, 10.0, 1010.0)
