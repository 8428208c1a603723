"""Batches: many requests in one call, each change set all or nothing."""

from itertools import count

import orjson

from mock_server.ledger import Book
from mock_server.multipart import ChangeSet, MalformedError, Operation, boundary_of, read_batch
from mock_server.replies import Asked, Reply, Work, error, error_body
from mock_server.rest import change, check_change, check_new, entity, read, small_json
from mock_server.routes import Route, part_route
from mock_server.rules import STREAM_ERROR, Refusal
from mock_server.world import World

_PHRASES = {
    200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 500: "Internal Server Error",
}  # fmt: skip
_PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
_JSON = "Content-Type: application/json;odata=verbose;charset=utf-8\r\n"


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
    return Work("batch", rows, 0, lambda: carry_out(world, route, asked, parts))


def carry_out(world: World, route: Route, asked: Asked, parts: list[ChangeSet | Operation]) -> Reply:
    """Commit each change set or none of it, answer each part, in their order."""
    book = world.ledger.book(route.company)
    name = f"{book.company:08x}-0000-4000-8000-{world.next_batch():012x}"
    lines: list[str] = []
    sets = count(1)
    for part in parts:
        lines.append(f"--batchresponse_{name}\r\n")
        if isinstance(part, list):
            boundary = f"changesetresponse_{name[:-12]}{next(sets):012x}"
            lines.append(_change_set(world, book, part, base=asked.base, boundary=boundary))
        else:
            lines.append(_single(world, route, asked, part))
    lines.append(f"--batchresponse_{name}--\r\n")
    content_type = f"multipart/mixed; boundary=batchresponse_{name}".encode()
    return Reply(202, "".join(lines).encode(), content_type, [(b"dataserviceversion", b"1.0;")])


def _change_set(world: World, book: Book, operations: ChangeSet, *, base: str, boundary: str) -> str:
    """Commit a change set and return its part, or the error part in its place."""
    plans = _check(world, book, operations)
    if isinstance(plans, str):
        return plans
    opening = f"--{boundary}\r\n{_PART}"
    lines = [f"Content-Type: multipart/mixed; boundary={boundary}\r\n\r\n"]
    for (content_id, head, body), plan in zip(operations, plans, strict=True):
        named = f"Content-ID: {content_id.decode('latin-1')}\r\n" if content_id else ""
        if isinstance(plan, Route):
            done = change(world, plan, Asked(head.method, b"", body, base))
            lines.append(f"{opening}{named}\r\n{_http(done.status, done.body.decode())}")
            continue
        code, row = plan
        number = book.add(code or book.free_code(), row)
        if head.prefer:
            lines.append(f"{opening}{named}\r\n{_preferred(book, number, base, head.prefer)}")
            continue
        text = small_json(book, number, base)
        size = len(text) if text.isascii() else len(text.encode())
        lines.append(f"{opening}{named}\r\nHTTP/1.1 201 Created\r\n{_JSON}Content-Length: {size}\r\n\r\n{text}\r\n")
    lines.append(f"--{boundary}--\r\n")
    return "".join(lines)


_Plan = tuple[str, bytes] | Route
"""What a change does: a code and the row to book under it, or the row that it changes."""


def _check(world: World, book: Book, operations: ChangeSet) -> list[_Plan] | str:
    """Check all of a change set before any of it; return what to do, or the error part in its place."""
    plans: list[_Plan] = []
    codes: set[str] = set()
    for operation in operations:
        plan = _check_one(world, book, operation)
        if isinstance(plan, tuple) and len(operations) > 1 and world.unique_code:
            code = plan[0]
            if code and code in codes:
                plan = world.rules.exists("Code")
            codes.add(code)
        if isinstance(plan, Refusal):
            text = error_body(plan.text, plan.language).decode()
            return f"{_PART}{_named(operation)}\r\n{_http(plan.status, text)}"
        plans.append(plan)
    return plans


def _check_one(world: World, book: Book, operation: Operation) -> _Plan | Refusal:
    _, head, body = operation
    route, _ = part_route(head.target, book.company)
    if route.company != book.company:
        return Refusal(404, "Resource not found.") if route.kind == "none" else Refusal(403, "Forbidden")
    if route.kind == "accounts" and head.method == "POST":
        return check_new(world, book, body)
    if route.kind == "account" and head.method in {"PUT", "DELETE"}:
        checked = check_change(world, route, Asked(head.method, b"", body, ""))
        return checked if isinstance(checked, Refusal) else route
    if head.method == "GET":
        return Refusal(400, f"{STREAM_ERROR} A read stands outside of change sets.")
    return Refusal(405, "Method not allowed.")


def _single(world: World, route: Route, asked: Asked, operation: Operation) -> str:
    _, head, _ = operation
    target, query = part_route(head.target, route.company)
    if head.method != "GET":
        body = error_body(f"{STREAM_ERROR} A write stands inside a change set.", "en").decode()
        return f"{_PART}{_named(operation)}\r\n{_http(400, body)}"
    if target.kind in {"none", "batch", "xml"}:
        done = error(404, "Resource not found.")
    elif target.company not in {0, route.company}:
        done = error(403, "Forbidden", reason="NoDivisionAccess")
    else:
        done = read(world, target, Asked("GET", query, b"", asked.base))
    return f"{_PART}{_named(operation)}\r\n{_http(done.status, done.body.decode())}"


def _named(operation: Operation) -> str:
    content_id = operation[0]
    return f"Content-ID: {content_id.decode('latin-1')}\r\n" if content_id else ""


def _preferred(book: Book, number: int, base: str, prefer: bytes) -> str:
    address = f"{base}/api/v1/{book.company}/crm/Accounts(guid'{book.guid(number)}')"
    location = f"Location: {address}\r\n"
    if b"return=minimal" in prefer:
        return _http(204, "", f"{location}DataServiceId: {address}\r\n")
    if b"return=representation" in prefer:
        return _http(201, orjson.dumps({"d": entity(book, number, base)}).decode(), location)
    return _http(201, small_json(book, number, base), location)


def _http(status: int, text: str, headers: str = "") -> str:
    kind, phrase = (_JSON if text else ""), _PHRASES.get(status, "Error")
    return f"HTTP/1.1 {status} {phrase}\r\n{kind}{headers}Content-Length: {_size(text)}\r\n\r\n{text}\r\n"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
