"""Write a run's row files: what was rejected, what is in doubt, what was not sent, with the source's columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from saasload.model import ROW_COLUMN, Company, Note, RowStatus
from saasload.run.book import Book
from saasload.run.tables import TableWriter
from saasload.source.spool import Spool

_UNSENT = 0
FILES: Mapping[int, str] = {
    RowStatus.REJECTED: "rejected.parquet",
    RowStatus.IN_DOUBT: "in_doubt.parquet",
    _UNSENT: "unsent.parquet",
}

_OURS = (
    ("row", pa.int64()),
    ("field", pa.string()),
    ("reason", pa.string()),
    ("status", pa.int32()),
    ("message", pa.string()),
)


@dataclass(slots=True)
class _Columns:
    """The names our columns take beside the source's: with a prefix where the source has that name already."""

    schema: Any

    @classmethod
    def beside(cls, source: Any) -> "_Columns":
        taken = {name.casefold() for name in source.names}
        ours = [pa.field(f"saasload_{name}" if name in taken else name, kind) for name, kind in _OURS]
        return cls(pa.schema([field for field in source if field.name != ROW_COLUMN] + ours))


def write_row_files(folder: Path, spool: Spool, book: Book) -> None:
    """Write one file for each outcome that is not acceptance; each row of the source stands in one of them at most."""
    columns = _Columns.beside(spool.schema)
    writers = {status: TableWriter(folder / name, columns.schema) for status, name in FILES.items()}
    if sum(count for status, count in book.counts.items() if status.accepted) < spool.index.rows:
        for batch, company in _all_batches(spool):
            _sort_out(batch, book, writers, columns.schema, book.why_unsent(company))
    for writer in writers.values():
        writer.close()


def _all_batches(spool: Spool) -> Iterator[tuple[Any, Company]]:
    for reason in spool.index.refused:
        for batch, _ in spool.refused_batches(reason):
            yield batch, Company("")
    for company in spool.index.companies:
        for batch in spool.company_batches(company):
            yield batch, Company(company)


def _sort_out(batch: Any, book: Book, writers: Mapping[int, TableWriter], schema: Any, unsent: Note) -> None:
    rows = batch.column(ROW_COLUMN).to_pylist()
    statuses = [book.statuses[row] for row in rows]
    for status, writer in writers.items():
        places = [place for place, found in enumerate(statuses) if found == status]
        if not places:
            continue
        notes = [book.notes.get(rows[place]) or (unsent if status == _UNSENT else Note("")) for place in places]
        kept = batch.take(pa.array(places, pa.int64())).drop_columns([ROW_COLUMN])
        ours = [
            [rows[place] for place in places],
            [note.field for note in notes],
            [note.reason for note in notes],
            [note.http_status for note in notes],
            [note.message for note in notes],
        ]
        arrays = [pa.array(values, kind) for values, (_, kind) in zip(ours, _OURS, strict=True)]
        writer.write(pa.Table.from_arrays([*kept.columns, *arrays], schema=schema))
