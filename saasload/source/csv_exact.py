"""Read CSV records exactly: each row, where it began, and what is wrong with it."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from saasload.errors import UsageError
from saasload.source.base import SourceBatch

_CELL_CHARS = 1 << 20
_RAW_CHARS = 200
# cells are Python objects here, some 60 bytes each beyond their text
_PART_ROWS = 2048
_LINE_END = re.compile(r"\r\n|\r|\n")

SENTINEL = "\x1esaasload end\x1e"
"""A last line of our own: either it arrives as a row, or a quote that is never closed has swallowed it."""


class Record(NamedTuple):
    """One record: its cells, the line of the file it begins on, and why it cannot be used ("" if it can)."""

    cells: list[str]
    line: int
    problem: str = ""


class _Part(NamedTuple):
    """Some records as they were read: lines with nothing on them are empty lists, except a last one with a problem."""

    cells: list[list[str]]
    line: int
    problem: str


@contextmanager
def _parts(path: Path, rows: int) -> Iterator[Iterator[_Part]]:
    """Open a file and give its records, at most `rows` at a time; bytes that are not UTF-8 come as lone surrogates."""
    # a quote that is never closed must not swallow a whole file; the standard 131,072 would refuse long lawful cells
    csv.field_size_limit(max(_CELL_CHARS, csv.field_size_limit()))
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield _read(file, rows)
    except OSError as error:
        message = f"{path.name}: cannot be read: {error.strerror or error}"
        raise UsageError(message) from error


def _read(file: TextIO, rows: int) -> Iterator[_Part]:
    """Yield the records of an open file."""
    reader = csv.reader(chain(file, [SENTINEL]))
    line = 1
    while True:
        cells: list[list[str]] = []
        problem = ""
        try:
            cells.extend(islice(reader, rows))
        except csv.Error:
            # those before it are in the list; reading can go on with the next line
            cells.append([])
            problem = f"a cell of more than {_CELL_CHARS:,} characters; is a quote never closed?"
        if not cells:
            return
        last = cells[-1]
        if last == [SENTINEL]:
            cells.pop()
        elif last and last[-1].endswith(SENTINEL):
            last[-1] = last[-1].removesuffix(SENTINEL)
            problem = f"a quote that is never closed: {_raw(last)}"
        yield _Part(cells, line, problem)
        line = reader.line_num + 1


def _records(part: _Part) -> list[Record]:
    """Give each record its line, and leave out the lines with nothing on them."""
    records = []
    line = part.line
    for cells in part.cells[:-1] if part.problem else part.cells:
        if cells:
            records.append(Record(cells, line))
        line += 1 + sum(len(_LINE_END.findall(cell)) for cell in cells)
    if part.problem:
        records.append(Record(part.cells[-1], line, f"line {line}: {part.problem}"))
    return records


def first_record(path: Path) -> Record | None:
    """Read the first record, None if there is none."""
    with _parts(path, 1) as parts:
        return next((record for part in parts for record in _records(part)), None)


def exact_batches(path: Path, schema: Any, *, skip: int, rows: int) -> Iterator[SourceBatch]:
    """Yield the rows after the first `skip`; a row that cannot be used is null, with a problem."""
    width = len(schema.names)
    number = skip + 1
    to_skip = skip + 1  # the header is a record too
    with _parts(path, min(rows, _PART_ROWS)) as parts:
        for part in parts:
            if to_skip > len(part.cells) and not part.problem:
                to_skip -= sum(map(bool, part.cells))
                continue
            batch = None
            if not to_skip and not part.problem and all(len(cells) == width for cells in part.cells):
                batch = _plain_batch(part.cells, schema, number)
            if batch is None:
                records = _records(part)
                skipped = min(to_skip, len(records))
                to_skip -= skipped
                batch = _careful_batch(records[skipped:], schema, number)
            if len(batch):
                yield batch
            number += len(batch)


def _plain_batch(table: list[list[str]], schema: Any, first_row: int) -> SourceBatch | None:
    """Make one batch of cells, None if some are not UTF-8."""
    try:
        return SourceBatch(_arrow(table, schema), first_row)
    except UnicodeEncodeError:
        return None


def _careful_batch(records: Sequence[Record], schema: Any, first_row: int) -> SourceBatch:
    """Make one batch of records that may have problems."""
    width = len(schema.names)
    blank = [""] * width
    problems: dict[int, str] = {}
    table = []
    for number, record in enumerate(records, first_row):
        problem = record.problem
        if not problem and len(record.cells) != width:
            problem = _shape_problem(record, width)
        elif not problem and not is_text(record.cells):
            problem = f"line {record.line}: not UTF-8: {_raw(record.cells)}"
        if problem:
            problems[number] = problem
        table.append(blank if problem else record.cells)
    return SourceBatch(_arrow(table, schema), first_row, problems)


def _shape_problem(record: Record, width: int) -> str:
    """Say what is wrong with the number of cells."""
    count = len(record.cells)
    cells = "1 cell" if count == 1 else f"{count} cells"
    return f"line {record.line}: {cells} where the header has {width}: {_raw(record.cells)}"


def is_text(cells: Sequence[str]) -> bool:
    """Whether all cells are proper Unicode."""
    try:
        ",".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def _raw(cells: Sequence[str]) -> str:
    """Write the cells as one short line; bytes that are not UTF-8 as their hex digits."""
    text = ",".join(cells)[:_RAW_CHARS].encode(errors="surrogateescape").decode(errors="backslashreplace")
    text = text.replace("\r", "\\r").replace("\n", "\\n")
    return text if len(text) < _RAW_CHARS else text[:_RAW_CHARS] + "…"


def _arrow(table: Sequence[list[str]], schema: Any) -> Any:
    """Turn rows of cells into columns; empty cells are null."""
    if not table:
        return pa.RecordBatch.from_pylist([], schema=schema)
    # as Python values, pyarrow would look for pandas again for each of them
    empty, null = pa.scalar("", pa.string()), pa.scalar(None, pa.string())
    columns = []
    for cells in zip(*table, strict=True):
        array = pa.array(cells, pa.string())
        columns.append(pc.if_else(pc.equal(array, empty), null, array))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
