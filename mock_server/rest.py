"""REST: single entities, created, changed and deleted."""

import orjson

from mock_server.ledger import Book
from mock_server.reads import entity, read
from mock_server.replies import Asked, Reply, Work, error
from mock_server.routes import Route
from mock_server.rules import Refusal
from mock_server.world import World
from mock_server.writes import book_draft, carry_out_change, check_change, check_new


def prepare(world: World, route: Route, asked: Asked) -> Reply | Work:
    """Understand a request for single entities or lists."""
    if asked.method in {"GET", "HEAD"}:
        return Work("read", 0, 0, lambda: read(world, route, asked))
    methods = route.entity.methods if route.kind in {"set", "entity"} else ("GET",)
    if asked.method in methods:
        if route.kind == "set" and asked.method == "POST" and not route.whole_pages:
            return Work("insert", 1, 0, lambda: create(world, route, asked))
        if route.kind == "entity" and asked.method in {"PUT", "DELETE"} and not route.lines:
            return Work("insert", 1, 0, lambda: change(world, route, asked))
    return Reply(405, b"", headers=[(b"allow", ", ".join(methods).encode())])


def create(world: World, route: Route, asked: Asked) -> Reply:
    """Book a row, or refuse it."""
    book = world.ledger.book(route.company, route.entity)
    draft = check_new(world, book, asked.body)
    if isinstance(draft, Refusal):
        return error(draft.status, draft.text, language=draft.language)
    number = book_draft(world, book, draft)
    address = f"{asked.base}{book.path}(guid'{book.guid(number)}')".encode()
    location = (b"location", address)
    if b"return=minimal" in asked.prefer:
        return Reply(204, headers=[location, (b"dataserviceid", address)])
    if b"return=representation" in asked.prefer:
        return Reply(201, orjson.dumps({"d": entity(book, number, asked.base)}), headers=[location])
    return Reply(201, small_json(book, number, asked.base).encode(), headers=[location])


def small_json(book: Book, number: int, base: str) -> str:
    """Return the default answer to a POST: no more than identity."""
    spec, guid = book.entity, book.guid(number)
    head = f'{{"d":{{"__metadata":{{"uri":"{base}{book.path}(guid\'{guid}\'){book.identity}{guid}"'
    if spec.is_flat:
        code = book.codes[number].rjust(spec.code_width)
        if not (code.isascii() and code.lstrip().isalnum()):
            code = orjson.dumps(code).decode()[1:-1]
        return f'{head},"Code":"{code}"}}}}'
    fields = orjson.dumps(book.code_fields(number)).decode()[1:-1]
    return f"{head},{fields}}}}}" if fields else f"{head}}}}}"


def change(world: World, route: Route, asked: Asked) -> Reply:
    """Update or delete a row; fields that are not sent stay."""
    book = world.ledger.book(route.company, route.entity)
    number = check_change(world, book, key=route.key, method=asked.method, body=asked.body)
    if isinstance(number, Refusal):
        return error(number.status, number.text, language=number.language)
    carry_out_change(world, book, number, method=asked.method, body=asked.body)
    return Reply(204)
