"""Batches: many requests in one call, with change sets that hold together as the scenario says.

`atomic-change-sets`: all of a change set or nothing, and one error part in its place; the next is tried.
`half-applied`: what stands before the failing row stays booked, although the one error part looks the same; what
comes after it in the batch is neither tried nor answered. `continue-on-error`: each row for itself, an answer each.
"""

from itertools import count

import orjson

from mock_server.ledger import Book
from mock_server.multipart import ChangeSet, MalformedError, Operation, boundary_of, read_batch
from mock_server.reads import entity, read
from mock_server.replies import Asked, Reply, Work, error, error_body
from mock_server.rest import small_json
from mock_server.routes import NOWHERE, Route, part_route
from mock_server.rules import STREAM_ERROR, Refusal
from mock_server.world import World
from mock_server.writes import Draft, book_draft, carry_out_change, check_change, check_new

_PHRASES = {
    200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 500: "Internal Server Error",
}  # fmt: skip
_PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
_JSON = "Content-Type: application/json;odata=verbose;charset=utf-8\r\n"

_Plan = tuple[Book, Draft | int]
"""What a change does: the row to book, or the number of the row that it changes."""


def prepare(world: World, route: Route, asked: Asked) -> Reply | Work:
    """Understand a batch; a body that is none gets 400."""
    if world.scenario.batch == "off":
        return error(404, "Resource not found for the segment '$batch'.")
    if asked.method != "POST":
        return Reply(405, b"", headers=[(b"allow", b"POST")])
    try:
        boundary = boundary_of(asked.content_type)
        parts = read_batch(asked.body, boundary, max_parts=world.scenario.max_batch_parts)
    except MalformedError as failure:
        return error(400, f"{STREAM_ERROR} {failure}")
    rows = sum(len(part) for part in parts if isinstance(part, list))
    return Work("batch", rows, 0, lambda: _Batch(world, route, asked).carry_out(parts))


