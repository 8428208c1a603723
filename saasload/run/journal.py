"""The durable record of sending and settled: one SQLite file in the run's folder.

A call is written before its bytes leave and again after its answer; one without the second half was on the wire
when the process ended, and its rows are in doubt. One row a CALL, its rows' outcomes packed beside it: a row a
ROW would be five times the work (docs/performance.md). Both halves are only ever added, so that a commit writes
the ends of two tables and nothing else.
"""

import functools
import os
import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from saasload.errors import NoRoomError, RunFolderError
from saasload.model import Company, Note, Outcomes

VERSION = 2
FILE = "journal.db"

LOOK_UP = "look-up"
"""The form of a call that reads rows in doubt back."""

CARRIED = "carried"
"""The form of what is no call: outcomes taken over when the source was changed."""

_NOTHING = 0
"""The outcome of a call of which nothing was executed: its rows are as unsent as before."""
MIXED = -1
CHUNK = 10_000

_SCHEMA = """
create table facts (name text primary key, value text not null) without rowid;
create table sent (
    no integer primary key,
    company text not null,
    form text not null,
    sent_ms integer not null,
    bytes integer not null,
    attempt integer not null,
    count integer not null,
    row integer,
    rows blob
);
create table settled (
    no integer primary key references sent,
    status integer not null,
    ms real not null,
    note text,
    outcome integer not null,
    outcomes blob,
    ids blob,
    notes text
);
create view calls as select * from sent left join settled using (no);
"""

_TOGETHER = 500
"""Records that one statement adds: each statement gives the interpreter up and asks for it again."""
_FACT = "insert or replace into facts values (?, ?)"

_REPLAY = "select company, form, row, rows, outcome, outcomes, notes from calls where no > ? order by no"
_SINGLE_ROWS = """select row, company, outcome, coalesce(ids, '') from calls
where no > ? and rows is null and outcome between 1 and 3 and form != ?"""
_MANY_ROWS = """select company, count, row, rows, outcome, outcomes, ids from calls
where no > ? and outcome != 0 and (rows is not null or form = ?) order by no"""
_TRIPS = """select sent_ms, company, form, count, bytes, status, attempt, ms, note from calls
where form != ? order by no"""
_COUNTS = "select company, count(*) from sent where no > ? and form != ? group by company"
_LAST = "select max(coalesce((select max(no) from sent), 0), coalesce((select max(no) from settled), 0))"

# Five times quicker than zstd on these few kilobytes, which matters more here than the last third of their size.
# sqlite3 raises a UnicodeDecodeError where a damaged file makes it name what is none.
_UNREADABLE = (sqlite3.Error, ValueError)

_codec = pa.Codec("lz4_raw")


@dataclass(slots=True)
class Sending:
    """A call that is about to leave; `form` is its mode, or `look-up`."""

    no: int
    company: Company
    form: str
    sent_ms: int
    size: int
    attempt: int
    rows: Sequence[int]


@dataclass(slots=True)
class Settled:
    """What came of it: outcomes of all its rows in order, or None where nothing was executed."""

    no: int
    status: int
    ms: float
    note: str
    outcomes: Outcomes | None


class Entry(NamedTuple):
    """A call and what it came to, as it is stored.

    `row` or packed `rows` (`unpack_rows`); `outcome` is None where the answer was never written, 0 where nothing
    was executed, MIXED where `outcomes` has a RowStatus a row, else the RowStatus of them all.
    """

    company: Company
    form: str
    row: int | None
    rows: bytes | None
    outcome: int | None
    outcomes: bytes | None
    notes: str | None


