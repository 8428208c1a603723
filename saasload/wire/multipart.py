"""Take multipart bodies apart (RFC 2046 section 5.1), as forgiving as real servers make necessary."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from saasload.errors import DecodeError

_BOUNDARY = re.compile(rb'boundary\s*=\s*(?:"([^"]+)"|([^\s;,]+))', re.IGNORECASE)
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_CONTENT_ID = re.compile(rb"^content-id[ \t]*:[ \t]*<?([^\s<>]+)>?[ \t]*$", re.IGNORECASE | re.MULTILINE)


class HttpPart(NamedTuple):
    """One answer inside a batch: `content_id` is "" where the server did not echo it."""

    status: int
    content_id: str
    head: bytes
    body: bytes

    def header(self, name: bytes) -> str:
        """Find a header of this answer, by its name in any case; "" where it is not there."""
        found = re.search(rb"(?im)^" + re.escape(name) + rb"[ \t]*:[ \t]*([^\r\n]*)", self.head)
        return found.group(1).strip().decode("latin-1") if found else ""


def boundary_of(content_type: bytes) -> bytes:
    """Find the boundary parameter, quoted or bare; DecodeError where there is none."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        message = "a multipart answer without a boundary"
        raise DecodeError(message)
    return found.group(1) or found.group(2)


def split(body: bytes, boundary: bytes) -> Iterator[bytes]:
    """Yield the complete parts: one that no delimiter follows was cut off, and is left out."""
    # A delimiter is a whole line: one boundary may be how another begins. Servers that end lines with LF
    # alone, or only some of them, exist.
    usual = _split_usual(body, b"--" + boundary)
    if usual is not None:
        yield from usual
        return
    line = re.compile(rb"(?:\A|\r?\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\r?\n|\Z)")
    start = -1
    for found in line.finditer(body):
        if start >= 0:
            yield body[start : found.start()]
        if found[1]:
            return
        start = found.end()


def _split_usual(body: bytes, delimiter: bytes) -> list[bytes] | None:
    """Cut a body as most servers write it, by a search for bytes; None for any other: counts prove none is missed."""
    end = body.rfind(b"\r\n" + delimiter + b"--")
    if end < 0 or not body.startswith(delimiter + b"\r\n"):
        return None
    parts = body[len(delimiter) : end].split(b"\r\n" + delimiter)
    alike = body.count(delimiter) == len(parts) + 1 and all(part.startswith(b"\r\n") for part in parts)
    return parts if alike else None


# A change set of one answer, as most servers write it. JSON of theirs has no line ends, so no delimiter can be
# inside of it.
_USUAL = (
    rb"--%b\r\n(?:[^\r\n-].*\r\n)*?Content-Type: multipart/mixed; boundary=([A-Za-z0-9._-]++)\r\n\r\n"
    rb"--\1\r\n((?:[^\r\n-].*\r\n)*+)\r\n"
    rb"HTTP/1\.1 ([0-9]{3})(?: .*)?\r\n((?:[^\r\n-].*\r\n)*+)\r\n"
    rb"((?!--).*)\r\n(?:\r\n)*+--\1--\r\n(?:\r\n)?"
)


def usual_parts(body: bytes, boundary: bytes) -> list[HttpPart] | None:
    """Read a whole answer that has a change set of its own for each row, in one go; None for any other."""
    found = []
    at = 0
    for part in re.compile(_USUAL % re.escape(boundary)).finditer(body):
        if part.start() != at:
            return None
        _, inner, status, head, entity = part.groups()
        found.append(HttpPart(int(status), _content_id(inner) or _content_id(head), head.strip(), entity.strip(b"\r")))
        at = part.end()
    closing = b"--%b--" % boundary
    return found if body.startswith((closing + b"\r\n", closing + b"\n"), at) or body[at:] == closing else None


def all_parts(body: bytes, boundary: bytes) -> list[HttpPart]:
    """Read an answer of any shape: all answers in it, those of change sets too, in their order."""
    return [inner for part in split(body, boundary) for inner in http_parts(part)]


def http_parts(part: bytes) -> list[HttpPart]:
    """Read one top-level part: the answer in it, or the answers of the change set in it."""
    head, _, content = _head_and_rest(part)
    if b"multipart/" in head.lower():
        return [inner for nested in split(content, boundary_of(head)) for inner in http_parts(nested)]
    return [_http_part(head, content)]


def _head_and_rest(part: bytes) -> tuple[bytes, bytes, bytes]:
    """Split off a part's headers; LF alone is taken as a line end where there is no CRLF pair first."""
    crlf = part.partition(b"\r\n\r\n")
    lf = part.partition(b"\n\n")
    return crlf if len(crlf[0]) <= len(lf[0]) else lf


def _http_part(head: bytes, content: bytes) -> HttpPart:
    content = content.lstrip()
    status = _STATUS_LINE.match(content)
    if status is None:
        message = f"a part of the answer that is not HTTP: {content[:40]!r}"
        raise DecodeError(message)
    top, _, body = _head_and_rest(content)
    inner_head = top.partition(b"\n")[2]
    identity = _content_id(head) or _content_id(inner_head)
    return HttpPart(int(status.group(1)), identity, inner_head.strip(), body.strip(b"\r\n"))


def _content_id(head: bytes) -> str:
    _, usual, rest = head.partition(b"Content-ID: ")
    if usual:
        return rest.partition(b"\n")[0].strip(b" \t\r<>").decode("ascii", "replace")
    found = _CONTENT_ID.search(head.replace(b"\r", b""))
    return found.group(1).decode("ascii", "replace") if found else ""
