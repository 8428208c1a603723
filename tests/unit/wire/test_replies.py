"""Replies, whole, cut, bent, and of any bytes at all."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from saasload.errors import DecodeError
from saasload.model import Call, Note, Outcomes, RowStatus
from saasload.profile import Mode
from saasload.wire import Refusal, WireFormat
from saasload.wire.reconcile import SILENT, reconcile

from .making import MODES, make_call, make_reply, make_wire, profile

KEYS = ["A", "B", "A", "C"]
ROWS = [3, 4, 7, 9]
ACCEPTED = {RowStatus.CREATED, RowStatus.UPDATED, RowStatus.UNCHANGED}

statuses = st.sampled_from(RowStatus)
wires = st.sampled_from(
    [make_wire("insert"), make_wire("batch"), make_wire("batch", profile(change_set="call")), make_wire("xml")]
)


def heard_by(wire: WireFormat, call: Call, body: bytes, content_type: str, status: int = 200) -> Outcomes | None:
    """Read a reply; None where it cannot be read, which is an answer too. Anything else that happens is a bug."""
    try:
        heard = wire.read(call, make_reply(body, content_type, status))
    except DecodeError:
        return None
    if isinstance(heard, Refusal):
        return None
    assert len(heard.rows) == len(heard.statuses) == len(heard.ids)
    assert all(isinstance(name, str) for name in heard.ids)
    return heard


def identity(row: int) -> str:
    """Name a row as the target does: no one byte makes one name another."""
    return f"id-{row}{row}{row}"


def created(code: str, row: int) -> bytes:
    """Write the entity of a row."""
    return json.dumps({"d": {"ID": identity(row), "Code": code}}).encode()


def part(row: int, code: str, *, status: bytes = b"201 Created", eol: bytes = b"\r\n", sent_id: bool = True) -> bytes:
    """Write the answer to one row, in a change set of its own."""
    named = b"Content-ID: %d" % row
    body = created(code, row)
    return eol.join([
        b"Content-Type: multipart/mixed; boundary=cs_%d" % row, b"", b"--cs_%d" % row,
        b"Content-Type: application/http", *([named] if sent_id else []), b"", b"HTTP/1.1 " + status,
        b"Content-Type: application/json", b"", body, b"--cs_%d--" % row, b"",
    ])  # fmt: skip


def multipart(parts: list[bytes], boundary: bytes = b"resp", eol: bytes = b"\r\n") -> bytes:
    """Put parts together."""
    return b"".join(b"--%b%b%b%b" % (boundary, eol, one, eol) for one in parts) + b"--%b--%b" % (boundary, eol)


BATCH_REPLY = multipart([part(row, key) for row, key in zip(ROWS, KEYS, strict=True)])
FLAT_REPLY = multipart([
    b"Content-Type: application/http\r\n\r\nHTTP/1.1 201 Created\r\n\r\n" + created(key, row)
    for row, key in zip(ROWS, KEYS, strict=True)
])  # fmt: skip
LF_REPLY = multipart([part(row, key, eol=b"\n") for row, key in zip(ROWS, KEYS, strict=True)], eol=b"\n")
XML_REPLY = "".join([
    '<?xml version="1.0" encoding="utf-8"?>\n<eExact><Messages>',
    *(f'<Message type="2"><Topic code="Accounts"><Data key="{{{identity(row)}}}" keyAlt="{key}"/></Topic>'
      "<Description>Created</Description></Message>" for row, key in zip(ROWS, KEYS, strict=True)),
    "</Messages></eExact>",
]).encode()  # fmt: skip
VALID: list[tuple[Mode, bytes, str]] = [
    ("batch", BATCH_REPLY, "multipart/mixed; boundary=resp"),
    ("batch", FLAT_REPLY, "multipart/mixed; boundary=resp"),
    ("batch", LF_REPLY, 'multipart/mixed; boundary="resp"'),
    ("xml", XML_REPLY, "application/xml"),
]
IDS = ["change-sets", "flat", "lf-only", "xml"]


@st.composite
def heard_outcomes(draw: st.DrawFn) -> tuple[Call, Outcomes]:
    """Draw a call and something heard about some rows, twice or unknown ones among them."""
    rows = draw(st.lists(st.integers(1, 9), unique=True, max_size=6))
    about = draw(st.lists(st.integers(1, 12), max_size=10))
    said = [draw(statuses) for _ in about]
    notes = {row: Note("said") for row in draw(st.sets(st.sampled_from(about)))} if about else {}
    wait = draw(st.none() | st.just("5"))
    return make_call(rows), Outcomes(about, said, [f"id-{row}" for row in about], notes, wait)


@given(heard_outcomes())
def test_every_row_gets_exactly_one_outcome_whatever_is_heard(drawn: tuple[Call, Outcomes]) -> None:
    """In the order of the call; silence and contradiction are in doubt, agreement is what was said."""
    call, heard = drawn
    settled = reconcile(call, heard)

    assert list(settled.rows) == list(call.rows)
    assert len(settled.statuses) == len(settled.ids) == len(call.rows)
    assert set(settled.notes) <= set(call.rows)
    assert settled.retry_after == heard.retry_after
    if list(heard.rows) == list(call.rows):
        assert list(settled.statuses) == list(heard.statuses)
        return
    for row, status in zip(settled.rows, settled.statuses, strict=True):
        said = {one for about, one in zip(heard.rows, heard.statuses, strict=True) if about == row}
        assert status is (said.pop() if len(said) == 1 else RowStatus.IN_DOUBT)
        if row not in heard.rows:
            assert settled.notes[row] is SILENT


@given(wires, st.binary(max_size=300), st.text(max_size=60), st.sampled_from([200, 201, 202, 204, 299]))
@example(make_wire("batch"), b"", "multipart/mixed; boundary=\udce9", 200)
@example(make_wire("xml"), b'<?xml version="1.0" encoding="bogus"?><eExact/>', "", 200)
@example(make_wire("xml"), b"<!DOCTYPE a [<!ENTITY b 'c'>]><eExact><Messages>&b;</Messages></eExact>", "", 200)
@example(make_wire("insert"), b"[" * 100_000, "", 201)
def test_any_bytes_are_outcomes_or_unreadable(wire: WireFormat, body: bytes, content_type: str, status: int) -> None:
    """Nothing else is ever raised, and nothing is created by noise."""
    call = make_call([3]) if wire.max_rows == 1 else make_call(ROWS, KEYS)
    heard = heard_by(wire, call, body, content_type, status)

    if heard is not None and not (wire.name == "insert" and status in {201, 204}):
        assert not ACCEPTED & set(heard.statuses)


@given(st.lists(st.sampled_from([
    b"--resp", b"--cs_3", b"--", b"\r\n", b"\n", b" ",
    b"HTTP/1.1 201 Created", b"HTTP/1.1 429 Slow", b"HTTP/1.1 400 Bad",
    b"Content-Type: multipart/mixed; boundary=cs_3", b"Content-Type: application/http",
    b"Content-ID: 3", b"Content-ID: \xb2",
    b"Retry-After: " + b"9" * 5000, b"Retry-After: \xb2", b"Retry-After: -1",
    b'{"d":{"ID":"x","Code":"A"}}', b'{"d":null}',
    b'{"error":{"message":{"value":"already exists"}}}', b"\xff\x00",
]), max_size=24), st.booleans())  # fmt: skip
def test_multipart_scraps_are_outcomes_or_unreadable(scraps: list[bytes], together: bool) -> None:
    """Near-multipart of every kind: no part makes anything but an outcome."""
    wire = make_wire("batch", profile(change_set="call" if together else "row"))
    call = make_call(ROWS, KEYS)
    heard = heard_by(wire, call, b"--resp\r\n" + b"".join(scraps), "multipart/mixed; boundary=resp")

    if heard is not None:
        assert set(heard.rows) <= set(ROWS)
        assert len(reconcile(call, heard)) == len(ROWS)


@pytest.mark.parametrize(("mode", "body", "content_type"), VALID, ids=IDS)
def test_a_reply_in_full_settles_every_row(mode: Mode, body: bytes, content_type: str) -> None:
    """The replies that are cut and bent below are good ones."""
    heard = heard_by(make_wire(mode), make_call(ROWS, KEYS), body, content_type)

    assert heard is not None
    assert list(heard.rows) == ROWS
    assert set(heard.statuses) == {RowStatus.CREATED}
    assert list(heard.ids) == [identity(row) for row in ROWS]


@pytest.mark.parametrize(("mode", "body", "content_type"), VALID, ids=IDS)
def test_a_cut_reply_creates_no_row_whose_part_was_not_whole(mode: Mode, body: bytes, content_type: str) -> None:
    """Cut at every byte: a row is created only if its own answer and the delimiter after it have arrived."""
    wire = make_wire(mode)
    call = make_call(ROWS, KEYS)
    for length in range(len(body)):
        heard = heard_by(wire, call, body[:length], content_type)
        if heard is None:
            continue
        for row, status in zip(heard.rows, heard.statuses, strict=True):
            whole = body.find(identity(row).encode()) + 10
            assert status is RowStatus.CREATED
            assert mode == "batch"
            assert length > body.find(b"\n--", whole)


@pytest.mark.parametrize(("mode", "body", "content_type"), VALID, ids=IDS)
@pytest.mark.parametrize("instead", [b"", b"\xff", b"-", b"9", b"\r\n\r\n"])
def test_a_reply_bent_at_any_byte_settles_each_row_once(
    mode: Mode, body: bytes, content_type: str, instead: bytes
) -> None:
    """One byte changed, lost or multiplied anywhere: outcomes or unreadable, and no row is someone else's."""
    wire = make_wire(mode)
    call = make_call(ROWS, KEYS)
    names = {identity(row) for row in ROWS}
    for place in range(len(body)):
        bent = body[:place] + instead + body[place + 1 :]
        heard = heard_by(wire, call, bent, content_type)
        if heard is not None:
            settled = reconcile(call, heard)
            assert list(settled.rows) == ROWS
            for row, name, status in zip(settled.rows, settled.ids, settled.statuses, strict=True):
                if status in ACCEPTED and name in names:
                    assert name == identity(row) or KEYS[ROWS.index(row)] == "A"


