"""Windows in Redis, for the processes of several machines.

A change is optimistic: one script compares what is there with what was read, and writes all windows or none, then
answers with what is there. So a change that nobody disturbed is one round trip.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from saasload.budget.store import Act, Result, StoreLostError
from saasload.errors import ConfigError
from saasload.policy.ledger_windows import WindowState

if TYPE_CHECKING:
    from redis.asyncio import Redis

TIMEOUT_S = 2.0
KEPT_MS = 3 * 86_400_000
TRIES = 200

_SWAP = """
local same = true
for i, key in ipairs(KEYS) do
  if (redis.call('GET', key) or '') ~= ARGV[i] then same = false end
end
if not same then return redis.call('MGET', unpack(KEYS)) end
for i, key in ipairs(KEYS) do
  redis.call('SET', key, ARGV[#KEYS + i], 'PX', ARGV[2 * #KEYS + 1])
end
return 1
"""


class RedisStore:
    """Windows under one name in a Redis; `clock_ahead_s` is what its clock shows beyond ours.

    Each window is kept with a version that only grows. Where Redis shows an older one, or none, it has lost what we
    know - it was emptied, or came back from an old copy - and our copy, marked as lost, goes before it.
    """

    def __init__(self, client: "Redis", name: str, address: str) -> None:
        """Use a client; `connect` makes one."""
        self._client = client
        self._address = address
        # In braces: in a Redis cluster all windows of one target lie on one node, where a script can reach them.
        self._prefix = f"saasload:{{{name}}}:"
        self._there: dict[str, bytes] = {}
        self._best: dict[str, bytes] = {}
        self._swap = client.register_script(_SWAP)
        self.clock_ahead_s = 0.0

    @classmethod
    async def connect(cls, url: str, name: str) -> Self:
        """Connect to `redis://...`; ConfigError with one line where the client or the server is not there."""
        try:
            from redis.asyncio import Redis  # noqa: PLC0415 an extra: only who shares by Redis needs it
            from redis.asyncio.retry import Retry  # noqa: PLC0415 the same
            from redis.backoff import NoBackoff  # noqa: PLC0415 the same
            from redis.exceptions import RedisError  # noqa: PLC0415 the same
        except ImportError as error:
            raise ConfigError("a budget in Redis needs the extra: pip install 'saasload[redis]'") from error
        address = _address(url)
        try:
            client = Redis.from_url(
                url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0)
            )
        except ValueError as error:
            raise ConfigError(f"budget at {address}: {_first_line(error)}") from error
        store = cls(client, name, address)
        try:
            store.clock_ahead_s = await _clock_ahead(client)
        except (RedisError, OSError) as error:
            await client.aclose()
            raise ConfigError(f"budget at {address}: cannot be reached: {_first_line(error)}") from error
        return store

    async def change(self, keys: Sequence[str], act: Act[Result]) -> Result:
        """Change windows; try again with what another process wrote in the meantime."""
        for attempt in range(TRIES):
            if attempt > 1:
                await asyncio.sleep(random.uniform(0.0, 0.002))  # noqa: S311 only keeps rivals from going in step
            windows = {key: self._window(key) for key in keys}
            result = act(windows)
            written = [_seal(self._version(key) + 1, windows[key]) for key in keys]
            rivals = await self._send(keys, written)
            if rivals is None:
                self._there.update(zip(keys, written, strict=True))
                self._best.update(zip(keys, written, strict=True))
                return result
            self._there.update(zip(keys, rivals, strict=True))
        raise StoreLostError(f"budget at {self._address}: too many processes change it at once")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _window(self, key: str) -> WindowState:
        there, best = self._there.get(key, b""), self._best.get(key, b"")
        if _version(there) >= _version(best):
            self._best[key] = there
            return WindowState.load(_books(there)) if there else WindowState()
        state = WindowState.load(_books(best))
        state.lost()
        return state

    def _version(self, key: str) -> int:
        return max(_version(self._there.get(key, b"")), _version(self._best.get(key, b"")))

    async def _send(self, keys: Sequence[str], written: list[bytes]) -> list[bytes] | None:
        """Write if nobody else has written; return what is there otherwise."""
        from redis.exceptions import RedisError  # noqa: PLC0415 the extra is there, or there were no client

        expected = [self._there.get(key, b"") for key in keys]
        try:
            full = [self._prefix + key for key in keys]
            answer: Any = await self._swap(keys=full, args=[*expected, *written, KEPT_MS])
        except (RedisError, OSError) as error:
            raise StoreLostError(f"budget at {self._address}: {_first_line(error)}") from error
        return None if answer == 1 else [found or b"" for found in answer]


def _seal(version: int, state: WindowState) -> bytes:
    return b"%d:" % version + state.dump()


def _version(sealed: bytes) -> int:
    return int(sealed.partition(b":")[0] or 0)


def _books(sealed: bytes) -> bytes:
    return sealed.partition(b":")[2]


async def _clock_ahead(client: "Redis") -> float:
    """Compare clocks by the fastest of five questions, good to half of what that takes."""
    best_s, ahead_s = float("inf"), 0.0
    for _ in range(5):
        asked = time.time()
        seconds, micros = await client.time()
        heard = time.time()
        if heard - asked < best_s:
            best_s, ahead_s = heard - asked, seconds + micros / 1e6 - (asked + heard) / 2.0
    return ahead_s


def _address(url: str) -> str:
    """Return an address as it may be shown: without name and password."""
    try:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port or 6379}{parts.path}"
    except ValueError:
        return "redis://?"
    return f"{parts.scheme}://{place}"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
