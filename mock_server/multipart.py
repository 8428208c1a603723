"""Multipart bodies of a batch: bytes into parts, parts into requests."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

_Head = TypeVar("_Head")

CRLF = b"\r\n"
BLANK = b"\r\n\r\n"

_BOUNDARY = re.compile(rb"boundary\s*=\s*(?:\"([^\"\r\n]{1,200})\"|([^\s;,\"]{1,200}))", re.IGNORECASE)
_REQUEST_LINE = re.compile(rb"([A-Z]{1,10}) (\S{1,65536}) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*([^\r\n]*)")


_USUAL = b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: "


class MalformedError(Exception):
    """The body is no batch; the text says why."""


class PartHead(NamedTuple):
    """The MIME headers of a part: what it holds, and the name it has in the batch."""

    boundary: bytes
    content_id: bytes


class RequestHead(NamedTuple):
    """Request line and headers of an embedded request; `length` is -1 where none is given."""

    method: str
    target: str
    length: int
    prefer: bytes
    content_id: bytes


Operation = tuple[bytes, RequestHead, bytes]
"""One embedded request: Content-ID, head, body. A plain tuple, for there is one a row."""

ChangeSet = list[Operation]


def boundary_of(content_type: bytes) -> bytes:
    """Return the boundary of a `multipart/mixed` content type; raise `MalformedError` where there is none.

    >>> boundary_of(b'multipart/mixed; boundary="batch_1"')
    b'batch_1'
    """
    found = _BOUNDARY.search(content_type)
    if found is None or not content_type.lower().lstrip().startswith(b"multipart/mixed"):
        message = "The content type of a batch is multipart/mixed with a boundary."
        raise MalformedError(message)
    return found[1] or found[2]


def read_batch(body: bytes, boundary: bytes, *, max_parts: int) -> list[ChangeSet | Operation]:
    """Read a batch into change sets and single requests, in their order."""
    alone = _split_uniform(body, boundary)
    if alone is not None:
        _check_room(max_parts - len(alone), max_parts)
        return [[operation] for operation in _operations(alone)]
    found: list[ChangeSet | Operation] = []
    room = max_parts
    for part in split_parts(body, boundary):
        head, content = _divide(part, part_head)
        inner = split_parts(content, head.boundary) if head.boundary else [part]
        room -= len(inner)
        _check_room(room, max_parts)
        found.append(_operations(inner) if head.boundary else _request(head, content))
    if not found:
        message = "The batch is empty."
        raise MalformedError(message)
    return found


def _check_room(room: int, max_parts: int) -> None:
    if room < 0:
        message = f"The batch has too many parts (maximum {max_parts})."
        raise MalformedError(message)


def _split_uniform(body: bytes, boundary: bytes) -> list[bytes] | None:
    """Cut a batch in which each change set holds one request and all are framed alike; None for any other.

    Both levels are cut by one search for bytes. The two counts prove that no boundary stands elsewhere.
    """
    delimiter = b"--" + boundary
    start = len(delimiter) + len(CRLF)
    frame = body[start : body.find(BLANK, start)]
    found = _BOUNDARY.search(frame)
    if found is None or not body.startswith(delimiter + CRLF) or b"multipart/mixed" not in frame:
        return None
    inner = b"--" + (found[1] or found[2])
    opening = delimiter + CRLF + frame + BLANK + inner + CRLF
    closing = CRLF + inner + b"--" + CRLF
    end = body.rfind(closing + delimiter + b"--")
    if end < 0 or not body.startswith(opening) or part_head(frame) is None:
        return None
    parts = body[len(opening) : end].split(closing + opening)
    alike = body.count(inner) == 2 * len(parts) and body.count(delimiter) == len(parts) + 1
    return parts if alike else None


def split_parts(body: bytes, boundary: bytes) -> list[bytes]:
    """Cut a multipart body at its boundary.

    What a careful writer sends (CRLF, no preamble, no blanks after a boundary) is cut by a search for bytes;
    anything else by a tolerant pattern, in about six times the time.
    """
    delimiter = b"--" + boundary
    if body.startswith(delimiter + CRLF):
        end = body.rfind(CRLF + delimiter + b"--")
        start = len(delimiter) + 2
        parts = body[start:end].split(CRLF + delimiter + CRLF) if end >= start else []
        if parts and body.count(delimiter) == len(parts) + 1:
            return parts
    return _split_tolerantly(body, boundary)


def _split_tolerantly(body: bytes, boundary: bytes) -> list[bytes]:
    line = re.compile(rb"(?:\A|\r?\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\r?\n|\Z)")
    parts: list[bytes] = []
    start: int | None = None
    for found in line.finditer(body):
        if start is not None:
            parts.append(body[start : found.start()])
        if found[1]:
            start = None
            break
        start = found.end() + (2 if body.startswith(CRLF, found.end()) else 1)
    if start is not None or not parts:
        message = "The batch does not end with its boundary." if parts or start else "The boundary does not occur."
        raise MalformedError(message)
    return parts


def _divide(block: bytes, read: Callable[[bytes], _Head | None]) -> tuple[_Head, bytes]:
    """Part headers from content at the first empty line."""
    head, gap, content = block.partition(BLANK)
    if gap:
        found = read(head)
        if found is not None:
            return found, content
    head, gap, content = block.partition(b"\n\n")
    found = read(head if gap else block.rstrip(CRLF))
    if found is None:
        message = "A part of the batch cannot be read."
        raise MalformedError(message)
    return found, content


@lru_cache(maxsize=16_384)
def part_head(block: bytes) -> PartHead | None:
    """Read the MIME headers of a part, None where they end earlier than thought: at an LF LF."""
    if b"\n\n" in block:
        return None
    headers = _headers(block)
    kind = headers.get(b"content-type", b"").lower()
    if kind.startswith(b"multipart/mixed"):
        return PartHead(boundary_of(headers[b"content-type"]), b"")
    if not kind.startswith(b"application/http"):
        message = "A part of a batch is application/http or multipart/mixed."
        raise MalformedError(message)
    return PartHead(b"", headers.get(b"content-id", b""))


@lru_cache(maxsize=16_384)
def request_head(block: bytes) -> RequestHead | None:
    """Read request line and headers of an embedded request, None where they end earlier than thought."""
    if b"\n\n" in block:
        return None
    line, _, rest = block.partition(b"\n")
    found = _REQUEST_LINE.fullmatch(line.rstrip(b"\r"))
    if found is None:
        message = "A part of a batch begins with a request line."
        raise MalformedError(message)
    headers = _headers(rest)
    length = headers.get(b"content-length", b"")
    if length and not (length.isdigit() and len(length) < 10):
        message = "The Content-Length of a part is not a number."
        raise MalformedError(message)
    target = found[2].decode("latin-1")
    prefer, content_id = headers.get(b"prefer", b"").lower(), headers.get(b"content-id", b"")
    return RequestHead(found[1].decode(), target, int(length) if length else -1, prefer, content_id)


def _headers(block: bytes) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for line in block.split(b"\n"):
        line = line.rstrip(b"\r")  # noqa: PLW2901 - a line may end with LF alone
        if not line:
            continue
        found = _HEADER.fullmatch(line)
        if found is None:
            message = "A header of a part cannot be read."
            raise MalformedError(message)
        headers[found[1].lower()] = found[2].rstrip()
    return headers


def _operations(blocks: list[bytes]) -> ChangeSet:
    """Read the requests of change sets, the usual ones without a look at each header."""
    found: ChangeSet = []
    usual, length = _USUAL, len(_USUAL)
    for block in blocks:
        mime, _, content = block.partition(BLANK)
        head_bytes, gap, body = content.partition(BLANK)
        if gap and mime.startswith(usual):
            content_id = mime[length:]
            head = request_head(head_bytes)
            if head is not None and head.length == len(body) and content_id.isalnum():
                found.append((content_id, head, body))
                continue
        found.append(_operation(block))
    return found


def _operation(block: bytes) -> Operation:
    part, content = _divide(block, part_head)
    if part.boundary:
        message = "A change set stands inside a change set."
        raise MalformedError(message)
    return _request(part, content)


def _request(part: PartHead, content: bytes) -> Operation:
    head, body = _divide(content, request_head)
    length = head.length
    if length >= 0 and len(body) != length:
        if len(body) < length or body[length:].strip():
            message = f"The Content-Length of a part is {length}, its body has {len(body)} bytes."
            raise MalformedError(message)
        body = body[:length]
    return part.content_id or head.content_id, head, body
