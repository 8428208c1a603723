"""Taking multipart bodies apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.errors import DecodeError
from saasload.wire.multipart import all_parts, boundary_of, http_parts, split, usual_parts


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        (b"multipart/mixed; boundary=abc", b"abc"),
        (b"multipart/mixed;boundary=abc;charset=utf-8", b"abc"),
        (b'multipart/mixed; boundary="a b:/=c"', b"a b:/=c"),
        (b"multipart/mixed; charset=utf-8; BOUNDARY=abc", b"abc"),
        (b"multipart/mixed; boundary = abc", b"abc"),
    ],
)
def test_a_boundary_is_found_in_every_spelling(content_type: bytes, boundary: bytes) -> None:
    """Quoted or bare, in any case, first or last."""
    assert boundary_of(content_type) == boundary


@pytest.mark.parametrize("content_type", [b"", b"application/json", b"multipart/mixed", b"multipart/mixed; boundary="])
def test_no_boundary_is_unreadable(content_type: bytes) -> None:
    """Without it there are no parts."""
    with pytest.raises(DecodeError, match="without a boundary"):
        boundary_of(content_type)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"--b\r\none\r\n--b\r\ntwo\r\n--b--", [b"\r\none", b"\r\ntwo"]),
        (b"--b\none\n--b--\n", [b"\none"]),
        (b"--b\r\none\n--b--", [b"\r\none"]),
        (b"pre\r\n--b \t\r\none\r\n--b--  \r\nepilogue\r\n--b\r\nno\r\n--b--", [b"\r\none"]),
        (b"--b\r\none\r\n--b2\r\nstill one\r\n--b--", [b"\r\none\r\n--b2\r\nstill one"]),
        (b"--b\r\na --b-- b\r\n--b--", [b"\r\na --b-- b"]),
        (b"--b\r\none\r\n--b\r\ncut", [b"\r\none"]),
        (b"--b\r\none\r\n--", []),
        (b"--b--", []),
        (b"", []),
    ],
    ids=["crlf", "lf", "mixed", "preamble", "prefix", "inside", "cut", "cut-delimiter", "empty", "nothing"],
)
def test_split_yields_the_whole_parts(body: bytes, parts: list[bytes]) -> None:
    """A delimiter is a line of its own; what none follows is left out."""
    assert list(split(body, b"b")) == parts


@pytest.mark.parametrize(
    "part",
    [
        b"Content-Type: application/http\r\nContent-ID: 7\r\n\r\nHTTP/1.1 429 Slow\r\nRetry-After: 5\r\n\r\nbody",
        b"content-type: application/http\ncontent-id: <7>\n\nHTTP/1.1 429 Slow\nretry-after: 5\n\nbody",
        b"CONTENT-TYPE: application/http\r\nCONTENT-ID: 7\r\n\r\nHTTP/1.1 429\r\nRETRY-AFTER:5\r\n\r\nbody",
        b"\r\nContent-Type: application/http\r\n\r\n\r\nHTTP/1.1 429\r\nContent-ID: 7\r\nRetry-After: 5 \r\n\r\nbody",
        b"Content-ID: 7\nContent-Type: application/http\n\nHTTP/1.1 429 Slow\nRetry-After: 5\n\nbody",
        (
            b"Content-Type: multipart/mixed; boundary=c\r\n\r\n"
            b"--c\r\nContent-Type: application/http\r\nContent-ID: 7\r\n\r\n"
            b"HTTP/1.1 429 Slow\r\nRetry-After: 5\r\n\r\nbody\r\n--c--"
        ),
        b'Content-Type: multipart/mixed;boundary="c"\n\n--c\nContent-ID:7\n\nHTTP/1.1 429\nRetry-After:5\n\nbody\n--c',
    ],
    ids=["usual", "lower-case-lf", "upper-case", "inner-id", "id-first-lf", "change-set", "change-set-lf"],
)
def test_a_part_is_read_in_every_shape(part: bytes) -> None:
    """Names in any case, either line end, the id outside or inside, in a change set or not."""
    (found,) = http_parts(part)

    assert (found.status, found.content_id, found.body) == (429, "7", b"body")
    assert found.header(b"Retry-After") == "5"
    assert found.header(b"Location") == ""


@pytest.mark.parametrize("content", [b"", b"HTTP/1.1 20", b"HTTP/1.1 2011 x", b"<html>", b"POST / HTTP/1.1"])
def test_a_part_that_is_no_answer_is_unreadable(content: bytes) -> None:
    """It has no status."""
    with pytest.raises(DecodeError, match="not HTTP"):
        http_parts(b"Content-Type: application/http\r\n\r\n" + content)


def test_a_part_without_a_body_is_whole() -> None:
    """204 has nothing after its headers, perhaps not even an empty line."""
    for end in (b"", b"\r\n", b"\r\n\r\n"):
        (found,) = http_parts(b"Content-ID: 1\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 0" + end)
        assert (found.status, found.body, found.content_id) == (204, b"", "1")


answers = st.lists(
    st.tuples(
        st.sampled_from([b"Content-ID: %d\r\n", b""]),
        st.sampled_from([b"201 Created", b"204", b"400 Bad Request"]),
        st.sampled_from([b'{"d":{}}', b"", b'{"a": "--b--"}']),
        st.sampled_from([b"\r\n", b"\r\n\r\n"]),
    ),
    max_size=4,
)


def written(rows: list[tuple[bytes, bytes, bytes, bytes]]) -> bytes:
    """Write an answer as most servers do."""
    parts = [
        b"--b\r\nContent-Type: multipart/mixed; boundary=c%d\r\n\r\n--c%d\r\nContent-Type: application/http\r\n"
        b"%b\r\nHTTP/1.1 %b\r\nX: y\r\n\r\n%b%b--c%d--\r\n"
        % (place, place, identity and identity % place, status, body, ends, place)
        for place, (identity, status, body, ends) in enumerate(rows)
    ]
    return b"".join([*parts, b"--b--\r\n"])


@given(answers)
def test_a_usual_answer_is_read_in_one_go(rows: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
    """It is taken for one, and says what the patient way says."""
    found = usual_parts(written(rows), b"b")

    assert found == all_parts(written(rows), b"b")
    assert [part.body for part in found] == [body for _, _, body, _ in rows]


@given(
    answers, st.integers(0, 600), st.integers(0, 30), st.sampled_from([b"", b"\r\n", b"--b", b"--b--", b"--c0--", b"x"])
)
def test_what_is_read_in_one_go_is_never_read_differently(
    rows: list[tuple[bytes, bytes, bytes, bytes]], at: int, cut: int, put: bytes
) -> None:
    """Whatever is damaged in it: either it is no usual answer, or both ways agree."""
    whole = written(rows)
    body = whole[:at] + put + whole[at + cut :]
    found = usual_parts(body, b"b")

    assert found is None or found == all_parts(body, b"b")