class _Batch:
    """One batch on its way."""

    def __init__(self, world: World, route: Route, asked: Asked) -> None:
        self._world = world
        self._route = route
        self._asked = asked
        self._base = asked.base
        self._mode = world.scenario.batch
        self._stopped = False
        self._seen: Route = NOWHERE
        self._book: Book | None = None

    def carry_out(self, parts: list[ChangeSet | Operation]) -> Reply:
        """Commit what may be committed, answer each part, in their order."""
        name = f"{self._route.company:08x}-0000-4000-8000-{self._world.next_batch():012x}"
        lines: list[str] = []
        sets = count(1)
        for part in parts:
            lines.append(f"--batchresponse_{name}\r\n")
            if isinstance(part, list):
                boundary = f"changesetresponse_{name[:-12]}{next(sets):012x}"
                lines.append(self._change_set(part, boundary))
            else:
                lines.append(self._single(part))
            if self._stopped:
                break
        lines.append(f"--batchresponse_{name}--\r\n")
        content_type = f"multipart/mixed; boundary=batchresponse_{name}".encode()
        return Reply(202, "".join(lines).encode(), content_type, [(b"dataserviceversion", b"1.0;")])

    def _change_set(self, operations: ChangeSet, boundary: str) -> str:
        """Commit a change set and return its part, or the error part in its place."""
        opening = f"--{boundary}\r\n{_PART}"
        lines = [f"Content-Type: multipart/mixed; boundary={boundary}\r\n\r\n"]
        if self._mode == "atomic-change-sets":
            plans = self._check_all(operations)
            if isinstance(plans, str):
                return plans
            lines += [f"{opening}{self._do(*pair)}" for pair in zip(operations, plans, strict=True)]
        else:
            for operation in operations:
                plan = self._check(operation)
                if not isinstance(plan, Refusal):
                    lines.append(f"{opening}{self._do(operation, plan)}")
                elif self._mode == "half-applied":
                    self._stopped = True
                    return f"{_PART}{_refused(operation, plan)}"
                else:
                    lines.append(f"{opening}{_refused(operation, plan)}")
        lines.append(f"--{boundary}--\r\n")
        return "".join(lines)

    def _check_all(self, operations: ChangeSet) -> list[_Plan] | str:
        """Check all of a change set before any of it; return what to do, or the error part in its place."""
        plans: list[_Plan] = []
        codes: set[tuple[str, str]] = set()
        for operation in operations:
            plan = self._check(operation)
            refusal = plan if isinstance(plan, Refusal) else self._twin(plan, codes) if len(operations) > 1 else None
            if refusal is not None:
                return f"{_PART}{_refused(operation, refusal)}"
            plans.append(plan)  # type: ignore[arg-type] # no refusal
        return plans

    def _twin(self, plan: _Plan, codes: set[tuple[str, str]]) -> Refusal | None:
        """Refuse a row whose code, or which itself, an earlier one of the change set has."""
        book, what = plan
        if isinstance(what, int):
            key = ("", book.guid(what))
        elif self._world.unique_code and what[0] and not (what[0].endswith("/") and len(book.entity.code) > 1):
            key = (book.entity.set, what[0])
        else:
            return None
        if key in codes:
            return self._world.rules.exists("Code") if key[0] else Refusal(400, f"{STREAM_ERROR} Changed twice.")
        codes.add(key)
        return None

    def _check(self, operation: Operation) -> _Plan | Refusal:
        _, head, body = operation
        here = self._route
        route, _ = part_route(head.target, here.company, here.service)
        if route.company != here.company:
            return Refusal(404, "Resource not found.") if route.kind == "none" else Refusal(403, "Forbidden")
        method, kind = head.method, route.kind
        if method in route.entity.methods and not route.whole_pages and not route.lines:
            book = self._book
            if route is not self._seen or book is None:
                book = self._book = self._world.ledger.book(route.company, route.entity)
                self._seen = route
            if kind == "set" and method == "POST":
                draft = check_new(self._world, book, body)
                return draft if draft.__class__ is Refusal else (book, draft)  # type: ignore[return-value]
            if kind == "entity" and method in {"PUT", "DELETE"}:
                number = check_change(self._world, book, key=route.key, method=method, body=body)
                return number if isinstance(number, Refusal) else (book, number)
        if method == "GET":
            return Refusal(400, f"{STREAM_ERROR} A read stands outside of change sets.")
        return Refusal(405, "Method not allowed.")

    def _do(self, operation: Operation, plan: _Plan) -> str:
        """Carry out one checked operation and return its answer."""
        content_id, head, body = operation
        book, what = plan
        named = f"Content-ID: {content_id.decode('latin-1')}\r\n" if content_id else ""
        if what.__class__ is int:
            carry_out_change(self._world, book, what, method=head.method, body=body)
            return f"{named}\r\n{_http(204, '')}"
        number = book_draft(self._world, book, what)  # type: ignore[arg-type] # the other half of the union
        if head.prefer:
            return f"{named}\r\n{_preferred(book, number, self._base, head.prefer)}"
        text = small_json(book, number, self._base)
        size = len(text) if text.isascii() else len(text.encode())
        return f"{named}\r\nHTTP/1.1 201 Created\r\n{_JSON}Content-Length: {size}\r\n\r\n{text}\r\n"

    def _single(self, operation: Operation) -> str:
        """Answer a request that stands outside of change sets: a read."""
        _, head, _ = operation
        here = self._route
        target, query = part_route(head.target, here.company, here.service)
        if head.method != "GET":
            return f"{_PART}{_refused(operation, Refusal(400, f'{STREAM_ERROR} A write stands inside a change set.'))}"
        if target.kind in {"none", "batch", "upload", "download", "authorize", "token"}:
            done = error(404, "Resource not found.")
        elif target.company not in {0, here.company}:
            done = error(403, "Forbidden", reason="NoDivisionAccess")
        else:
            done = read(self._world, target, Asked("GET", query, b"", self._base))
        return f"{_PART}{_named(operation)}\r\n{_http(done.status, done.body.decode())}"


def _refused(operation: Operation, refusal: Refusal) -> str:
    text = error_body(refusal.text, refusal.language).decode()
    return f"{_named(operation)}\r\n{_http(refusal.status, text)}"


def _named(operation: Operation) -> str:
    content_id = operation[0]
    return f"Content-ID: {content_id.decode('latin-1')}\r\n" if content_id else ""


def _preferred(book: Book, number: int, base: str, prefer: bytes) -> str:
    address = f"{base}{book.path}(guid'{book.guid(number)}')"
    location = f"Location: {address}\r\n"
    if b"return=minimal" in prefer:
        return _http(204, "", f"{location}DataServiceId: {address}\r\n")
    if b"return=representation" in prefer:
        return _http(201, orjson.dumps({"d": entity(book, number, base)}).decode(), location)
    return _http(201, small_json(book, number, base), location)


def _http(status: int, text: str, headers: str = "") -> str:
    kind, phrase = (_JSON if text else ""), _PHRASES.get(status, "Error")
    size = len(text) if text.isascii() else len(text.encode())
    return f"HTTP/1.1 {status} {phrase}\r\n{kind}{headers}Content-Length: {size}\r\n\r\n{text}\r\n"
