"""Where windows are kept: one change at a time, whoever else shares them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from saasload.errors import SaasloadError
from saasload.policy.ledger_windows import WindowState

Result = TypeVar("Result")
Act = Callable[[Mapping[str, WindowState]], Result]


class StoreLostError(SaasloadError):
    """The store does not answer for now; what was asked of it may or may not have been done."""


class Store(Protocol):
    """Keeps windows by key.

    All arithmetic is in `WindowState`; a store only has to be atomic. So the three of them cannot differ in what they
    allow, and what is proved of one holds for all.
    """

    clock_ahead_s: float
    """What the clock that all processes go by shows beyond this process's `time.time`."""

    async def change(self, keys: Sequence[str], act: Act[Result]) -> Result:
        """Read windows, let `act` change them, and write them, as one step; return what `act` returns.

        A window that is not there yet is an empty one. `act` may be called more than once, on windows read anew, so it
        must change nothing else. Raises StoreLostError where the store is out of reach.
        """
        ...

    async def aclose(self) -> None:
        """Let go of the store; what it keeps stays."""
        ...


class MemoryStore:
    """Windows of one process, in memory; several budgets of that process may share them."""

    def __init__(self) -> None:
        """Start with nothing used."""
        self._windows: dict[str, WindowState] = {}
        self.clock_ahead_s = 0.0

    async def change(self, keys: Sequence[str], act: Act[Result]) -> Result:
        """Change windows in place: no other task runs in between."""
        windows = self._windows
        for key in keys:
            if key not in windows:
                windows[key] = WindowState()
        return act({key: windows[key] for key in keys})

    async def aclose(self) -> None:
        """Do nothing."""
