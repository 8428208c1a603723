"""An entity that uses every type, and calls of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from saasload.model import ROW_COLUMN, Call, Company, Fragments, Outcomes, Reply
from saasload.profile import (
    Answers,
    BatchSpec,
    BusinessError,
    CompaniesSpec,
    EntitySpec,
    FieldSpec,
    InsertSpec,
    Mode,
    PlatformProfile,
    XmlSpec,
)
from saasload.wire import WireFormat, wire_format
from saasload.wire.cut import cut
from saasload.wire.render import render

COMPANY = Company("1001")
MODES: tuple[Mode, ...] = ("insert", "batch", "xml")

FIELDS = {
    "Code": FieldSpec(pad_left=8, xml="@code"),
    "Status": FieldSpec(xml="@status"),
    "Name": FieldSpec(xml="Name"),
    "Language": FieldSpec(xml="Language/@code"),
    "Street": FieldSpec(xml="Address/AddressLine1"),
    "Country": FieldSpec(xml="Address/Country/@code"),
    "Amount": FieldSpec(type="decimal", xml="CreditLine/Sales"),
    "Count": FieldSpec(type="integer", xml="Count"),
    "Flag": FieldSpec(type="bool", xml="Flag"),
    "Day": FieldSpec(type="date", xml="Day"),
    "Moment": FieldSpec(type="datetime", xml="Moment"),
    "Hidden": FieldSpec(),
}

ANSWERS = Answers(
    business_errors=(BusinessError(text="already exists", reason="duplicate"),),
    created=("Created",),
    updated=("Updated",),
    unchanged=("Unchanged",),
)


def profile(
    *,
    change_set: Literal["row", "call"] = "row",
    json_decimal: Literal["string", "number"] = "string",
    max_rows: int = 100,
    max_bytes: int = 100_000,
) -> PlatformProfile:
    """Make a profile of one entity that can travel in every mode."""
    entity = EntitySpec(
        modes=MODES,
        key="Code",
        fields=FIELDS,
        insert=InsertSpec(path="/v1/{company}/Accounts", max_bytes=max_bytes),
        batch=BatchSpec(
            path="/v1/{company}/$batch",
            part_path="/v1/{company}/Accounts",
            max_rows=max_rows,
            max_bytes=max_bytes,
            change_set=change_set,
        ),
        xml=XmlSpec(
            path="/upload?Topic=Accounts&_Division_={company}",
            root="eExact",
            schema_location="eExact-XML.xsd",
            topic="Accounts",
            element="Account",
            max_rows=max_rows,
            max_bytes=max_bytes,
            attributes={"Address": {"type": "VIS"}},
        ),
    )
    return PlatformProfile(
        name="test",
        json_decimal=json_decimal,
        companies=CompaniesSpec(path="/companies"),
        answers=ANSWERS,
        entities={"Account": entity},
    )


def make_wire(mode: Mode, made: PlatformProfile | None = None) -> WireFormat:
    """Make the format of a mode."""
    made = made or profile()
    return wire_format(made, made.entity("Account"), mode)


def rendered(
    wire: WireFormat, columns: Mapping[str, Any], *, company: Company = COMPANY, first: int = 1
) -> list[Fragments | Outcomes]:
    """Encode columns of rows, numbered from `first`."""
    arrays = {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    count = len(next(iter(arrays.values())))
    batch = pa.record_batch({ROW_COLUMN: pa.array(range(first, first + count)), **arrays})
    fields = {name: (name, FIELDS[name]) for name in arrays}
    return list(render([batch], company, wire, fields, key="Code", chunk_rows=3))


def calls_of(
    wire: WireFormat, columns: Mapping[str, Any], *, company: Company = COMPANY, first: int = 1
) -> tuple[list[Call], list[Outcomes]]:
    """Go the whole way from columns to calls; outcomes of rows refused here come beside them."""
    stream = rendered(wire, columns, company=company, first=first)
    items = list(cut(stream, company, max_rows=wire.max_rows, max_bytes=wire.max_bytes, overhead=wire.overhead))
    return [item for item in items if isinstance(item, Call)], [item for item in items if isinstance(item, Outcomes)]


def make_call(rows: Sequence[int], keys: Sequence[str] | None = None) -> Call:
    """Make a call of rows whose bytes do not matter."""
    bodies = [b"x"] * len(rows)
    return Call(COMPANY, Fragments(rows, bodies, keys or [f"K{row}" for row in rows]), len(rows))


def make_reply(body: bytes, content_type: str = "", status: int = 200) -> Reply:
    """Make a reply with nothing but a content type."""
    return Reply(status, {"content-type": content_type}, body)
