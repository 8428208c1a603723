"""A finished run's calls as columns of numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saasload.errors import UsageError
from saasload.experiments.fit import Floats

Words = NDArray[np.str_]
Ints = NDArray[np.int64]

_COLUMNS = ("time", "company", "mode", "rows", "status", "ms")


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls side by side, in the order they began; times in seconds of the target's time, from the first call on.

    `epoch_s` is the wall time of that first call.
    """

    company: Words
    mode: Words
    rows: Ints
    status: Ints
    begin: Floats
    end: Floats
    epoch_s: float

    def __len__(self) -> int:
        """Count them."""
        return len(self.begin)

    def where(self, mask: NDArray[np.bool_]) -> "Calls":
        """Keep some."""
        return Calls(
            self.company[mask], self.mode[mask], self.rows[mask], self.status[mask], self.begin[mask], self.end[mask],
            self.epoch_s,
        )  # fmt: skip

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which were accepted."""
        return (self.status >= 200) & (self.status < 300)


def read_calls(folder: Path) -> Calls:
    """Read `calls.parquet` of a run; UsageError where there is none, or none that can be read."""
    path = folder / "calls.parquet"
    try:
        table = pq.read_table(path, columns=list(_COLUMNS))
    except FileNotFoundError as error:
        message = f"{folder}: no calls.parquet there; name the folder of a run that has finished"
        raise UsageError(message) from error
    except (OSError, pa.ArrowException) as error:
        message = f"{path}: cannot be read as the calls of a run: {' '.join(str(error).split())}"
        raise UsageError(message) from error
    return calls_of(table)


def calls_of(table: Any) -> Calls:
    """Make columns of a table of calls."""
    begin = np.asarray(table.column("time").cast(pa.int64()).to_numpy(), dtype=np.float64) / 1000.0
    lasted = np.asarray(table.column("ms").to_numpy(), dtype=np.float64) / 1000.0
    first = float(begin.min()) if len(begin) else 0.0
    begin = begin - first
    # what began in the same millisecond is put in the order it was answered: so a fair target served it
    order = np.lexsort((begin + lasted, begin))

    def words(name: str) -> Words:
        column = table.column(name).cast(pa.string()).to_pylist()
        return np.array(["" if word is None else word for word in column], dtype=np.str_)[order]

    def whole(name: str) -> Ints:
        return np.asarray(table.column(name).fill_null(0).to_numpy(), dtype=np.int64)[order]

    return Calls(
        words("company"), words("mode"), whole("rows"), whole("status"), begin[order], (begin + lasted)[order], first
    )
