"""Requests, as other people's parsers read them."""

import email.parser
import email.policy
import json
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from saasload.model import Call, Company, Fragments
from saasload.profile import Mode
from saasload.wire import FORMATS
from saasload.wire.values import FORBIDDEN

from .making import COMPANY, MODES, calls_of, make_wire, profile, rendered

# What XML 1.0 allows (section 2.2), line ends and tabs with it; rows with anything else are refused here.
allowed = st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
    lambda sign: not FORBIDDEN.match(sign)
)
tricky = st.sampled_from(
    ["\r\n", "\t", "]]>", "&amp;", '"', "'", "<a>", "--batch_saasload", "\x85", "\u2028", "😀", "\x7f"]
)
texts = st.one_of(st.text(allowed, max_size=12), st.lists(tricky, max_size=4).map("".join))
codes = st.text("A0é ", min_size=1, max_size=6).filter(str.strip)
rows = st.lists(
    st.fixed_dictionaries({"Code": codes, "Name": texts, "Status": texts, "Street": texts, "Country": texts}),
    min_size=1,
    max_size=7,
)


def columns(made: list[dict[str, str]]) -> dict[str, Any]:
    """Turn rows into columns."""
    return {name: pa.array([row[name] for row in made], pa.string()) for name in made[0]}


def parts_of(content_type: str, body: bytes) -> list[Any]:
    """Let the standard library read a multipart body; the parts of the nested change sets, in their order."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    assert not message.defects
    sets = list(message.iter_parts())
    assert all(one.get_content_type() == "multipart/mixed" and not one.defects for one in sets)
    return [part for one in sets for part in one.iter_parts()]


def test_every_format_is_tried_here() -> None:
    """A format that is added gets these properties too."""
    assert set(MODES) == set(FORMATS)


@pytest.mark.parametrize("change_set", ["row", "call"])
@pytest.mark.parametrize("mode", MODES)
@given(made=rows, max_rows=st.integers(1, 5))
def test_the_size_of_a_call_is_the_length_of_its_body(
    mode: Mode, change_set: Literal["row", "call"], made: list[dict[str, str]], max_rows: int
) -> None:
    """What is promised before sending is what is sent, to the byte, in all formats."""
    wire = make_wire(mode, profile(change_set=change_set, max_rows=max_rows))
    calls, refused = calls_of(wire, columns(made))

    assert not refused
    assert [row for call in calls for row in call.rows] == list(range(1, len(made) + 1))
    for call in calls:
        assert len(wire.request(call).body) == call.size


@pytest.mark.parametrize("change_set", ["row", "call"])
@given(made=rows, first=st.integers(1, 10**12))
def test_the_parts_of_a_batch_are_its_rows_to_the_email_parser(
    change_set: Literal["row", "call"], made: list[dict[str, str]], first: int
) -> None:
    """Content-ID is the row, Content-Length counts bytes, the JSON holds the same code points."""
    wire = make_wire("batch", profile(change_set=change_set))
    (call,), _ = calls_of(wire, columns(made), first=first)
    request = wire.request(call)
    parts = parts_of(request.headers["Content-Type"], request.body)

    assert [int(part["Content-ID"]) for part in parts] == list(call.rows) == list(range(first, first + len(made)))
    for part, row in zip(parts, made, strict=True):
        assert part.get_content_type() == "application/http"
        assert part["Content-Transfer-Encoding"] == "binary"
        head, _, body = part.get_payload(decode=True).partition(b"\r\n\r\n")
        line, *headers = head.decode().split("\r\n")
        assert line == "POST /v1/1001/Accounts HTTP/1.1"
        assert f"Content-Length: {len(body)}" in headers
        assert json.loads(body) == row | {"Code": row["Code"].rjust(8)}


@given(rows)
def test_an_xml_request_gives_back_the_same_text(made: list[dict[str, str]]) -> None:
    """Code point for code point, line ends and tabs in attributes too."""
    wire = make_wire("xml")
    (call,), _ = calls_of(wire, columns(made))
    root = etree.fromstring(wire.request(call).body)

    assert (root.tag, [child.tag for child in root]) == ("eExact", ["Accounts"])
    accounts = root[0]
    assert len(accounts) == len(made)
    for account, row in zip(accounts, made, strict=True):
        assert account.get("code", "") == row["Code"]
        assert account.get("status", "") == row["Status"]
        assert account.findtext("Name", "") == row["Name"]
        assert account.findtext("Address/AddressLine1", "") == row["Street"]
        country = account.find("Address/Country")
        assert ("" if country is None else country.get("code", "")) == row["Country"]
        address = account.find("Address")
        assert (address is not None) == bool(row["Street"] or row["Country"])
        assert address is None or address.get("type") == "VIS"


def test_every_character_that_xml_allows_survives_xml_and_json() -> None:
    """All of Unicode, as text and as an attribute, by lxml and by the standard library."""
    signs = [chr(number) for number in range(0x110000) if not FORBIDDEN.match(chr(number))]
    blocks = ["".join(signs[start : start + 4096]) for start in range(0, len(signs), 4096)]
    codes = pa.array([f"C{number}" for number in range(len(blocks))])
    made = {"Code": codes, "Status": pa.array(blocks), "Name": pa.array(blocks)}
    large = profile(max_rows=1000, max_bytes=100_000_000)
    (in_xml,), _ = calls_of(make_wire("xml", large), made)
    in_json, _ = calls_of(make_wire("insert", large), made)

    assert len(signs) == 0x110000 - 29 - 2048 - 2
    for account, call, block in zip(
        etree.fromstring(make_wire("xml").request(in_xml).body)[0], in_json, blocks, strict=True
    ):
        assert account.get("status") == account.findtext("Name") == block
        assert json.loads(make_wire("insert").request(call).body)["Name"] == block


@pytest.mark.parametrize("mode", MODES)
def test_absent_values_are_left_out(mode: Mode) -> None:
    """Null is not sent as null, nor as an empty element."""
    wire = make_wire(mode)
    calls, _ = calls_of(wire, {"Code": ["A", "B"], "Name": ["x", None], "Count": [None, 0], "Flag": [False, None]})
    bodies = b"".join(wire.request(call).body for call in calls)

    assert b"null" not in bodies
    for name in (b"Name", b"Count", b"Flag"):
        assert bodies.count(b"<%b>" % name if mode == "xml" else b'"%b"' % name) == 1


@pytest.mark.parametrize("mode", MODES)
def test_rows_with_nothing_in_them_are_still_rows(mode: Mode) -> None:
    """A row of absent values keeps its place; in XML, which needs its key, it is refused."""
    calls, refused = calls_of(make_wire(mode), {"Name": pa.array([None, None], pa.string())})

    sent = [row for call in calls for row in call.rows]
    kept_back = [row for outcomes in refused for row in outcomes.rows]
    assert (sent, kept_back) == (([], [1, 2]) if mode == "xml" else ([1, 2], []))


@pytest.mark.parametrize("code", ["", "   ", None])
def test_a_row_without_a_key_is_refused_where_answers_need_it(code: str | None) -> None:
    """Blank is as good as nothing: no answer could be matched to it."""
    calls, refused = calls_of(make_wire("xml"), {"Code": ["A", code], "Name": ["x", "y"]})

    assert [list(call.rows) for call in calls] == [[1]]
    assert [(list(item.rows), item.notes[2].reason) for item in refused] == [([2], "no-key")]


def test_hidden_fields_do_not_travel_by_xml() -> None:
    """A field without an XML path is no element."""
    wire = make_wire("xml")
    (call,), _ = calls_of(wire, {"Code": ["A"], "Hidden": ["secret"]})

    assert b"secret" not in wire.request(call).body


def test_xml_without_any_carried_column_is_empty_elements() -> None:
    """Nothing to say of a row is said by an empty element."""
    wire = make_wire("xml")
    (fragments,) = rendered(wire, {"Code": ["A"], "Hidden": ["x"]})
    bare = wire.encode(_only_hidden(), COMPANY)

    assert isinstance(fragments, Fragments)
    assert fragments.bodies == [b'<Account code="A"/>']
    assert bare == [b"<Account/>"]


def _only_hidden() -> Any:
    from saasload.wire.values import Column, Table  # noqa: PLC0415 - one test's own

    return Table([1], [Column("Hidden", pa.array(["x"]), absent=False, texts=True)], {})


@pytest.mark.parametrize("json_decimal", ["string", "number"])
@given(
    st.one_of(
        st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**20), max_value=10**20),
        st.sampled_from([Decimal("0E-10"), Decimal("-0.01"), Decimal("12345678901234567890.1234567890")]),
    )
)
def test_decimals_keep_their_digits_on_the_wire(json_decimal: Literal["string", "number"], value: Decimal) -> None:
    """No exponent and no float in between; a number is a JSON number."""
    wire = make_wire("insert", profile(json_decimal=json_decimal))
    (call,), _ = calls_of(wire, {"Amount": pa.array([value], pa.decimal128(38, 10))})
    body = wire.request(call).body

    found = json.loads(body, parse_float=Decimal, parse_int=Decimal)["Amount"]
    assert isinstance(found, str if json_decimal == "string" else Decimal)
    assert Decimal(found) == value
    assert b"e" not in body.lower().replace(b'"amount"', b"")


@given(st.from_regex(r"-?[0-9]{1,38}(\.[0-9]{1,38})?", fullmatch=True))
def test_a_decimal_text_is_a_json_number_too(text: str) -> None:
    """Zeros in front, which JSON does not know, are left out."""
    wire = make_wire("insert", profile(json_decimal="number"))
    (call,), refused = calls_of(wire, {"Amount": [text]})

    assert not refused
    found = json.loads(wire.request(call).body, parse_float=str, parse_int=str)["Amount"]
    assert Decimal(found) == Decimal(text)


def test_dates_and_codes_travel_as_the_profile_says() -> None:
    """Codes are padded in JSON and bare in XML, dates get a time in JSON, flags are 1 and 0 in XML."""
    made = {"Code": ["007"], "Day": ["2024-02-29"], "Moment": ["2024-02-29T23:59:59"], "Flag": [True], "Count": ["42"]}
    (as_json,), _ = calls_of(make_wire("insert"), made)
    (as_xml,), _ = calls_of(make_wire("xml"), made)

    assert json.loads(as_json.fragments.bodies[0]) == {
        "Code": "     007", "Day": "2024-02-29T00:00:00", "Moment": "2024-02-29T23:59:59", "Flag": True, "Count": 42,
    }  # fmt: skip
    assert as_xml.fragments.bodies[0] == (
        b'<Account code="007"><Count>42</Count><Flag>1</Flag><Day>2024-02-29</Day>'
        b"<Moment>2024-02-29T23:59:59</Moment></Account>"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_company_code_cannot_change_the_address(mode: Mode) -> None:
    """Signs with a meaning in an address are escaped, in the parts of a batch too."""
    company = Company("A&B /é")
    wire = make_wire(mode)
    (call,), _ = calls_of(wire, {"Code": ["A"]}, company=company)
    request = wire.request(call)

    assert "A%26B%20%2F%C3%A9" in request.path
    assert mode != "batch" or b"POST /v1/A%26B%20%2F%C3%A9/Accounts HTTP/1.1" in request.body


def test_headers_of_the_profile_go_with_every_call() -> None:
    """A platform may want headers of its own."""
    made = profile().model_copy(update={"headers": {"X-Own": "1"}})
    call = Call(COMPANY, Fragments([1], [b"{}"], ["A"]), 2)

    for mode in MODES:
        assert make_wire(mode, made).request(call).headers["X-Own"] == "1"