@given(st.data())
def test_parts_are_matched_by_name_in_any_order_and_number(data: st.DataObject) -> None:
    """Some parts missing, some of rows not asked about: who is named is settled, who is not is silent."""
    named = data.draw(st.permutations([*ROWS, 99]))[: data.draw(st.integers(0, 5))]
    codes = dict(zip(ROWS, KEYS, strict=True)) | {99: "Z"}
    heard = heard_by(
        make_wire("batch"), make_call(ROWS, KEYS), multipart([part(row, codes[row]) for row in named]),
        "multipart/mixed; boundary=resp",
    )  # fmt: skip

    assert heard is not None
    assert list(heard.rows) == [row for row in named if row in ROWS]
    assert list(heard.ids) == [identity(row) for row in heard.rows]


@pytest.mark.parametrize(
    ("waits", "longest"),
    [
        (["2", "10", "9"], "10"),
        (["2.5", "2"], "2.5"),
        (["soon", "3"], "3"),
        (["Wed, 21 Oct 2015 07:28:00 GMT", ""], "Wed, 21 Oct 2015 07:28:00 GMT"),
        (["\xb2", "1"], "1"),
        (["9" * 5000, "1"], "1"),
        (["", ""], None),
    ],
)
def test_the_longest_wait_of_the_parts_is_handed_on(waits: list[str], longest: str | None) -> None:
    """Rows that were not tried go again together; nonsense in one part is nothing to fail on (C05, C09)."""
    parts = [
        b"Content-ID: %d\r\n\r\nHTTP/1.1 429 Slow\r\nRetry-After: %b\r\n\r\n" % (row, wait.encode("latin-1"))
        for row, wait in zip(ROWS, waits, strict=False)
    ]
    heard = heard_by(make_wire("batch"), make_call(ROWS, KEYS), multipart(parts), "multipart/mixed; boundary=resp")

    assert heard is not None
    assert set(heard.statuses) == {RowStatus.NOT_ATTEMPTED}
    assert heard.retry_after == longest


