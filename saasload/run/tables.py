"""Parquet files that grow while a load runs, with a bounded part of them in memory."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from saasload.errors import RunFolderError

GROUP_ROWS = 50_000

ACCEPTED = pa.schema(
    [
        ("row", pa.int64()),
        ("company", pa.dictionary(pa.int32(), pa.string())),
        ("status", pa.dictionary(pa.int32(), pa.string())),
        ("id", pa.string()),
    ]
)

CALLS = pa.schema(
    [
        ("time", pa.timestamp("ms", tz="UTC")),
        ("company", pa.dictionary(pa.int32(), pa.string())),
        ("mode", pa.dictionary(pa.int32(), pa.string())),
        ("rows", pa.int32()),
        ("bytes", pa.int64()),
        ("status", pa.int32()),
        ("attempt", pa.int32()),
        ("ms", pa.float64()),
        ("note", pa.string()),
    ]
)


class TableWriter:
    """Writes rows to a Parquet file by groups; whole only after `close`, under its own name only then."""

    def __init__(self, path: Path, schema: Any) -> None:
        """Open the file beside its final name."""
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._schema = schema
        self._columns: list[list[Any]] = [[] for _ in schema]
        self._writer = self._guard(pq.ParquetWriter, self._part, schema, compression="zstd")

    def add(self, values: Sequence[Any]) -> None:
        """Append one row."""
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        if len(self._columns[0]) >= GROUP_ROWS:
            self._flush()

    def extend(self, columns: Sequence[Sequence[Any]]) -> None:
        """Append rows, column by column."""
        for column, values in zip(self._columns, columns, strict=True):
            column.extend(values)
        if len(self._columns[0]) >= GROUP_ROWS:
            self._flush()

    def write(self, table: Any) -> None:
        """Append a table that has the file's schema."""
        if table.num_rows:
            self._guard(self._writer.write_table, table)

    def close(self) -> None:
        """Finish the file and give it its name."""
        self._flush()
        self._guard(self._writer.close)
        self._guard(os.replace, self._part, self._path)

    def __enter__(self) -> Self:
        """Use as a context: closed when it ends well."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        """Finish the file, unless something went wrong."""
        if kind is None:
            self.close()

    def _flush(self) -> None:
        if not self._columns[0]:
            return
        arrays = [pa.array(values, kind.type) for values, kind in zip(self._columns, self._schema, strict=True)]
        self._columns = [[] for _ in self._schema]
        self.write(pa.Table.from_arrays(arrays, schema=self._schema))

    def _guard(self, action: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return action(*arguments, **named)
        except OSError as error:
            # half a file is of no use, and where the disk is full its room is
            with contextlib.suppress(OSError):
                self._part.unlink(missing_ok=True)
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            message = f"{self._path}: cannot be written: {reason}"
            raise RunFolderError(message) from error
