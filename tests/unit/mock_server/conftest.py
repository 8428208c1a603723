"""The mock in process, on both event loops and on virtual time."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import httpx
import pytest
from trio.testing import MockClock

from mock_server.app import create_app
from mock_server.scenario import Scenario

T = TypeVar("T")
Run = Callable[[Callable[[], Awaitable[T]]], T]
Client = Callable[..., httpx.AsyncClient]

BACKENDS = [
    pytest.param(lambda: ("asyncio", {}), id="asyncio"),
    pytest.param(lambda: ("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio-virtual"),
]


@pytest.fixture(params=BACKENDS)
def run(request: pytest.FixtureRequest) -> Run[Any]:
    """Run a coroutine function on one backend after the other."""

    def runner(main: Callable[[], Awaitable[Any]]) -> Any:
        backend, options = request.param()
        return anyio.run(main, backend=backend, backend_options=options)

    return runner


@pytest.fixture
def virtual() -> Run[Any]:
    """Run a coroutine function on virtual time."""

    def runner(main: Callable[[], Awaitable[Any]]) -> Any:
        return anyio.run(main, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})

    return runner


@pytest.fixture
def client() -> Client:
    """Make a client of a fresh mock in process."""

    def make(scenario: Scenario | None = None, *, token: str = "mock-token", **options: Any) -> httpx.AsyncClient:  # noqa: S107 - public
        app = create_app(scenario or Scenario(), **options)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://mock", headers=headers)

    return make
