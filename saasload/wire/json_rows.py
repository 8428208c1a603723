"""Rows as JSON objects: shared by all formats that carry JSON."""

from collections.abc import Mapping
from typing import Any, Literal

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from saasload.profile import FieldSpec
from saasload.wire.joined import joined, where_all
from saasload.wire.values import Column, Table

DecimalStyle = Literal["string", "number"]

# RFC 8259 section 7; other control characters are in no value that is sent. The backslash comes first, for the
# others bring one along.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def json_rows(table: Table, fields: Mapping[str, FieldSpec], decimals: DecimalStyle) -> Any:
    """Write each row as a JSON object of its present fields; an absent one is left out, never null.

    Returns an Arrow array of texts.
    """
    rows = len(table.rows)
    columns = [column for column in table.columns if column.array.null_count < rows]
    if not columns:
        return joined(["{}"], rows)
    members: list[Any] = []
    for column in columns:
        member = [f",{orjson.dumps(column.name).decode()}:", *_value(column, fields[column.name], decimals)]
        members += [where_all(member)] if column.absent else member
    if not columns[0].absent:
        return joined(["{" + members[0][1:], *members[1:], "}"], rows)
    # Whichever member turns out to be a row's first, the comma before it is no member's.
    return joined(["{", pc.utf8_slice_codeunits(joined(members, rows), 1), "}"], rows)


def _value(column: Column, spec: FieldSpec, decimals: DecimalStyle) -> list[Any]:
    texts = column.array if column.texts else pc.cast(column.array, pa.string())
    if spec.pad_left is not None:
        texts = pc.utf8_lpad(texts, spec.pad_left, " ")
    elif not column.texts or (spec.type == "decimal" and decimals == "number"):
        # The digits go out as they are: a float in between would change them.
        return [texts]
    for sign, escape in _ESCAPES.items():
        if sign.encode() in column.signs:
            texts = pc.replace_substring(texts, sign, escape)
    return ['"', texts, 'T00:00:00"' if spec.type == "date" and spec.pad_left is None else '"']