class Journal:
    """One run's journal. Not for several threads at once."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Use `create_journal` or `open_journal`."""
        self._path = path
        self._connection = connection
        self._after = int(str(self.facts().get("source_after", 0)))

    def write(self, records: Sequence[Sending | Settled], facts: Mapping[str, object] | None = None) -> None:
        """Write records, and facts about the run, durably and in one commit. Raises RunFolderError where that fails."""
        sending = [_sending_values(record) for record in records if isinstance(record, Sending)]
        settled = [_settled_values(record) for record in records if isinstance(record, Settled)]
        try:
            self._connection.execute("begin immediate")
            try:
                self._add("sent", sending)
                self._add("settled", settled)
                if facts:
                    self._connection.executemany(_FACT, _fact_values(facts))
                self._connection.execute("commit")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
                raise
        except sqlite3.Error as error:
            raise _failed(self._path, error) from error

    def _add(self, table: str, records: Sequence[tuple[object, ...]]) -> None:
        for start in range(0, len(records), _TOGETHER):
            chunk = records[start : start + _TOGETHER]
            statement = _addition(table, len(chunk[0]), len(chunk))
            self._connection.execute(statement, list(chain.from_iterable(chunk)))

    def state(self, facts: Mapping[str, object]) -> None:
        """Keep facts about the run, by name, over what was kept before."""
        self.write([], facts)

    def facts(self) -> dict[str, object]:
        """Tell what was kept about the run."""
        with self._reading():
            return {name: orjson.loads(value) for name, value in self._connection.execute("select * from facts")}

    def replay(self) -> Iterator[Entry]:
        """Tell what every call came to, in the order they left."""
        for chunk in self.replay_many():
            yield from map(Entry._make, chunk)

    def replay_many(self) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Tell the same some thousands at a time, as tuples of what an Entry holds."""
        with self._reading():
            found = self._connection.execute(_REPLAY, (self._after,))
            while chunk := found.fetchmany(CHUNK):
                yield chunk

    def single_rows(self) -> Iterator[Sequence[Sequence[object]]]:
        """Tell the accepted rows that had a call of their own, some thousands at a time, in columns."""
        yield from self._columns(_SINGLE_ROWS, self._after, LOOK_UP)

    def many_rows(self) -> Iterator[tuple[Company, Sequence[int], bytes, Sequence[str]]]:
        """Tell the outcomes of all other calls: company, rows, their statuses, and the target's ids."""
        for company, count, row, packed, outcome, outcomes, ids in self._select(_MANY_ROWS, self._after, LOOK_UP):
            statuses = outcomes if outcome == MIXED else bytes((outcome,)) * count
            if packed is None:
                yield company, (row,), statuses, (ids or "",)
                continue
            names = [""] * count if ids is None else orjson.loads(_unpack(ids))
            yield company, unpack_rows(packed), statuses, names

    def ids(self) -> dict[int, str]:
        """Tell the target's id of every accepted row that has one."""
        found = {row: name for rows, _, _, ids in self.single_rows() for row, name in zip(rows, ids, strict=True)}
        for _, rows, _, names in self.many_rows():
            found.update(zip(rows, names, strict=True))
        return {int(str(row)): str(name) for row, name in found.items() if name}

    def trips(self) -> Iterator[Sequence[Sequence[object]]]:
        """Tell every call as a line of calls.parquet, some thousands at a time, in columns."""
        yield from self._columns(_TRIPS, CARRIED)

    def damaged(self, error: Exception) -> RunFolderError:
        """Say of something it holds that it cannot be."""
        return _damaged(self._path, str(error))

    def _columns(self, query: str, *values: object) -> Iterator[Sequence[Sequence[object]]]:
        with self._reading():
            found = self._connection.execute(query, values)
            while chunk := found.fetchmany(CHUNK):
                yield list(zip(*chunk, strict=True))

    def _select(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with self._reading():
            yield from self._connection.execute(query, values)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _failed(self._path, error) from error
        except ValueError as error:
            raise self.damaged(error) from error

    def begin_source(self, spool: str, carried: Iterator[tuple[Company, Outcomes]]) -> None:
        """Go over to another source, and to row numbers of its own, in one step.

        Outcomes of rows that are there still are `carried` over as calls of the form "carried"; what earlier calls
        say of row numbers counts no more.
        """
        after = self.last_call()
        records: list[Sending | Settled] = []
        for number, (company, outcomes) in enumerate(carried, after + 1):
            records.append(Sending(number, company, CARRIED, 0, 0, 1, outcomes.rows))
            records.append(Settled(number, 0, 0.0, "", outcomes))
        self.write(records, {"source_after": after, "spool": spool})
        self._after = after

    def count_calls(self) -> Mapping[Company, int]:
        """Count the calls that left, by company."""
        return {Company(company): count for company, count in self._select(_COUNTS, self._after, CARRIED)}

    def last_call(self) -> int:
        """Tell the number of the last call, 0 where none ever left."""
        # A full disk may have kept the second half of a call and not the first.
        return int(next(self._select(_LAST))[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def create_journal(folder: Path, facts: Mapping[str, object]) -> Journal:
    """Make a run's journal, durable against power loss (WAL, synchronous=FULL), with what is known at the start.

    It has its name only when it is whole: a folder without it is a run of which nothing has begun.
    """
    path, part = folder / FILE, folder / (FILE + ".part")
    try:
        part.unlink(missing_ok=True)
        connection = sqlite3.connect(part, isolation_level=None)
        connection.executescript(f"begin; {_SCHEMA} pragma user_version = {VERSION};")
        connection.executemany(_FACT, _fact_values(facts))
        connection.execute("commit")
        connection.close()
        part.replace(path)
        for place in (folder, folder.parent):
            _sync_names(place)
        return Journal(path, _connect(path))
    except (sqlite3.Error, OSError) as error:
        raise RunFolderError(_words(path, error)) from error  # also where it is full: nothing has begun


def open_journal(folder: Path) -> Journal:
    """Open the journal of a run that has one; RunFolderError for one that is missing, damaged or too new."""
    path = folder / FILE
    if not path.is_file():
        raise RunFolderError(f"{folder}: no journal here, so there is no run to go on with")
    try:
        connection = _connect(path)
    except _UNREADABLE as error:
        raise _failed(path, error) from error
    try:
        return _checked(path, connection)
    except _UNREADABLE as error:
        connection.close()
        raise _failed(path, error) from error
    except RunFolderError:
        connection.close()
        raise


def _checked(path: Path, connection: sqlite3.Connection) -> Journal:
    version = connection.execute("pragma user_version").fetchone()[0]
    if version != VERSION:
        which = "an older version of saasload; go on with that one"
        if version > VERSION:
            which = "a newer version of saasload; update saasload"
        elif not version:
            which = "no finished start of a run"
        raise RunFolderError(f"{path}: written by {which} (version {version}, this is {VERSION})")
    damage = connection.execute("pragma quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise _damaged(path, damage)
    return Journal(path, connection)


def _sync_names(folder: Path) -> None:
    """Make durable which files a folder has: without its name the journal's bytes would be lost with the power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connect(path: Path) -> sqlite3.Connection:
    # Transactions are ours: sqlite3's own begin and commit would hide when a record is durable.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
    except _UNREADABLE:
        connection.close()
        raise
    return connection


def _damaged(path: Path, how: str) -> RunFolderError:
    how = " ".join(how.split())[:200]
    return RunFolderError(f"{path}: damaged ({how}); the target alone knows what was booked, look there first")


def _failed(path: Path, error: Exception) -> RunFolderError:
    kind = NoRoomError if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL else RunFolderError
    return kind(_words(path, error))


def _words(path: Path, error: Exception) -> str:
    return f"{path}: {str(error).splitlines()[0].lower()}"


@functools.cache
def _addition(table: str, columns: int, records: int) -> str:
    one = f"({', '.join('?' * columns)})"
    return f"insert into {table} values {', '.join([one] * records)}"  # noqa: S608 - our own words


def _sending_values(record: Sending) -> tuple[object, ...]:
    count = len(record.rows)
    row, rows = (record.rows[0], None) if count == 1 else (None, _pack(array("q", record.rows).tobytes()))
    return (
        record.no, record.company, record.form, record.sent_ms, record.size, record.attempt, count, row, rows
    )  # fmt: skip


def _fact_values(facts: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name, orjson.dumps(value).decode()) for name, value in facts.items()]


def _settled_values(record: Settled) -> tuple[object, ...]:
    head, outcomes = (record.no, record.status, record.ms, record.note or None), record.outcomes
    if outcomes is None or not len(outcomes):
        return (*head, _NOTHING, None, None, None)
    if len(outcomes) == 1:
        ids: object = outcomes.ids[0] or None
    else:
        ids = _pack(orjson.dumps(outcomes.ids)) if any(outcomes.ids) else None
    notes = None
    if outcomes.notes:
        notes = orjson.dumps({str(row): list(astuple(note)) for row, note in outcomes.notes.items()}).decode()
    first = outcomes.statuses[0]
    if outcomes.statuses.count(first) == len(outcomes):
        return (*head, int(first), None, ids, notes)
    return (*head, MIXED, bytes(outcomes.statuses), ids, notes)


def unpack_notes(text: str) -> dict[int, Note]:
    """Read what a call's rows are noted for."""
    return {int(row): Note(*values) for row, values in orjson.loads(text).items()}


def unpack_rows(packed: bytes) -> Sequence[int]:
    """Read a call's row numbers."""
    return array("q", _unpack(packed))


def _pack(data: bytes) -> bytes:
    packed: bytes = _codec.compress(data, asbytes=True)
    return len(data).to_bytes(4, "little") + packed


def _unpack(packed: bytes) -> bytes:
    data: bytes = _codec.decompress(packed[4:], int.from_bytes(packed[:4], "little"), asbytes=True)
    return data
