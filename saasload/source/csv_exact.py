"""Read CSV records exactly: each row, where it began, and what is wrong with it."""

import csv
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


class Record(NamedTuple):
    """One record: its cells, the line of the file it begins on, and why it cannot be used ("" if it can)."""

    cells: list[str]
    line: int
    problem: str = ""


class _End:
    """The end of a file, which knows whether someone has asked for more."""

    reached = False

    def __iter__(self) -> "_End":
        return self

    def __next__(self) -> str:
        self.reached = True
        raise StopIteration


@contextmanager
def records(path: Path) -> Iterator[Iterator[Record]]:
    """Open a file and give its records; lines with nothing on them are none.

    Bytes that are not UTF-8 come as lone surrogates.
    """
    # a quote that is never closed must not swallow a whole file; the standard 131,072 would refuse long lawful cells
    csv.field_size_limit(max(_CELL_CHARS, csv.field_size_limit()))
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield _records(file)
    except OSError as error:
        message = f"{path.name}: cannot be read: {error.strerror or error}"
        raise UsageError(message) from error


def _records(file: TextIO) -> Iterator[Record]:
    """Yield the records of an open file."""
    end = _End()
    reader = csv.reader(chain(file, end))
    line = 1
    while True:
        try:
            for cells in reader:
                if end.reached:
                    # asked for another line inside a record: the quote before it was never closed
                    yield Record(cells, line, f"line {line}: a quote that is never closed: {_raw(cells)}")
                elif cells:
                    yield Record(cells, line)
                line = reader.line_num + 1
        except csv.Error:
            problem = f"line {line}: a cell of more than {_CELL_CHARS:,} characters; is a quote never closed?"
            yield Record([], line, problem)
            line = reader.line_num + 1
        else:
            return


def exact_batches(path: Path, schema: Any, *, skip: int, rows: int) -> Iterator[SourceBatch]:
    """Yield the rows after the first `skip`; a row that cannot be used is null, with a problem."""
    with records(path) as found:
        data = islice(found, skip + 1, None)
        number = skip + 1
        while part := list(islice(data, rows)):
            yield _batch(part, schema, number)
            number += len(part)


def _batch(part: Sequence[Record], schema: Any, first_row: int) -> SourceBatch:
    """Make one batch of records."""
    width = len(schema.names)
    blank = [""] * width
    problems: dict[int, str] = {}
    table = []
    for number, record in enumerate(part, first_row):
        if len(record.cells) == width and not record.problem:
            table.append(record.cells)
        else:
            problems[number] = record.problem or _shape_problem(record, width)
            table.append(blank)
    try:
        batch = _arrow(table, schema)
    except UnicodeEncodeError:
        for place, record in enumerate(part):
            if table[place] is not blank and not is_text(record.cells):
                problems[first_row + place] = f"line {record.line}: not UTF-8: {_raw(record.cells)}"
                table[place] = blank
        batch = _arrow(table, schema)
    return SourceBatch(batch, first_row, problems)


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
    columns = []
    for cells in zip(*table, strict=True):
        array = pa.array(cells, pa.string())
        columns.append(pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
