"""Read a Parquet file, a little at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from saasload.errors import UsageError
from saasload.source.base import BATCH_ROWS, SourceBatch, check_columns

# Measured: 134 MB at the peak instead of 415 MB with pyarrow's defaults, and faster.
_BUFFER_BYTES = 1 << 20
# Rows of a megabyte exist; a batch of them must fit in memory too.
_BATCH_BYTES = 16 << 20


class ParquetSource:
    """A Parquet file of rows.

    Columns come as they are, except that dictionary and view types become the plain types they stand for.
    """

    format = "parquet"

    def __init__(self, path: Path) -> None:
        """Read the footer."""
        self.path = path
        file = self._open()
        try:
            metadata = file.metadata
            stored = file.schema_arrow
        finally:
            file.close()
        check_columns(path, stored.names)
        self.rows: int | None = metadata.num_rows
        self.schema: Any = pa.schema([field.with_type(plain_type(field.type)) for field in stored])
        bytes_stored = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
        self._row_bytes = max(1, bytes_stored // max(1, metadata.num_rows))

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns, in order."""
        return tuple(self.schema.names)

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[SourceBatch]:
        """Yield all rows from the first, at most `rows` at a time."""
        number = 1
        size = max(1, min(rows, _BATCH_BYTES // self._row_bytes))
        file = self._open()
        try:
            for batch in file.iter_batches(batch_size=size, use_threads=False):
                yield SourceBatch(plain_batch(batch, self.schema), number)
                number += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            message = f"{self.path.name}: damaged after row {number - 1:,}: {_first_line(error)}; write it again"
            raise UsageError(message) from error
        finally:
            file.close()

    def _open(self) -> Any:
        """Open the file, or say why it is no use."""
        try:
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER_BYTES)
        except (pa.ArrowException, OSError) as error:
            message = f"{self.path.name}: a Parquet file that is cut short or damaged; write or copy it again"
            raise UsageError(message) from error


def _first_line(error: Exception) -> str:
    """Keep the message to one line."""
    return str(error).strip().split("\n", 1)[0].rstrip(".")


def plain_type(kind: Any) -> Any:  # noqa: PLR0911 - one line a kind of type
    """Return the type without dictionaries and views.

    Slices of a view array drag the whole array into every batch written; dictionaries differ from batch to batch,
    which an Arrow file does not allow.

    >>> str(plain_type(pa.dictionary(pa.int8(), pa.string())))
    'string'
    """
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)), kind.list_size)
    return kind


def plain_batch(batch: Any, schema: Any) -> Any:
    """Return the batch in the plain types of `schema`."""
    if batch.schema.equals(schema):
        return batch
    columns = [_plain(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(array: Any, kind: Any) -> Any:
    """Return the array in a plain type."""
    if "list_view" in str(array.type):
        # pyarrow's cast from a list view that ends in a null forgets the last offset
        return pa.array(array.to_pylist(), kind)
    return array.cast(kind)
