"""Open the store that a job's settings name."""

import hashlib
from pathlib import Path

from saasload.budget.sqlite_store import SqliteStore
from saasload.budget.store import MemoryStore, Store
from saasload.errors import ConfigError

COMMON_EPOCH_S = 1_767_225_600.0
"""2026-01-01. Processes that share a budget need one wall clock: at a time scale other than 1, `Clock.real(scale,
epoch_s=COMMON_EPOCH_S)` is one."""


def store_name(*identity: str) -> str:
    """Make a name out of what tells one app at one target from another: its address, its client id, its user.

    Names are short and safe in files and keys, and no secret can be read from them.

    >>> store_name("http://127.0.0.1:8000", "app")
    'bdde4d8a3313'
    """
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()[:12]


async def open_store(where: str, name: str) -> Store:
    """Open `redis://…` (or `rediss://`), a directory, or memory for "".

    Raises ConfigError with one line where it cannot be used.
    """
    if not where:
        return MemoryStore()
    if where.startswith(("redis://", "rediss://", "unix://")):
        from saasload.budget.redis_store import RedisStore  # noqa: PLC0415 few share by Redis

        return await RedisStore.connect(where, name)
    if "://" in where:
        raise ConfigError(f"budget {where.partition('://')[0]}://…: a directory or redis://… is expected")
    return SqliteStore.open(_file(where, name))


def _file(where: str, name: str) -> Path:
    return Path(where).expanduser() / f"{name}.sqlite3"
