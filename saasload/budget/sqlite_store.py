"""Windows in an SQLite file, for the processes of one machine.

Calls go inline, on the event loop's thread: a change takes 0.1 ms (docs/decisions/0006), less than handing it to a
thread and back. What can take long is waiting for another process's turn, and that is done asleep, not in SQLite.
"""

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import anyio

from saasload.budget.store import Act, Result, StoreLostError
from saasload.errors import ConfigError
from saasload.policy.ledger_windows import WindowState

BUSY_S = 5.0
"""Another process holds the file for 0.1 ms at a time; after so long something is wrong."""

NAP_S = 0.0005
KEPT_S = 3 * 86_400.0

_SCHEMA = "CREATE TABLE IF NOT EXISTS windows (key TEXT PRIMARY KEY, books BLOB NOT NULL, touched REAL NOT NULL)"
_READ = "SELECT books FROM windows WHERE key = ?"
_WRITE = (
    "INSERT INTO windows VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET books = excluded.books, touched = excluded.touched"
)


class SqliteStore:
    """One file, in WAL mode: a process that dies at any instant leaves whole windows behind."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Use an open file; `open` makes one."""
        self._path = path
        self._connection = connection
        self.clock_ahead_s = 0.0

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file, or make it with its folder; ConfigError with one line where that cannot be."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            try:
                _prepare(connection)
            except BaseException:
                connection.close()
                raise
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            message = f"budget directory {path.parent}: cannot be used: {reason.lower()}"
            raise ConfigError(message) from error
        return cls(path, connection)

    async def change(self, keys: Sequence[str], act: Act[Result]) -> Result:
        """Change windows in one transaction that no other process can come between."""
        await self._begin()
        connection = self._connection
        try:
            windows: dict[str, WindowState] = {}
            for key in keys:
                row = connection.execute(_READ, (key,)).fetchone()
                windows[key] = WindowState() if row is None else WindowState.load(row[0])
            result = act(windows)
            now = time.time()
            connection.executemany(_WRITE, [(key, windows[key].dump(), now) for key in keys])
            connection.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._lost(error) from error
            raise
        return result

    async def aclose(self) -> None:
        """Close the file."""
        self._connection.close()

    async def _begin(self) -> None:
        nap_s, waited_s = NAP_S, 0.0
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or waited_s >= BUSY_S:
                    raise self._lost(error) from error
            else:
                return
            await anyio.sleep(nap_s)
            waited_s += nap_s
            nap_s = min(2.0 * nap_s, 0.05)

    def _lost(self, error: sqlite3.Error) -> StoreLostError:
        return StoreLostError(f"budget file {self._path}: {error}")


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit survives the death of its process, though perhaps not the machine's: then replies correct the books.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(_SCHEMA)
    connection.execute("DELETE FROM windows WHERE touched < ?", (time.time() - KEPT_S,))
    connection.execute("PRAGMA busy_timeout = 0")
