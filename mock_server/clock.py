"""Mock time: the loop's own clock, run faster and pinned to a date."""

import asyncio

import anyio

DEFAULT_EPOCH_S = 1_767_614_400.0
"""2026-01-05 12:00:00 UTC, a Monday noon: where mock time starts unless told otherwise."""


class Clock:
    """Both readings of mock time: seconds since the start, and seconds since 1970.

    It reads `anyio.current_time`, so it is virtual where the loop's clock is. `scale` is how many mock
    seconds pass in a second of the loop. It starts by itself at its first reading.
    """

    __slots__ = ("_epoch0_s", "_read", "_t0", "scale")

    def __init__(self, *, scale: float = 1.0, epoch0_s: float = DEFAULT_EPOCH_S) -> None:
        """Keep the pace and the date to start from."""
        self.scale = scale
        self._epoch0_s = epoch0_s
        self._t0: float | None = None
        self._read = anyio.current_time

    def start(self) -> None:
        """Pin the start to now; needs a running loop."""
        if self._t0 is not None:
            return
        try:
            # what anyio would ask each time anew, at ten times the price
            self._read = asyncio.get_running_loop().time
        except RuntimeError:
            self._read = anyio.current_time
        self._t0 = self._read()

    def now_s(self) -> float:
        """Return the mock seconds since the start."""
        if self._t0 is None:
            self.start()
            return 0.0
        return (self._read() - self._t0) * self.scale

    def set_scale(self, scale: float) -> None:
        """Run faster or slower from now on; whoever sleeps already sleeps at the old pace."""
        now_s, loop_s = self.now_s(), self._read()
        self.scale = scale
        self._t0 = loop_s - now_s / scale

    def wall_s(self) -> float:
        """Return the mock date as seconds since 1970."""
        return self._epoch0_s + self.now_s()

    def wall_at(self, now_s: float) -> float:
        """Return the mock date of a reading of `now_s`."""
        return self._epoch0_s + now_s

    async def sleep(self, mock_s: float) -> None:
        """Sleep so many mock seconds."""
        if mock_s > 0:
            await anyio.sleep(mock_s / self.scale)
