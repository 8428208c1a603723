"""Reading rows back by key: the question as the platform wants it, the answer compared by value."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.errors import DecodeError
from saasload.model import Company, Reply
from saasload.profile import EntitySpec, FieldSpec, LookUpSpec
from saasload.wire.lookup import LookUp

from .making import COMPANY, profile

PATH = "/v1/{company}/Accounts?$select={select}&$filter={filter}"
FIELDS = {
    "Code": FieldSpec(pad_left=18),
    "Name": FieldSpec(),
    "Amount": FieldSpec(type="decimal"),
    "Count": FieldSpec(type="integer"),
    "Day": FieldSpec(type="date"),
    "Moment": FieldSpec(type="datetime"),
    "Flag": FieldSpec(type="bool"),
    "Guid": FieldSpec(type="guid"),
}


def look_up(*, pad: int | None = 18, max_keys: int = 40, max_url_bytes: int = 4000) -> LookUp:
    """Make one that was sent every field."""
    spec = LookUpSpec(path=PATH, max_keys=max_keys, max_url_bytes=max_url_bytes)
    fields = {**FIELDS, "Code": FieldSpec(pad_left=pad)}
    entity = EntitySpec.model_construct(modes=("insert",), key="Code", fields=fields, look_up=spec)
    return LookUp(profile(), entity, spec, list(FIELDS))


def filter_of(path: str) -> str:
    """Read the filter as a server does: decoded once."""
    (found,) = parse_qs(urlsplit(path).query, strict_parsing=True)["$filter"]
    return found


def keys_in(text: str) -> list[str]:
    """Read the keys out of a filter, as OData has text: in quotes, each quote twice."""
    return [found.replace("''", "'") for found in re.findall(r"Code eq '((?:[^']|'')*)'", text)]


def test_a_question_names_the_company_the_fields_and_the_keys_as_they_are_kept() -> None:
    """Keys are padded as the platform pads them."""
    request = look_up().request(Company("1001"), ["0042", "7"])

    assert (request.method, request.body) == ("GET", b"")
    assert request.path.startswith("/v1/1001/Accounts?$select=ID,Code,Name,Amount,Count,Day,Moment,Flag,Guid&$filter=")
    assert filter_of(request.path) == f"Code eq '{'0042':>18}' or Code eq '{'7':>18}'"


@pytest.mark.parametrize(
    "key", ["O'Neill", "''", "100%", "%41", "a&b", "a=b#c", "a+b", "Ü雪😀", "a/b?c", "or Code eq 'x'", "a b", '"', "\\"]
)
def test_a_key_of_any_text_is_asked_for_as_it_is(key: str) -> None:
    """Quotes twice, and everything encoded once: what the server decodes is what was meant."""
    path = look_up(pad=None).request(COMPANY, [key]).path

    assert path.isascii()
    assert " " not in path
    assert keys_in(filter_of(path)) == [key]


@given(
    st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12), min_size=1, max_size=9)
)
def test_any_keys_come_through(keys: list[str]) -> None:
    """Each once, in their order, whatever they hold."""
    path = look_up(pad=None).request(COMPANY, keys).path

    assert keys_in(filter_of(path)) == list(dict.fromkeys(keys))


@given(
    keys=st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30), max_size=60),
    max_keys=st.integers(1, 50),
    max_url_bytes=st.integers(150, 3000),
)
def test_a_request_holds_as_many_keys_as_its_address_may(keys: list[str], max_keys: int, max_url_bytes: int) -> None:
    """Never more than allowed, but for one key alone; never fewer than would fit."""
    asking = look_up(max_keys=max_keys, max_url_bytes=max_url_bytes)

    count = asking.fit(COMPANY, keys)

    assert count <= max(min(len(keys), max_keys), 0)
    assert bool(count) == bool(keys)
    if count > 1:
        assert len(asking.request(COMPANY, keys[:count]).path) <= max_url_bytes
    if count < min(len(keys), max_keys):
        assert len(asking.request(COMPANY, keys[: count + 1]).path) > max_url_bytes


def reply(body: object) -> Reply:
    """Answer with JSON."""
    return Reply(200, {}, orjson.dumps(body))


@pytest.mark.parametrize("wrap", [lambda rows: {"d": {"results": rows}}, lambda rows: {"d": rows}])
def test_both_shapes_of_a_collection_are_read(wrap: "type[dict[str, object]]") -> None:
    """By key, without the padding; rows with one key stand together."""
    rows = [{"Code": "                42", "ID": "a"}, {"Code": "7", "ID": "b"}, {"Code": "42", "ID": "c"}]

    found = look_up().read(reply(wrap(rows)))  # type: ignore[arg-type]

    assert {key: [row["ID"] for row in rows] for key, rows in found.items()} == {"42": ["a", "c"], "7": ["b"]}


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'{"d": {"results": [', b"[]", b"{}", b'{"d": {}}', b'{"d": [{"ID": 1}]}', b'{"d": [1]}',
     b'{"d": 3}', b'{"d": {"results": [], "__next": "http://more"}}', b"null", b'{"d": null}'],
)  # fmt: skip
def test_an_answer_that_is_not_a_whole_collection_is_none(body: bytes) -> None:
    """Not read as "nothing is there": a row would be sent twice for it."""
    with pytest.raises(DecodeError):
        look_up().read(Reply(200, {}, body))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_collection_or_an_error(body: bytes) -> None:
    """Nothing else leaves here."""
    try:
        look_up().read(Reply(200, {}, body))
    except DecodeError:
        return


SAME = [
    ("Code", "42", "                42"),
    ("Name", " Müller ", "Müller"),
    ("Amount", "12.50", "12.5"),
    ("Amount", "12.50", 12.5),
    ("Amount", Decimal("1E+2"), 100),
    ("Amount", "0", 0.0),
    ("Count", 7, "7"),
    ("Day", "2026-01-31", "/Date(1769817600000)/"),
    ("Day", date(2026, 1, 31), "2026-01-31T00:00:00"),
    ("Day", "1969-12-31", "/Date(-1)/"),
    ("Moment", "2026-01-31T12:30:00", "/Date(1769862600000)/"),
    ("Moment", "2026-01-31T12:30:00", "/Date(1769862600000+0060)/"),
    ("Moment", datetime(2026, 1, 31, 12, 30, tzinfo=UTC).isoformat(), "2026-01-31T12:30:00.000Z"),
    ("Flag", True, True),
    ("Flag", "true", True),
    ("Flag", 1, True),
    ("Flag", "0", False),
    ("Guid", "ABCDEF00-0000-4000-8000-000000000001", "abcdef00-0000-4000-8000-000000000001"),
    ("Name", "", None),
]  # fmt: skip

OTHER = [
    ("Code", "042", "42"),
    ("Name", "Müller", "Mueller"),
    ("Name", "Müller", None),
    ("Amount", "12.50", "12.51"),
    ("Amount", "0.1", None),
    ("Count", 7, 8),
    ("Day", "2026-01-31", "/Date(1769904000000)/"),
    ("Day", "2026-01-31", "nonsense"),
    ("Day", "2026-01-31", "/Date(99999999999999999)/"),
    ("Moment", "2026-01-31T12:30:00", "/Date(1769862601000)/"),
    ("Flag", True, False),
    ("Flag", False, True),
    ("Guid", "abcdef00-0000-4000-8000-000000000001", "abcdef00-0000-4000-8000-000000000002"),
]


@pytest.mark.parametrize(("name", "sent", "there"), SAME)
def test_a_value_is_the_same_however_the_platform_writes_it(name: str, sent: object, there: object) -> None:
    """Text without padding, numbers by value, dates by day."""
    assert look_up().differing({name: sent}, {name: there}) == []  # type: ignore[dict-item]


@pytest.mark.parametrize(("name", "sent", "there"), OTHER)
def test_another_value_is_another(name: str, sent: object, there: object) -> None:
    """And the field is named."""
    assert look_up().differing({name: sent}, {name: there}) == [name]  # type: ignore[dict-item]


def test_what_was_not_sent_is_not_compared() -> None:
    """A null leaves the platform's own value; a field the entity does not have is none of ours."""
    assert look_up().differing({"Name": None, "Foreign": "x"}, {"Name": "default"}) == []