def test_an_answer_about_another_row_is_in_doubt() -> None:
    """A created entity with another key is not this row."""
    parts = [part(row, key, sent_id=False) for row, key in zip(ROWS, ["A", "C", "A", "B"], strict=True)]
    heard = heard_by(make_wire("batch"), make_call(ROWS, KEYS), multipart(parts), "multipart/mixed; boundary=resp")

    assert heard is not None
    assert [status.name for status in heard.statuses] == ["CREATED", "IN_DOUBT", "CREATED", "IN_DOUBT"]
    assert heard.notes[4].reason == "other-row"


def test_nesting_without_end_is_unreadable() -> None:
    """A multipart inside itself hundreds of times stops nothing but its own call."""
    body = b"--r\r\n" + b"Content-Type: multipart/mixed; boundary=r\r\n\r\n--r\r\n" * 600
    body += b"\r\n--r--" * 600
    deep = b"".join(b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (n, n + 1) for n in range(600))
    deep += b"".join(b"\r\n--b%d--" % n for n in range(599, -1, -1))

    assert not heard_by(make_wire("batch"), make_call(ROWS, KEYS), body, "multipart/mixed; boundary=r")
    assert heard_by(make_wire("batch"), make_call(ROWS, KEYS), deep, "multipart/mixed; boundary=b0") is None


bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["d", "ID", "Code", "error", "x"]), inner)
    ),
    max_leaves=8,
)


@given(bodies, st.sampled_from([200, 201, 202]))
def test_any_json_answers_an_insert_or_is_unreadable(body: Any, status: int) -> None:
    """A row is created only by the JSON of an entity, and never by one that has another key."""
    heard = heard_by(make_wire("insert"), make_call([3], ["A"]), json.dumps(body).encode(), "application/json", status)

    if heard is None:
        return
    assert list(heard.rows) == [3]
    assert isinstance(body, dict)
    entity = body.get("d", body)
    assert isinstance(entity, dict)
    code = entity.get("Code")
    other = isinstance(code, str) and code.strip() != "A"
    assert heard.statuses[0] is (RowStatus.IN_DOUBT if other else RowStatus.CREATED)
    assert status == 201 or "d" in body


@pytest.mark.parametrize("mode", MODES)
def test_a_maintenance_page_is_unreadable(mode: Mode) -> None:
    """HTTP 200 with HTML says nothing about rows."""
    page = b"<!DOCTYPE html><html><body><p>We will be back soon</body></html>"

    assert heard_by(make_wire(mode), make_call([3]), page, "text/html") is None
    assert heard_by(make_wire(mode), make_call([3]), b"<html><body/></html>", "text/html") is None
