"""The application: ASGI in, the right room behind it."""

from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from typing import Any

from mock_server.admin import admin_app, is_admin
from mock_server.clock import DEFAULT_EPOCH_S, Clock
from mock_server.exchange import Exchange
from mock_server.faults import ConnectionDroppedError
from mock_server.replies import Reply
from mock_server.scenario import Scenario
from mock_server.store import Store
from mock_server.world import World

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HANG_UP = "mock.hang_up"
"""Scope extension of our server: a function that closes the connection."""


def create_app(
    scenario: Scenario,
    *,
    time_scale: float = 1.0,
    epoch0_s: float = DEFAULT_EPOCH_S,
    clock: Clock | None = None,
    store: Store | None = None,
) -> "MockApp":
    """Return the mock as an ASGI application.

    It needs no lifespan and starts no tasks. Time is the running loop's: `time_scale` mock seconds pass in a
    second of it, from the date `epoch0_s`, or as a `clock` of yours says. What is booked is kept in the `store`,
    in memory where there is none.
    """
    return MockApp(World(scenario, clock or Clock(scale=time_scale, epoch0_s=epoch0_s), store))


class MockApp:
    """An ASGI application over one world."""

    def __init__(self, world: World) -> None:
        """Serve a world."""
        self.world = world
        self._admin = admin_app(world)
        self._scale = 0.0
        self._fixed = (b"x-mock-time-scale", b"")
        self._date_s = -1
        self._date = b""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        if is_admin(scope["path"]):
            await self._admin(scope, receive, send)
            return
        world = self.world
        world.in_flight += 1
        world.in_flight_max = max(world.in_flight_max, world.in_flight)
        try:
            await Exchange(world, scope, receive, send, self.head).run()
        except ConnectionDroppedError:
            hang_up = scope.get("extensions", {}).get(HANG_UP)
            if hang_up is None:
                raise
            hang_up()
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            world.in_flight -= 1

    async def _other(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        while scope["type"] == "lifespan":
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def head(self, reply: Reply) -> list[tuple[bytes, bytes]]:
        """Return all headers of a reply."""
        clock = self.world.clock
        second = int(clock.wall_s())
        if second != self._date_s:
            self._date_s, self._date = second, formatdate(second, usegmt=True).encode()
        if clock.scale != self._scale:
            self._scale, self._fixed = clock.scale, (b"x-mock-time-scale", f"{clock.scale:g}".encode())
        headers = [(b"date", self._date), self._fixed, *reply.headers]
        if reply.status != 204:
            headers.append((b"content-length", b"%d" % len(reply.body)))
        if reply.body:
            headers.append((b"content-type", reply.content_type))
        return headers
