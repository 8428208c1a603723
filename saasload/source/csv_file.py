"""Read a CSV file, all cells as text.

Two readers for one meaning. pyarrow's is fast and stops at the first row it does not like; the standard library's is
exact and slower, and takes over from the row where pyarrow stopped. A property test holds them to the same answer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from saasload.errors import UsageError
from saasload.source.base import BATCH_ROWS, SourceBatch, check_columns
from saasload.source.csv_exact import SENTINEL, exact_batches, first_record, is_text

_BLOCK_BYTES = 1 << 20


class CsvSource:
    """A CSV file of rows: commas, UTF-8 with or without a mark, quotes as in RFC 4180, line ends inside quotes.

    Every cell is text. An empty cell is null, quoted or not: writers that quote everything quote what is not there too.
    Lines with nothing at all are no rows. A row with too many or too few cells, with bytes that are not UTF-8, or with
    a quote that is never closed is a problem of that row.
    """

    format = "csv"
    rows: int | None = None

    def __init__(self, path: Path) -> None:
        """Read the header."""
        self.path = path
        self.columns: Sequence[str] = tuple(_header(path))
        self.schema: Any = pa.schema([(name, pa.string()) for name in self.columns])

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[SourceBatch]:
        """Yield all rows from the first, at most `rows` at a time."""
        done = 0
        try:
            for batch in _fast_batches(self.path, self.schema):
                for start in range(0, batch.num_rows, rows):
                    part = batch.slice(start, rows)
                    yield SourceBatch(part, done + 1)
                    done += part.num_rows
        except (pa.ArrowInvalid, _SwallowedError):
            yield from exact_batches(self.path, self.schema, skip=done, rows=rows)
        except OSError as error:
            message = f"{self.path.name}: cannot be read after row {done:,}: {error.strerror or error}"
            raise UsageError(message) from error


class _SwallowedError(Exception):
    """The last row runs on to the end of the file."""


def _header(path: Path) -> list[str]:
    """Read the names of the columns, or say what is wrong with them."""
    header = first_record(path)
    if header is None:
        message = f"{path.name}: no header, only empty lines; the first line must name the columns"
        raise UsageError(message)
    names = header.cells
    if header.problem:
        message = f"{path.name}: the header cannot be read: {header.problem}"
        raise UsageError(message)
    if not is_text(names):
        message = f"{path.name}: line {header.line} is not UTF-8; save the file as UTF-8"
        raise UsageError(message)
    if len(names) == 1:
        for sign, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if sign in names[0]:
                message = f"{path.name}: {word} between the columns; saasload reads commas, so save it with commas"
                raise UsageError(message)
    check_columns(path, names)
    return names


def _fast_batches(path: Path, schema: Any) -> Iterator[Any]:
    """Yield the rows by pyarrow, in blocks; `ArrowInvalid` or `_SwallowedError` where it cannot tell."""
    width = len(schema.names)
    with path.open("rb") as file:
        tail = b"\n" + ",".join([SENTINEL] * width).encode() + b"\n"
        reader = pacsv.open_csv(
            _Tailed(file, tail),
            # the header is read as a row too: the reader then removes a mark at the start of the file, and only there
            read_options=pacsv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=schema.names),
            parse_options=pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=True),
            convert_options=pacsv.ConvertOptions(
                column_types=schema,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                check_utf8=True,
            ),
        )
        yield from _without_ends(batch for batch in reader if batch.num_rows)


def _without_ends(batches: Iterator[Any]) -> Iterator[Any]:
    """Take the header off the front and the sentinel off the end."""
    held = None
    skip = 1
    for batch in batches:
        rows = batch.slice(skip)
        skip = 0
        if held is not None and rows.num_rows:
            yield held
        held = rows if rows.num_rows else held
    if held is None or not _is_sentinel(held.slice(held.num_rows - 1)):
        raise _SwallowedError
    if held.num_rows > 1:
        yield held.slice(0, held.num_rows - 1)


def _is_sentinel(row: Any) -> bool:
    """Whether this one row is ours."""
    return all(pc.equal(column, SENTINEL)[0].as_py() is True for column in row.columns)


class _Tailed:
    """A file with some bytes after its end, as pyarrow reads files."""

    closed = False

    def __init__(self, file: Any, tail: bytes) -> None:
        """Begin at the file's own place."""
        self._file = file
        self._tail = tail

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes."""
        data: bytes = self._file.read(size)
        if not data:
            data, self._tail = self._tail, b""
        return data

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say no."""
        return False

    def writable(self) -> bool:
        """Say no."""
        return False

    def close(self) -> None:
        """Leave the file to its owner."""
