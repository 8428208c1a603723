"""Open a source, whatever its format."""

from pathlib import Path

from saasload.errors import UsageError
from saasload.source.base import BATCH_ROWS, Source, SourceBatch
from saasload.source.csv_file import CsvSource
from saasload.source.parquet_file import ParquetSource

__all__ = ["BATCH_ROWS", "Source", "SourceBatch", "open_source"]

_FORMATS = ("parquet", "csv")
_CSV_SUFFIXES = (".csv", ".txt")
_PARQUET_SUFFIXES = (".parquet", ".pq")
_PARQUET_MAGIC = b"PAR1"

# What people hand over by mistake: the first bytes, what that is, what to do.
_FOREIGN = (
    (b"PARE", "an encrypted Parquet file", "decrypt it first"),
    (b"\x1f\x8b", "a gzip file", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it first"),
    (b"PK\x03\x04", "a zip file or a spreadsheet", "unpack it, or save the sheet as CSV UTF-8"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"ARROW1", "an Arrow file", "write it as Parquet"),
    (b"ORC", "an ORC file", "write it as Parquet"),
    (b"SQLite format 3", "an SQLite database", "export the table as CSV"),
)


def open_source(path: Path, *, format: str | None = None) -> Source:  # noqa: A002 - the word people know it by
    """Open a Parquet or CSV file.

    `format` is "parquet" or "csv"; without it the file's first bytes tell, then its suffix.
    A file that cannot be loaded at all is a `UsageError` with what to do next; rows that cannot be read come as
    problems in the batches. A file with a header and no rows is fine.
    """
    if format is not None and format not in _FORMATS:
        message = f"{path.name}: unknown format {format!r}; use parquet or csv"
        raise UsageError(message)
    head = _first_bytes(path)
    if (format or _guess(path, head)) == "csv":
        return CsvSource(path)
    if not head.startswith(_PARQUET_MAGIC):
        _refuse_foreign(path, head)
        message = f"{path.name}: not a Parquet file, whatever its name says; if it holds commas, add --format csv"
        raise UsageError(message)
    return ParquetSource(path)


def _first_bytes(path: Path) -> bytes:
    """Read enough to tell formats apart."""
    try:
        if path.is_dir():
            message = f"{path.name or path}: a folder, not a file; name one Parquet or CSV file in it"
            raise UsageError(message)
        if path.exists() and not path.is_file():
            message = f"{path.name}: not a plain file; save the rows to a file first"
            raise UsageError(message)
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError as error:
        message = f"{path}: no such file; check the path"
        raise UsageError(message) from error
    except (OSError, ValueError) as error:
        message = f"{path.name}: cannot be read: {getattr(error, 'strerror', None) or error}"
        raise UsageError(message) from error
    if not head:
        message = f"{path.name}: empty, 0 bytes; write it again"
        raise UsageError(message)
    return head


def _guess(path: Path, head: bytes) -> str:
    """Tell the format by the first bytes, then by the suffix."""
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    suffix = path.suffix.lower()
    if suffix in _PARQUET_SUFFIXES:
        return "parquet"
    _refuse_foreign(path, head)
    if suffix in _CSV_SUFFIXES:
        return "csv"
    what = suffix or "(no suffix)"
    message = f"{path.name}: unknown format {what}; saasload reads .parquet and .csv, or add --format csv"
    raise UsageError(message)


def _refuse_foreign(path: Path, head: bytes) -> None:
    """Say what the file is, if it is something known and useless here."""
    for magic, what, advice in _FOREIGN:
        if head.startswith(magic):
            message = f"{path.name}: {what}; {advice}"
            raise UsageError(message)
