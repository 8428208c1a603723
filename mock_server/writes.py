"""Writes: what a body asks to be booked, checked whole before anything is."""

from collections.abc import Mapping

import orjson

from mock_server.entities import ENTITIES, SETS, Entity
from mock_server.ledger import Book
from mock_server.rows import Fields
from mock_server.rules import STREAM_ERROR, Refusal, adds_up
from mock_server.world import World

BAD_RESOURCE = Refusal(400, f"{STREAM_ERROR} The request should be a valid top-level resource object.")


Draft = tuple[str, bytes, tuple[tuple[Entity, tuple[bytes, ...]], ...], int]
"""A row that may be booked: a plain tuple, for there is one a row.

Its code ("" or ending in "/" where a number is to be assigned), the bytes to keep, its lines by their entity, and the
number of the row that it is itself a line of, -1 where it is of none.
"""


def check_new(world: World, book: Book, body: bytes) -> Draft | Refusal:
    """Check a row to be created; one that stands by itself is kept as it came."""
    try:
        row = orjson.loads(body)
    except orjson.JSONDecodeError:
        row = None
    if row.__class__ is not dict:
        return BAD_RESOURCE
    entity = book.entity
    if not entity.is_flat:
        return check_deep(world, book, row)
    refusal = world.rules.new(entity, row)
    if refusal is not None:
        return refusal
    code = row.get(entity.code[0])
    code = code.strip() if code else ""
    if not code.isprintable():
        return Refusal(400, f"Invalid: {entity.code[0]}")
    if code in book.index and world.unique_code:
        return world.rules.exists(entity.code[0])
    return code, body, (), -1


def check_deep(world: World, book: Book, row: Fields) -> Draft | Refusal:
    """Check a row with its lines, its references and a code of several fields."""
    entity, rules = book.entity, world.rules
    nested = _nested(entity, row)
    if isinstance(nested, Refusal):
        return nested
    refusal = rules.new(entity, {**row, **nested}) or _dangling(world, book.company, entity, row)
    if refusal is not None:
        return refusal
    lines = []
    for name, rows in nested.items():
        checked = _check_lines(world, book, ENTITIES[entity.lines[name]], rows)
        if isinstance(checked, Refusal):
            return checked
        lines.append((ENTITIES[entity.lines[name]], checked))
    if entity.balanced and not all(adds_up(rows, entity.balanced) for rows in nested.values()):
        return rules.unbalanced(next(iter(entity.lines)))
    code = _code(world, book, row)
    if isinstance(code, Refusal):
        return code
    kept = orjson.dumps({name: value for name, value in row.items() if name not in entity.lines})
    return _as_line(world, book, row, (code, kept, tuple(lines), -1))


def book_draft(world: World, book: Book, draft: Draft) -> int:
    """Book a checked row with its lines; return its number."""
    code, row, lines, parent = draft
    if parent >= 0:
        return book.add_line(row, parent)
    if not code or (code.endswith("/") and len(book.entity.code) > 1):
        code = book.free_code(code)
    number = book.add(code, row)
    if lines:
        guid = book.guid(number)
        for entity, rows in lines:
            own = world.ledger.book(book.company, entity)
            for place, line in enumerate(rows, start=1):
                found = orjson.loads(line)
                own.add_line(orjson.dumps({"LineNumber": place, **found, entity.parent: guid}), number)
    return number


def check_change(world: World, book: Book, *, key: str, method: str, body: bytes) -> int | Refusal:
    """Check a PUT or DELETE; return the row's number."""
    number = book.number(key)
    if number is None:
        return Refusal(403, "Forbidden")
    if method == "DELETE":
        return number
    try:
        changes = orjson.loads(body)
    except orjson.JSONDecodeError:
        return BAD_RESOURCE
    if not isinstance(changes, dict):
        return BAD_RESOURCE
    return _check_changes(world, book, changes) or number


def _check_changes(world: World, book: Book, changes: Fields) -> Refusal | None:
    entity, rules = book.entity, world.rules
    for name in entity.code:
        if name in changes and name not in entity.read_only:
            return rules.exists(name)  # even when it is the same code
    if any(name in changes for name in entity.lines):
        return Refusal(400, f"{STREAM_ERROR} Lines are changed at their own address.")
    for name in entity.mandatory:
        if name in changes and not str(changes[name] or "").strip():
            return rules.missing(name)
    return rules.changes(entity, changes) or _dangling(world, book.company, entity, changes)


def carry_out_change(world: World, book: Book, number: int, *, method: str, body: bytes) -> None:
    """Update or delete a checked row; fields that are not sent stay."""
    entity = book.entity
    if method == "DELETE":
        for name in entity.lines.values():
            own = world.ledger.book(book.company, ENTITIES[name])
            for line in own.lines_of(number):
                own.delete(line)
        book.delete(number)
        return
    changes = {name: value for name, value in orjson.loads(body).items() if name not in entity.unkept}
    book.change(number, book.fields(number) | changes)


def _nested(entity: Entity, row: Fields) -> dict[str, list[Fields]] | Refusal:
    """Return the lines that a row brings along, bare or as a list of results."""
    found: dict[str, list[Fields]] = {}
    for name in entity.lines:
        value = row.get(name)
        if isinstance(value, dict):
            value = value.get("results")
        if value is None and name not in row:
            continue
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            return BAD_RESOURCE
        found[name] = value
    return found


def _check_lines(world: World, book: Book, entity: Entity, rows: list[Fields]) -> tuple[bytes, ...] | Refusal:
    for row in rows:
        refusal = world.rules.new(entity, row) or _dangling(world, book.company, entity, row, besides=entity.parent)
        if refusal is not None:
            return refusal
    return tuple(orjson.dumps(row) for row in rows)


def _dangling(world: World, company: int, entity: Entity, row: Fields, *, besides: str = "") -> Refusal | None:
    """Return the refusal of a row that refers to what is not there."""
    if not world.scenario.check_references:
        return None
    for name, other in entity.refers:
        guid = row.get(name)
        if guid is not None and name != besides and world.ledger.book(company, SETS[other]).number(str(guid)) is None:
            return world.rules.not_found(name)
    return None


def _code(world: World, book: Book, row: Fields) -> str | Refusal:
    """Return the code that a row's natural key makes, without the last field where that is to be assigned."""
    entity = book.entity
    if not entity.code or entity.code[-1] in entity.read_only:
        return ""
    texts = [str(row.get(name) if row.get(name) is not None else "").strip() for name in entity.code]
    code = "/".join(texts)
    if not code.isprintable():
        return Refusal(400, f"Invalid: {entity.code[0]}")
    if texts[-1] and code in book.index and world.unique_code:
        return world.rules.entry_exists(texts[-1], texts[0]) if len(texts) > 1 else world.rules.exists(entity.code[0])
    return code


def _as_line(world: World, book: Book, row: Mapping[str, object], draft: Draft) -> Draft | Refusal:
    """Give a row that is a line of another the number of that, and keep what must balance in balance."""
    entity = book.entity
    if not entity.parent:
        return draft
    owner = next(one for one in ENTITIES.values() if entity.name in one.lines.values())
    guid = row.get(entity.parent)
    if guid is None:
        return world.rules.missing(entity.parent)
    parent = world.ledger.book(book.company, owner).number(str(guid))
    if parent is None:
        return world.rules.not_found(entity.parent)
    if owner.balanced:
        others = [book.fields(number) for number in book.lines_of(parent)]
        if not adds_up([*others, dict(row)], owner.balanced):
            return world.rules.unbalanced(next(iter(owner.lines)))
    return (*draft[:3], parent)
