"""Rows as JSON objects: shared by all formats that carry JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson

from saasload.profile import FieldSpec
from saasload.wire.values import Column, Table

DecimalStyle = Literal["string", "number"]


def json_rows(table: Table, fields: Mapping[str, FieldSpec], decimals: DecimalStyle) -> list[bytes]:
    """Encode each row as a JSON object of its present fields; an absent one is left out, never null."""
    columns = [column for column in table.columns if any(value is not None for value in column.values)]
    if not columns:
        return [b"{}"] * len(table.rows)
    names = [column.name for column in columns]
    values = [_json_values(column, fields[column.name], decimals) for column in columns]
    dumps = orjson.dumps
    entities = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    for column in columns:
        if column.absent:
            for value, entity in zip(column.values, entities, strict=True):
                if value is None:
                    del entity[column.name]
    return [dumps(entity) for entity in entities]


def _json_values(column: Column, spec: FieldSpec, decimals: DecimalStyle) -> Sequence[Any]:
    values = column.values
    if spec.pad_left is not None:
        width = spec.pad_left
        return [None if value is None else str(value).rjust(width) for value in values]
    if spec.type == "decimal" and decimals == "number":
        # The digits go out as they are: a float in between would change them.
        return [None if value is None else orjson.Fragment(str(value)) for value in values]
    if spec.type == "date":
        return [None if value is None else f"{value}T00:00:00" for value in values]
    return values
