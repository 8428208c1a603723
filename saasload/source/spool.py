"""Keep the rows of a source by company, in one Arrow file in the run folder.

Each record batch of the file is rows of one company, or rows refused for one reason, in source order. The last batch
has no rows: it carries the index of the others, so that the file alone is enough to go on in another process.
"""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from saasload.errors import NoRoomError, RunFolderError
from saasload.model import ROW_COLUMN
from saasload.source.base import BATCH_ROWS, Source, SourceBatch
from saasload.source.partition import Assign, Refused

BUFFER_ROWS = 1 << 16
BUFFER_BYTES = 32 << 20

_VERSION = 1
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_INDEX = b"saasload.index"
_PROBLEMS = b"saasload.problems"
_WRITE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Spooled:
    """Where some rows are: the numbers of their batches, and how many rows each has."""

    batches: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Count the rows."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class SpoolIndex:
    """Where each company's rows are.

    `companies` has every company that takes part, in order, also those without rows; `refused` the rows that have no
    company to go to, by reason.
    """

    companies: Mapping[str, Spooled]
    refused: Mapping[str, Spooled]

    @property
    def rows(self) -> int:
        """Count all rows of the source."""
        return sum(part.rows for part in (*self.companies.values(), *self.refused.values()))


def write_spool(
    source: Source,
    path: Path,
    assign: Assign,
    *,
    buffer_rows: int = BUFFER_ROWS,
    buffer_bytes: int = BUFFER_BYTES,
) -> SpoolIndex:
    """Read the source once and write its rows by company to `path`; return where they are.

    Every row is in the file once: with its company, or with the reason it was refused. `buffer_rows` and
    `buffer_bytes` bound what is held; the more rows a buffer has, the longer the batches of each company.
    The file has its name only when it is whole and on the disk.
    """
    part = path.with_name(path.name + ".part")
    sink = None
    try:
        with _writing(path):
            sink = pa.BufferedOutputStream(pa.OSFile(str(part), "wb"), _WRITE_BYTES)
        writer = _Writer(sink, source.schema, assign.companies, path)
        held: list[tuple[SourceBatch, Any]] = []
        rows = held_bytes = 0
        for batch in source.batches(min(BATCH_ROWS, buffer_rows)):
            held.append((batch, _codes(batch, assign)))
            rows += len(batch)
            held_bytes += batch.batch.nbytes
            if rows >= buffer_rows or held_bytes >= buffer_bytes:
                writer.write(held)
                held, rows, held_bytes = [], 0, 0
                # the allocator would keep a third more than is ever held
                pa.default_memory_pool().release_unused()
        writer.write(held)
        index = writer.close()
        with _writing(path):
            _to_disk(part)
            part.replace(path)
    except BaseException:
        _give_up(sink, part)
        raise
    return index


