"""Rows as JSON and as XML against the plain way to write them, one row at a time."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from saasload.model import Company
from saasload.profile import FieldSpec
from saasload.wire.joined import bodies, joined, where_all
from saasload.wire.json_rows import DecimalStyle, json_rows
from saasload.wire.values import FORBIDDEN, signs_in, tabulate

from .making import make_wire, profile

FIELDS = {
    "First": FieldSpec(),
    "Second": FieldSpec(pad_left=4),
    "Active": FieldSpec(type="bool"),
    "Count": FieldSpec(type="integer"),
    "Amount": FieldSpec(type="decimal"),
}
SCHEMA = pa.schema({
    "First": pa.string(), "Second": pa.string(), "Active": pa.bool_(), "Count": pa.int64(),
    "Amount": pa.decimal128(9, 2),
})  # fmt: skip
texts = st.text(max_size=5).filter(lambda text: not FORBIDDEN.search(text))
optional = st.none() | texts
rows = st.lists(
    st.fixed_dictionaries({
        "First": optional, "Second": optional, "Active": st.none() | st.booleans(),
        "Count": st.none() | st.integers(0, 9),
        "Amount": st.none() | st.decimals(-9, 9, places=2),
    }),
    min_size=1,
    max_size=4,
)  # fmt: skip


def plain(row: Mapping[str, object], decimals: DecimalStyle) -> dict[str, object]:
    """Say what a row's JSON holds."""
    present = {name: value for name, value in row.items() if value is not None}
    if "Second" in present:
        present["Second"] = str(present["Second"]).rjust(4)
    if "Amount" in present and decimals == "string":
        present["Amount"] = str(present["Amount"])
    return present


@pytest.mark.parametrize("decimals", ["string", "number"])
@given(made=rows, skipped=st.integers(0, 3))
def test_an_object_has_the_fields_that_are_present(
    decimals: DecimalStyle, made: Sequence[Mapping[str, object]], skipped: int
) -> None:
    """Whichever are absent, the first too; also of rows that are a slice of more."""
    more = [{"First": '"\\&', "Count": 1}] * skipped + list(made)
    batch = pa.RecordBatch.from_pylist(more, schema=SCHEMA).slice(skipped)
    table = tabulate(batch, range(len(made)), {name: (name, spec) for name, spec in FIELDS.items()})

    written = bodies(json_rows(table, FIELDS, decimals))

    assert [json.loads(body, parse_float=Decimal) for body in written] == [plain(row, decimals) for row in made]


@given(st.lists(st.tuples(optional, optional, optional, optional), min_size=1, max_size=4))
def test_an_element_has_what_is_present(made: Sequence[tuple[str | None, ...]]) -> None:
    """An absent or empty field is no element, and an element with nothing in it is none either."""
    names = ["Name", "Status", "Street", "Country"]
    wire, fields = make_wire("xml"), profile().entity("Account").fields
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(names, row, strict=True)) for row in made], schema=pa.schema(dict.fromkeys(names, pa.string()))
    )
    table = tabulate(batch, range(len(made)), {name: (name, fields[name]) for name in names})

    for body, (name, status, street, country) in zip(wire.encode(table, Company("1001")), made, strict=True):
        account = etree.fromstring(body)
        assert account.get("status", "") == (status or "")
        assert account.findtext("Name", "") == (name or "")
        assert account.findtext("Address/AddressLine1", "") == (street or "")
        assert (account.find("Address/Country") is None) == (not country)
        assert (account.find("Address") is None) == (not country and not street)


@given(st.lists(optional), st.integers(0, 3))
def test_signs_are_those_of_the_slice(made: Sequence[str | None], start: int) -> None:
    """Neither more nor less than what stands in the texts that are meant."""
    array = pa.array(made, pa.string())[start:]
    there = "".join(text or "" for text in made[start:]).encode()

    assert set(signs_in(array)) == {byte for byte in there if byte < 0x20 or byte in b'"&<>\\\xef'}


def test_parts_are_joined_row_by_row() -> None:
    """A null adds nothing, or takes the row with it."""
    array = pa.array(["a", None])

    assert joined(["<", "b", array, ">"], 2).to_pylist() == ["<ba>", "<b>"]
    assert where_all(["<", array, ">"]).to_pylist() == ["<a>", None]
    assert bodies(joined(["é"], 2)) == ["é".encode()] * 2
