"""What every reader of a source gives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from saasload.errors import UsageError
from saasload.model import ROW_COLUMN

BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Some rows of the source, next to each other.

    `batch` is a `pyarrow.RecordBatch`; its first row has number `first_row`, the others follow on.
    `problems` has the rows that could not be read, by row number, and why; such a row is in the batch too, all null,
    so that it keeps its number and ends as a rejected row.
    """

    batch: Any
    first_row: int
    problems: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the rows."""
        return int(self.batch.num_rows)


class Source(Protocol):
    """A file of rows, numbered from 1 for life."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def format(self) -> str:
        """How it is written: "parquet" or "csv"."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns, in order."""

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of every batch."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, None where only reading tells."""

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[SourceBatch]:
        """Yield all rows from the first, at most `rows` at a time; each call reads the file again."""


def check_columns(path: Path, names: Sequence[str]) -> None:
    """Refuse names that cannot be told apart, even by someone who does not see case or spaces.

    >>> check_columns(Path("people.csv"), ["id", "Name", "name "])
    Traceback (most recent call last):
      ...
    saasload.errors.UsageError: people.csv: columns 2 and 3 are both called 'Name' (case and spaces do not count); \
rename one
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        plain = name.strip().casefold()
        if not plain:
            message = f"{path.name}: column {place} has no name; name it or remove it (does each line end in a comma?)"
            raise UsageError(message)
        if plain == ROW_COLUMN:
            message = f"{path.name}: column {place} is called {ROW_COLUMN!r}, which saasload uses itself; rename it"
            raise UsageError(message)
        if plain in seen:
            first = seen[plain]
            message = (
                f"{path.name}: columns {first} and {place} are both called {names[first - 1]!r} "
                "(case and spaces do not count); rename one"
            )
            raise UsageError(message)
        seen[plain] = place
