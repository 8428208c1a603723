"""One company's rows, from the spool to calls, as often as they are needed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from saasload.model import ROW_COLUMN, Call, Company, Outcomes, RowStatus
from saasload.prepare import Prepared
from saasload.source.spool import Spool
from saasload.wire.cut import cut
from saasload.wire.render import render, tables
from saasload.wire.values import Plain

MOST_ROWS, FEWEST_ROWS, HELD_ROWS = 1_000, 50, 50_000
"""Rows encoded at once: with few, Arrow's own start for each column shows, and what is encoded is held until it is
sent, in every lane. So they are fewer where there are many lanes: no more than HELD_ROWS in all."""


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """Cuts a company's spooled rows into calls; `statuses` tells which rows have an outcome already.

    `lanes` is how many companies do so beside each other.
    """

    prepared: Prepared
    spool: Spool
    company: Company
    statuses: bytearray
    lanes: int = 1

    @property
    def chunk_rows(self) -> int:
        """How many rows are encoded at once."""
        return min(MOST_ROWS, max(FEWEST_ROWS, HELD_ROWS // self.lanes))

    def fresh(self) -> Iterator[Call | Outcomes]:
        """Cut the rows that have no outcome yet into calls."""
        return self._calls(self._unsettled())

    def again(self, rows: set[int]) -> Iterator[Call | Outcomes]:
        """Cut some of the rows into calls once more."""
        return self._calls(self._chosen(rows))

    def sent(self, rows: set[int]) -> Mapping[int, tuple[str, Mapping[str, Plain]]]:
        """Tell what is sent for some rows: the natural key, and the value of each field."""
        key = self.prepared.entity.key
        found = {}
        for table in tables(self._chosen(rows), self.prepared.fields, self.chunk_rows):
            names = [column.name for column in table.columns]
            for row, values in zip(table.rows, zip(*(c.values for c in table.columns), strict=True), strict=True):
                sent = dict(zip(names, values, strict=True))
                found[row] = ("" if sent.get(key) is None else str(sent[key]), sent)
        return found

    def taken(self, keys: set[str]) -> set[str]:
        """Tell which of the keys accepted rows of the company have."""
        return keys.intersection(key for _, key in self.keys(self.accepted()))

    def replaced(self, rows: set[int]) -> set[int]:
        """Tell which of the rows have the key of a newer row that was accepted."""
        oldest = min(rows)
        newest: dict[str, int] = {}
        for row, key in self.keys({row for row in self.accepted() if row > oldest}):
            newest[key.strip()] = max(row, newest.get(key.strip(), 0))
        return {row for row, key in self.keys(rows) if newest.get(key.strip(), 0) > row} if newest else set()

    def all(self) -> list[int]:
        """List all row numbers."""
        batches = self.spool.company_batches(self.company)
        return [row for batch in batches for row in batch.column(ROW_COLUMN).to_pylist()]

    def accepted(self) -> set[int]:
        """Tell which rows the target holds, or held until a newer one of their key came."""
        return {row for row in self.all() if RowStatus.CREATED <= self.statuses[row] <= RowStatus.UNCHANGED}

    def keys(self, rows: set[int]) -> Iterator[tuple[int, str]]:
        """Tell the natural key of some rows, in their order; rows without one are left out."""
        key = self.prepared.entity.key
        if key not in self.prepared.fields or not rows:
            return
        for table in tables(self._chosen(rows), {key: self.prepared.fields[key]}, self.chunk_rows):
            for column in table.columns:
                for row, value in zip(table.rows, column.values, strict=True):
                    if value is not None and str(value):
                        yield row, str(value)

    def in_doubt(self) -> list[int]:
        """List the rows that are in doubt now."""
        return [row for row in self.all() if self.statuses[row] == RowStatus.IN_DOUBT]

    def _calls(self, batches: Iterator[Any]) -> Iterator[Call | Outcomes]:
        wire, key = self.prepared.wire, self.prepared.entity.key
        chunk_rows = max(self.chunk_rows, wire.max_rows)
        fragments = render(batches, self.company, wire, self.prepared.fields, key=key, chunk_rows=chunk_rows)
        return cut(
            fragments, self.company, max_rows=wire.max_rows, max_bytes=wire.max_bytes, overhead=wire.overhead
        )  # fmt: skip

    def _unsettled(self) -> Iterator[Any]:
        statuses = self.statuses
        for batch in self.spool.company_batches(self.company):
            rows = batch.column(ROW_COLUMN).to_pylist()
            places = [place for place, row in enumerate(rows) if not statuses[row]]
            if len(places) == len(rows):
                yield batch
            elif places:
                yield batch.take(pa.array(places, pa.int64()))

    def _chosen(self, wanted: set[int]) -> Iterator[Any]:
        left = len(wanted)
        for batch in self.spool.company_batches(self.company):
            if not left:
                return
            rows = batch.column(ROW_COLUMN).to_pylist()
            places = [place for place, row in enumerate(rows) if row in wanted]
            left -= len(places)
            if places:
                yield batch.take(pa.array(places, pa.int64()))
