"""Both readings of the clock, on asyncio, on uvloop, on trio and on trio's virtual time."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from saasload.clock import Clock
from saasload.errors import UsageError

T = TypeVar("T")
Backend = tuple[str, dict[str, Any]]

EPOCH_S = 1_900_000_000.0
BACKENDS = [
    pytest.param(("asyncio", {}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    pytest.param(("trio", {}), id="trio"),
]


def run(backend: Backend, main: Callable[[], Awaitable[T]]) -> T:
    """Run one function on one backend."""
    return anyio.run(main, backend=backend[0], backend_options=backend[1])


def run_virtual(main: Callable[[], Awaitable[T]]) -> T:
    """Run one function in virtual time."""
    return run(("trio", {"clock": MockClock(autojump_threshold=0)}), main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scaled_sleep_lasts_target_seconds(backend: Backend) -> None:
    """Thirty target seconds at a scale of 1000 pass in thirty of our milliseconds."""

    async def main() -> tuple[float, float]:
        clock = Clock.real(1000.0)
        before, began = clock.now(), time.perf_counter()
        await clock.sleep(30.0)
        return clock.now() - before, time.perf_counter() - began

    target, ours = run(backend, main)

    assert target >= 30.0
    assert 0.029 <= ours < 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scaled_deadline_cancels_after_target_seconds(backend: Backend) -> None:
    """A deadline of ten target seconds at a scale of 1000 does not wait ten of ours."""

    async def main() -> tuple[bool, float]:
        clock, began = Clock.real(1000.0), time.perf_counter()
        with clock.deadline(10.0) as scope:
            await anyio.sleep_forever()
        return scope.cancelled_caught, time.perf_counter() - began

    cancelled, ours = run(backend, main)

    assert cancelled
    assert 0.009 <= ours < 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_sleeping_until_a_past_reading_gives_others_a_turn(backend: Backend) -> None:
    """A sleep that is over already is still a point where other tasks run."""

    async def main() -> list[str]:
        clock, order = Clock.real(), list[str]()

        async def other() -> None:
            order.append("other")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other)
            await clock.sleep_until(clock.now() - 5.0)
            await clock.sleep(-1.0)
            order.append("me")
        return order

    assert run(backend, main) == ["other", "me"]


def test_virtual_time_is_the_same_in_each_run() -> None:
    """Two runs read the same wall, to the bit, and an hour costs nothing."""

    async def main() -> list[float]:
        clock = Clock.virtual(epoch_s=EPOCH_S)
        readings = [clock.wall()]
        await clock.sleep(3600.0)
        readings.append(clock.wall())
        await clock.sleep_until(clock.now() + 0.1)
        return [*readings, clock.wall()]

    began = time.perf_counter()
    first, second = run_virtual(main), run_virtual(main)

    assert first == second
    assert first[:2] == [EPOCH_S, EPOCH_S + 3600.0]
    assert first[2] == pytest.approx(EPOCH_S + 3600.1)
    assert time.perf_counter() - began < 5.0


def test_two_virtual_clocks_agree() -> None:
    """A clock made later has the same wall: the loader's and the mock's are one."""

    async def main() -> tuple[float, float]:
        early = Clock.virtual(epoch_s=EPOCH_S)
        await anyio.sleep(12.5)
        return early.wall(), Clock.virtual(epoch_s=EPOCH_S).wall()

    assert run_virtual(main) == (EPOCH_S + 12.5, EPOCH_S + 12.5)


def test_a_virtual_deadline_is_virtual() -> None:
    """A deadline cancels at its virtual instant."""

    async def main() -> tuple[bool, float]:
        clock = Clock.virtual(epoch_s=EPOCH_S)
        with clock.deadline(120.0) as scope:
            await clock.sleep(121.0)
        return scope.cancelled_caught, clock.now()

    assert run_virtual(main) == (True, 120.0)


def test_own_work_is_told_in_target_time_and_is_none_in_virtual_time() -> None:
    """Simulated loads stay the same on a slow machine; real ones can tell themselves from their target."""
    plain, scaled = Clock.real(), Clock.real(1000.0)

    before = plain.spent()
    assert scaled.spent() >= 1000.0 * before > 0.0
    assert Clock.virtual(epoch_s=EPOCH_S).spent() == 0.0


def test_the_real_wall_is_the_machines() -> None:
    """At a scale of 1 the wall is the machine's clock, also after a suspended laptop wakes."""
    readings = iter([EPOCH_S + 1.0, EPOCH_S + 8 * 3600.0])
    clock = Clock(1.0, EPOCH_S, lambda: next(readings))

    assert [clock.wall(), clock.wall()] == [EPOCH_S + 1.0, EPOCH_S + 8 * 3600.0]
    assert Clock.real().wall() == pytest.approx(time.time(), abs=5.0)


def test_a_scaled_wall_runs_ahead_from_its_epoch() -> None:
    """At a scale of 60 ten machine seconds are ten target minutes."""
    clock = Clock(60.0, EPOCH_S, lambda: EPOCH_S + 10.0)

    assert clock.wall() == EPOCH_S + 600.0


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_at_which_time_does_not_pass_is_refused(scale: float) -> None:
    """Zero, negative and non-numbers are usage errors."""
    with pytest.raises(UsageError, match="time scale"):
        Clock.real(scale)


@given(scale=st.floats(0.001, 1000.0), wait=st.floats(0.0, 1e6), start=st.floats(0.0, 1e6))
def test_now_has_reached_what_was_slept_until(scale: float, wait: float, start: float) -> None:
    """No rounding leaves the clock a hair before the asked instant, where a caller would wait again for ever."""

    async def main() -> bool:
        clock = Clock(scale, EPOCH_S, None)
        await anyio.sleep(start)
        until = clock.now() + wait
        await clock.sleep_until(until)
        return clock.now() >= until

    assert run_virtual(main)
