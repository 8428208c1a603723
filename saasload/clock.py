"""Two readings of the time, both in the target's own seconds, on a real or on a virtual clock."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import anyio

from saasload.errors import UsageError

__all__ = ["Clock"]


def _loop_time() -> float:
    """Read the event loop's clock; asyncio's own way is three times quicker than to ask which loop it is."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return anyio.current_time()


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells how much time has passed and what time it is, and waits.

    Everything is in *target time*: with a `scale` of 60 the target's minute passes in one of our seconds. Waits and
    `now` follow the event loop's clock, so that they are virtual where the loop's clock is; `wall` follows
    `machine_wall`, or, where that is None, the loop's clock too, counted from `epoch_s`.
    """

    scale: float
    epoch_s: float
    machine_wall: Callable[[], float] | None

    def __post_init__(self) -> None:
        """Refuse a scale at which time would not pass."""
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise UsageError(f"time scale {self.scale}: must be above 0")

    @classmethod
    def real(cls, scale: float = 1.0, *, epoch_s: float | None = None) -> Self:
        """Follow this machine's clock; above a scale of 1 the wall runs ahead of it, starting from `epoch_s`.

        Two clocks of one scale agree on the wall when they are given one `epoch_s`, and always at a scale of 1.
        """
        return cls(scale, time.time() if epoch_s is None else epoch_s, time.time)

    @classmethod
    def virtual(cls, *, epoch_s: float) -> Self:
        """Follow the event loop alone: under trio's MockClock the wall starts at `epoch_s` in each run."""
        return cls(1.0, epoch_s, None)

    def now(self) -> float:
        """Read the seconds since some instant: never back, never stepped by a correction of the wall clock."""
        return _loop_time() * self.scale

    def wall(self) -> float:
        """Read the seconds since 1970: for what a reply states as an hour of the day."""
        if self.machine_wall is None:
            return self.epoch_s + self.now()
        # read anew rather than counted on: the loop's clock stands still while a laptop sleeps, a daily limit does not
        return self.epoch_s + (self.machine_wall() - self.epoch_s) * self.scale

    def spent(self) -> float:
        """Read how much work this process has done, in target seconds of a core; none where time is virtual."""
        return 0.0 if self.machine_wall is None else time.process_time() * self.scale

    async def sleep(self, seconds: float) -> None:
        """Wait so many target seconds; none or fewer gives the other tasks a turn."""
        await self.sleep_until(self.now() + seconds)

    async def sleep_until(self, now: float) -> None:
        """Wait until `now()` has reached the given reading."""
        instant = now / self.scale
        if instant * self.scale < now:  # by rounding: a caller who asks "is it time?" would wait again, for nothing
            instant = math.nextafter(instant, math.inf)
        await anyio.sleep_until(instant)
        # timers of an event loop may be early by its resolution
        while anyio.current_time() < instant:  # noqa: ASYNC110 - there is no event: it is the time that is waited for
            await anyio.sleep_until(instant)

    def deadline(self, seconds: float) -> anyio.CancelScope:
        """Give up on what runs inside after so many target seconds; `cancelled_caught` tells whether it did.

        Use as `with clock.deadline(30.0) as scope`.
        """
        return anyio.move_on_after(seconds / self.scale)
