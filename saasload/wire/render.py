"""Render batches of source rows as fragments of one entity."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from saasload.model import ROW_COLUMN, Company, Fragments, Note, Outcomes, RowStatus
from saasload.profile import FieldSpec
from saasload.wire.base import WireFormat
from saasload.wire.values import Table, tabulate

Fields = Mapping[str, tuple[str, FieldSpec]]
"""By the entity's field: the source column it comes from, and what it takes."""


def render(
    batches: Iterable[Any],
    company: Company,
    wire: WireFormat,
    fields: Fields,
    *,
    key: str,
    chunk_rows: int,
) -> Iterator[Fragments | Outcomes]:
    """Encode rows in chunks; a row that cannot be encoded comes out as a rejected outcome.

    `key` names the entity's natural key.
    """
    for table in tables(batches, fields, chunk_rows):
        keys = _keys(table, key)
        problems = _problems(table, keys, key, needed=wire.needs_key)
        if problems:
            yield _rejected(table.rows, problems)
        fragments = Fragments(table.rows, wire.encode(table, company), keys)
        yield _without(fragments, problems) if problems else fragments


def tables(batches: Iterable[Any], fields: Fields, chunk_rows: int) -> Iterator[Table]:
    """Convert batches of source rows to the entity's fields, some rows at a time."""
    for batch in batches:
        for start in range(0, batch.num_rows, chunk_rows):
            chunk = batch.slice(start, chunk_rows)
            yield tabulate(chunk, chunk.column(ROW_COLUMN).to_pylist(), fields)


def _keys(table: Table, key: str) -> Sequence[str]:
    column = table.column(key)
    if column is None:
        return [""] * len(table.rows)
    if column.absent or not column.texts:
        return ["" if value is None else str(value) for value in column.values]
    return column.values  # type: ignore[return-value] # a text column without absent values holds texts only


def _problems(table: Table, keys: Sequence[str], key: str, *, needed: bool) -> Mapping[int, Note]:
    if not needed or all(map(str.strip, keys)):
        return table.problems
    missing = Note("no-key", f"{key} is needed to match the answer to the row", key)
    return {**{place: missing for place, value in enumerate(keys) if not value.strip()}, **table.problems}


def _rejected(rows: Sequence[int], problems: Mapping[int, Note]) -> Outcomes:
    bad = [rows[place] for place in problems]
    notes = {rows[place]: note for place, note in problems.items()}
    return Outcomes(bad, [RowStatus.REJECTED] * len(bad), [""] * len(bad), notes)


def _without(fragments: Fragments, problems: Mapping[int, Note]) -> Fragments:
    kept = [place for place in range(len(fragments)) if place not in problems]
    return Fragments(
        [fragments.rows[place] for place in kept],
        [fragments.bodies[place] for place in kept],
        [fragments.keys[place] for place in kept],
    )
