"""The store: what is booked, kept in a file over restarts.

The changes of a call are written before it is answered, in one transaction. The file is not synced to the disk:
it outlives the end of the process, not that of the machine.
"""

import sqlite3
from pathlib import Path
from typing import Any

import orjson

from mock_server.entities import SETS
from mock_server.ledger import Book, Entry, Ledger

_VERSION = "1"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (
    company INTEGER, entity TEXT, number INTEGER, code TEXT, row BLOB, parent INTEGER,
    PRIMARY KEY (entity, company, number)
) WITHOUT ROWID;
"""
_WRITE = "INSERT OR REPLACE INTO rows (company, entity, number, code, row, parent) VALUES (?, ?, ?, ?, ?, ?)"


class StoreError(Exception):
    """The file cannot be used; the text is one line."""


class Store:
    """One file."""

    def __init__(self, path: Path, *, seed: int) -> None:
        """Open a file, or begin one; raise `StoreError` where it is not ours, or of another seed."""
        self.path = path
        self.log: list[Entry] = []
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.executescript(_SCHEMA)
            self._check("version", _VERSION)
            self._check("seed", str(seed))
        except sqlite3.Error as error:
            raise StoreError(f"{path}: cannot be used as a database: {error}") from error

    def _check(self, name: str, value: str) -> None:
        kept = self.recall(name)
        if kept is None:
            self.remember(name, value)
        elif kept != value:
            raise StoreError(f"{self.path}: was begun with {name} {kept}, and this is {name} {value}")

    def recall(self, name: str) -> Any:
        """Return a value that was kept, None where there is none."""
        found = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if found is None else orjson.loads(found[0])

    def remember(self, name: str, value: object) -> None:
        """Keep a value."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, orjson.dumps(value)))

    def load(self, ledger: Ledger) -> None:
        """Fill a ledger with what is kept; its log stays empty."""
        for company, name, number, code, row, parent in self._db.execute(
            "SELECT company, entity, number, code, row, parent FROM rows ORDER BY entity, company, number"
        ):
            if name in SETS:
                _put(ledger.book(company, SETS[name]), number, code, row, parent)
        self.log.clear()

    def flush(self) -> None:
        """Write the changes since the last time."""
        if not self.log:
            return
        self._db.execute("BEGIN")
        self._db.executemany(_WRITE, self.log)
        self._db.execute("COMMIT")
        self.log.clear()

    def clear(self, *, seed: int) -> None:
        """Forget all rows and values, and go on with a seed."""
        self.log.clear()
        self._db.execute("DELETE FROM rows")
        self._db.execute("DELETE FROM meta WHERE name <> 'version'")
        self.remember("seed", str(seed))

    def close(self) -> None:
        """Write what is left and close."""
        self.flush()
        self._db.close()


def _put(book: Book, number: int, code: str, row: bytes, parent: int) -> None:
    """Put a row at its number, also one that was deleted."""
    while len(book.rows) < number:
        book.codes.append("")
        book.rows.append(b"")
    book.restore(code, row, parent)
