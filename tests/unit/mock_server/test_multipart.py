"""Batches: what is read, what is refused, and what others make of our answer."""

import email
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_server.multipart import MalformedError, boundary_of, read_batch, split_parts

POST = b"POST /api/v1/1001/crm/Accounts HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


def http_part(body: bytes, content_id: int | None = None) -> bytes:
    """Write one embedded POST with its MIME headers."""
    named = b"" if content_id is None else b"Content-ID: %d\r\n" % content_id
    head = b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n" + named
    return head + b"\r\n" + POST % (len(body), body)


def multipart(parts: Sequence[bytes], boundary: bytes) -> bytes:
    """Write a multipart body."""
    return b"".join(b"--%b\r\n%b\r\n" % (boundary, part) for part in parts) + b"--%b--\r\n" % boundary


def change_set(parts: Sequence[bytes], boundary: bytes) -> bytes:
    """Write a change set as a part."""
    # the CRLF before the next boundary is that boundary's own
    return b"Content-Type: multipart/mixed; boundary=%b\r\n\r\n%b" % (boundary, multipart(parts, boundary)[:-2])


@pytest.mark.parametrize(
    ("header", "boundary"),
    [
        (b"multipart/mixed; boundary=b1", b"b1"),
        (b'multipart/mixed;boundary="b 1"', b"b 1"),
        (b"Multipart/Mixed; charset=utf-8; Boundary = b1; x=y", b"b1"),
    ],
)
def test_a_boundary_is_found(header: bytes, boundary: bytes) -> None:
    """Quoted, bare, in any case."""
    assert boundary_of(header) == boundary


@pytest.mark.parametrize("header", [b"", b"application/json", b"multipart/mixed", b"multipart/mixed; boundary="])
def test_no_boundary_is_no_batch(header: bytes) -> None:
    """A content type without a boundary is refused."""
    with pytest.raises(MalformedError):
        boundary_of(header)


def test_change_sets_and_reads_keep_their_order() -> None:
    """Two change sets around a read, with and without Content-ID."""
    read = b"Content-Type: application/http\r\n\r\nGET Accounts HTTP/1.1\r\n\r\n"
    body = multipart(
        [change_set([http_part(b"{}", 1), http_part(b"[]")], b"c1"), read, change_set([http_part(b"1")], b"c")], b"b"
    )

    parts = read_batch(body, b"b", max_parts=4)

    shapes = [[(op[0], op[2]) for op in part] if isinstance(part, list) else part[1].method for part in parts]
    assert shapes == [[(b"1", b"{}"), (b"", b"[]")], "GET", [(b"", b"1")]]


def test_the_fast_way_and_the_tolerant_way_read_the_same() -> None:
    """A batch of equal change sets, and the same with bare LF, a preamble and blanks after a boundary."""
    body = multipart([change_set([http_part(b'{"a":%d}' % n, n)], b"cs") for n in range(5)], b"bt")
    loose = b"preamble\r\n" + body.replace(b"--bt\r\n", b"--bt \t\r\n") + b"epilogue"
    bare = body.replace(b"\r\n", b"\n")

    expected = read_batch(body, b"bt", max_parts=9)

    assert [[op[0] for op in part] for part in expected if isinstance(part, list)] == [[b"%d" % n] for n in range(5)]
    assert read_batch(loose, b"bt", max_parts=9) == expected
    assert read_batch(bare, b"bt", max_parts=9) == expected


def test_the_standard_library_reads_the_same_parts() -> None:
    """Python's `email` parser is the judge of what is a part."""
    body = multipart([change_set([http_part(b'{"n":%d}' % n, n) for n in range(3)], b"cs")], b"bt")
    judge = email.message_from_bytes(b"Content-Type: multipart/mixed; boundary=bt\r\n\r\n" + body)

    (parts,) = read_batch(body, b"bt", max_parts=9)

    nested: Any = judge.get_payload(0)
    judged = [part.get_payload(decode=True) for part in nested.get_payload()]
    assert isinstance(parts, list)
    assert [payload.endswith(op[2]) for payload, op in zip(judged, parts, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "boundary does not occur"),
        (b"--b\r\nContent-Type: application/http\r\n\r\nGET / HTTP/1.1\r\n\r\n", "does not end"),
        (multipart([b"Content-Type: text/plain\r\n\r\nx"], b"b"), "application/http"),
        (multipart([b"no colon\r\n\r\nx"], b"b"), "header of a part"),
        (multipart([b"Content-Type: application/http\r\n\r\nHELLO\r\n\r\n"], b"b"), "request line"),
        (multipart([change_set([change_set([http_part(b"1")], b"d")], b"c")], b"b"), "inside a change set"),
        (multipart([http_part(b"{}").replace(b"Length: 2", b"Length: 3")], b"b"), "Content-Length"),
        (multipart([http_part(b"{}").replace(b"Length: 2", b"Length: x")], b"b"), "not a number"),
        (multipart([http_part(b"{}")] * 3, b"b"), "too many parts"),
        (multipart([change_set([http_part(b"{}", n)], b"c") for n in range(3)], b"b"), "too many parts"),
    ],
)
def test_what_is_no_batch_is_refused(body: bytes, says: str) -> None:
    """Each with a text that says why."""
    with pytest.raises(MalformedError, match=says):
        read_batch(body, b"b", max_parts=2)


def test_a_body_longer_than_its_length_by_line_ends_is_cut() -> None:
    """Some writers put an empty line before the boundary."""
    body = multipart([http_part(b"{}") + b"\r\n"], b"b")

    (operation,) = read_batch(body, b"b", max_parts=1)

    assert operation[2] == b"{}"


@given(st.lists(st.binary(max_size=40).filter(lambda part: b"bnd" not in part), min_size=1, max_size=6))
def test_parts_put_together_come_apart(parts: list[bytes]) -> None:
    """Any bytes without the boundary survive."""
    assert split_parts(multipart(parts, b"bnd"), b"bnd") == parts


@given(st.binary(max_size=200), st.binary(min_size=1, max_size=5))
def test_any_bytes_are_read_or_refused(body: bytes, boundary: bytes) -> None:
    """Nothing but `MalformedError` comes out."""
    try:
        read_batch(b"--" + boundary + b"\r\n" + body, boundary, max_parts=9)
    except MalformedError:
        return
