"""Replies: what goes back, before any header of limits and time is added."""

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from mock_server.scenario import Endpoint

JSON = b"application/json;odata=verbose;charset=utf-8"
XML = b"text/xml; charset=utf-8"
HTML = b"text/html; charset=utf-8"
PLAIN = b"text/plain; charset=utf-8"
ATOM_SVC = b"application/atomsvc+xml; charset=utf-8"


@dataclass(slots=True)
class Reply:
    """Status, body and what belongs to them."""

    status: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class Work:
    """A call understood but not carried out: what it costs, and the step that commits it and answers."""

    endpoint: Endpoint
    rows: int
    unchanged: int
    apply: Callable[[], Reply]


@dataclass(slots=True)
class Asked:
    """One request, as the rooms behind the door see it.

    `base` is scheme and host as the client wrote them; `prefer`, `content_type` and `authorization` are header
    values, and so are `csrf` and `cookie`, where the scenario asks for them; `twist` is a fault that only the room
    that does the work can play.
    """

    method: str
    query: bytes
    body: bytes
    base: str
    content_type: bytes = b""
    prefer: bytes = b""
    authorization: bytes = b""
    csrf: bytes = b""
    cookie: bytes = b""
    twist: str = ""


def error_body(text: str, language: str) -> bytes:
    """Return the JSON of an error."""
    return orjson.dumps({"error": {"code": "", "message": {"lang": language, "value": text}}})


def error(status: int, text: str, *, reason: str = "", language: str = "en") -> Reply:
    """Return a reply that says what is wrong; `reason` goes into the header of that name."""
    headers = [(b"reason", reason.encode())] if reason else []
    return Reply(status, error_body(text, language), headers=headers)


def as_json(value: object, status: int = 200) -> Reply:
    """Return a value in the envelope of the platform."""
    return Reply(status, orjson.dumps({"d": value}))