def _give_up(sink: Any, part: Path) -> None:
    """Leave nothing behind."""
    with suppress(OSError):
        # closing writes what is left, for which there may be no room
        if sink is not None:
            sink.close()
    with suppress(OSError):
        part.unlink(missing_ok=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn what goes wrong with the disk into one line."""
    try:
        yield
    except OSError as error:
        # Arrow's own words say the reason twice
        reason = os.strerror(error.errno).lower() if error.errno else str(error).splitlines()[0]
        kind = NoRoomError if error.errno in _NO_ROOM else RunFolderError
        raise kind(f"{path}: cannot be written: {reason}") from error


def _to_disk(path: Path) -> None:
    """Wait until the file's bytes are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _codes(batch: SourceBatch, assign: Assign) -> Any:
    """Return each row's company code; rows with a problem have none."""
    codes = assign.codes(batch.batch, batch.first_row)
    if not batch.problems:
        return codes
    bad = bytearray(len(batch))
    for row in batch.problems:
        bad[row - batch.first_row] = 1
    mask = pa.Array.from_buffers(pa.uint8(), len(batch), [None, pa.py_buffer(bad)]).cast(pa.bool_())
    return pc.if_else(mask, pa.scalar(int(Refused.UNREADABLE), pa.int32()), codes)


class _Writer:
    """The file while it grows."""

    def __init__(self, sink: Any, schema: Any, companies: Sequence[str], path: Path) -> None:
        self._path = path
        self._companies = companies
        self._schema = schema.append(pa.field(ROW_COLUMN, pa.int64(), nullable=False))
        self._file = pa.ipc.new_file(sink, self._schema)
        self._sink = sink
        self._written = 0
        self._places: dict[int, tuple[list[int], list[int]]] = {}

    def write(self, held: Sequence[tuple[SourceBatch, Any]]) -> None:
        """Sort what is held by company and write a batch for each."""
        if not held:
            return
        codes = pa.concat_arrays([part for _, part in held])
        order = pc.array_sort_indices(codes)
        ordered = self._ordered([batch for batch, _ in held], order)
        runs = pc.run_end_encode(codes.take(order))
        problems = {row: text for batch, _ in held for row, text in batch.problems.items()}
        start = 0
        with _writing(self._path):
            for code, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
                notes = {_PROBLEMS: json.dumps(problems)} if code == Refused.UNREADABLE else None
                self._file.write_batch(ordered.slice(start, end - start), custom_metadata=notes)
                batches, counts = self._places.setdefault(code, ([], []))
                batches.append(self._written)
                counts.append(end - start)
                self._written += 1
                start = end

    def close(self) -> SpoolIndex:
        """Write the index, and the end of the file."""
        spooled = {code: Spooled(tuple(batches), tuple(counts)) for code, (batches, counts) in self._places.items()}
        index = SpoolIndex(
            {company: spooled.get(place, Spooled()) for place, company in enumerate(self._companies)},
            {refused.reason: spooled[refused] for refused in Refused if refused in spooled},
        )
        with _writing(self._path):
            empty = pa.RecordBatch.from_pylist([], schema=self._schema)
            self._file.write_batch(empty, custom_metadata={_INDEX: _index_text(index)})
            self._file.close()
            self._sink.close()
        return index

    def _ordered(self, batches: Sequence[SourceBatch], order: Any) -> Any:
        """Make one batch of them in that order, with row numbers; column by column, so that only one is there twice."""
        columns = [
            pa.concat_arrays([batch.batch.column(place) for batch in batches]).take(order)
            for place in range(len(self._schema.names) - 1)
        ]
        # the batches follow on from each other
        columns.append(pc.add(order.cast(pa.int64()), batches[0].first_row))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _index_text(index: SpoolIndex) -> str:
    """Write the index as JSON."""
    parts = {
        name: [[key, spooled.batches, spooled.counts] for key, spooled in part.items()]
        for name, part in (("companies", index.companies), ("refused", index.refused))
    }
    return json.dumps({"version": _VERSION, **parts})


def _read_index(text: bytes) -> SpoolIndex:
    """Read what `_index_text` wrote."""
    data = json.loads(text)
    if data["version"] != _VERSION:
        message = f"version {data['version']}, not {_VERSION}"
        raise ValueError(message)
    companies, refused = (
        {key: Spooled(tuple(batches), tuple(counts)) for key, batches, counts in data[name]}
        for name in ("companies", "refused")
    )
    return SpoolIndex(companies, refused)


class Spool:
    """A spool to read from: batches by number, in any order. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        """Open the file and read its index."""
        self.path = path
        # not a memory map: pages of a map count as this process's memory
        self._file: Any = None
        try:
            self._file = pa.OSFile(str(path), "rb")
            self._reader = pa.ipc.open_file(self._file)
            last = self._reader.num_record_batches - 1
            self._index = _read_index(self._reader.get_batch_with_custom_metadata(last).custom_metadata[_INDEX])
        except FileNotFoundError as error:
            message = f"{path}: no such file; this run has no spooled rows, start it again"
            raise RunFolderError(message) from error
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            self.close()
            message = f"{path}: cut short, damaged or not a spool; start the run again"
            raise RunFolderError(message) from error

    def __enter__(self) -> Self:
        """Open until the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    @property
    def index(self) -> SpoolIndex:
        """Where each company's rows are."""
        return self._index

    @property
    def schema(self) -> Any:
        """The schema of every batch: the source's columns and the row number."""
        return self._reader.schema

    def batch(self, number: int) -> Any:
        """Read one batch."""
        return self._read(number).batch

    def company_batches(self, company: str) -> Iterator[Any]:
        """Read the batches of one company, in source order."""
        for number in self._index.companies[company].batches:
            yield self.batch(number)

    def refused_batches(self, reason: str) -> Iterator[tuple[Any, Mapping[int, str]]]:
        """Read the batches of rows refused for a reason, with what more is known of each row."""
        for number in self._index.refused.get(reason, Spooled()).batches:
            found = self._read(number)
            notes = found.custom_metadata
            text = notes[_PROBLEMS] if notes is not None and _PROBLEMS in notes else b"{}"
            yield found.batch, {int(row): problem for row, problem in json.loads(text).items()}

    def _read(self, number: int) -> Any:
        """Read one batch and what was written with it."""
        try:
            return self._reader.get_batch_with_custom_metadata(number)
        except (pa.ArrowException, OSError) as error:
            message = f"{self.path}: batch {number} cannot be read: {str(error).splitlines()[0]}"
            raise RunFolderError(message) from error


def open_spool(path: Path) -> Spool:
    """Open a spool written by this or by another process."""
    return Spool(path)
