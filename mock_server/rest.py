"""REST: single entities and lists of them."""

from collections.abc import Iterable, Iterator
from functools import partial
from urllib.parse import quote

import orjson

from mock_server.ledger import Book
from mock_server.odata import Query, QueryError, matches, parse_query, wanted_keys
from mock_server.replies import PLAIN, Asked, Reply, Work, as_json, error
from mock_server.routes import Route
from mock_server.rows import CODE_WIDTH, KNOWN, READ_ONLY, Fields, shown
from mock_server.rules import STREAM_ERROR, Refusal
from mock_server.world import World

ACCOUNT_TYPE = "Platform.Models.Account"
_DIVISION_FIELDS = frozenset({
    "Code", "Hid", "Description", "Country", "Currency", "Legislation", "Status", "BlockingStatus", "Current",
    "IsMainDivision",
})  # fmt: skip
_BAD_RESOURCE = Refusal(400, f"{STREAM_ERROR} The request should be a valid top-level resource object.")

Entity = dict[str, object]
Listed = tuple[str, Entity]
"""An entity and the token with which a page after it begins."""


def prepare(world: World, route: Route, asked: Asked) -> Reply | Work:
    """Understand a request for single entities or lists."""
    if asked.method in {"GET", "HEAD"}:
        return Work("read", 0, 0, lambda: read(world, route, asked))
    if route.kind == "accounts" and asked.method == "POST":
        return Work("insert", 1, 0, lambda: create(world, route, asked))
    if route.kind == "account" and asked.method in {"PUT", "DELETE"}:
        return Work("insert", 1, 0, lambda: change(world, route, asked))
    return Reply(405, b"", headers=[(b"allow", b"GET, POST, PUT, DELETE")])


def read(world: World, route: Route, asked: Asked) -> Reply:
    """Answer a GET."""
    try:
        match route.kind:
            case "me":
                reply = _me(world, asked)
            case "divisions":
                reply = _divisions(world, asked)
            case "accounts":
                reply = _accounts(world, route.company, asked)
            case "count":
                query = parse_query(asked.query, KNOWN)
                total = sum(1 for _ in _find(world.ledger.book(route.company), query, asked.base))
                reply = Reply(200, str(total).encode(), PLAIN)
            case _:
                reply = _account(world, route, asked)
    except QueryError as failure:
        return error(400, str(failure))
    return reply


def check_new(world: World, book: Book, body: bytes) -> tuple[str, bytes] | Refusal:
    """Check a row to be created; return its code ("" when one must be given to it) and the bytes to keep."""
    try:
        row = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _BAD_RESOURCE
    if row.__class__ is not dict:
        return _BAD_RESOURCE
    refusal = world.rules.new(row)
    if refusal is not None:
        return refusal
    code = row.get("Code")
    code = code.strip() if code else ""
    if not code.isprintable():
        return Refusal(400, "Invalid: Code")
    if code in book.index and world.unique_code:
        return world.rules.exists("Code")
    return code, body


def create(world: World, route: Route, asked: Asked) -> Reply:
    """Book a row, or refuse it."""
    book = world.ledger.book(route.company)
    checked = check_new(world, book, asked.body)
    if isinstance(checked, Refusal):
        return error(checked.status, checked.text, language=checked.language)
    code, row = checked
    number = book.add(code or book.free_code(), row)
    address = f"{asked.base}/api/v1/{book.company}/crm/Accounts(guid'{book.guid(number)}')".encode()
    location = (b"location", address)
    if b"return=minimal" in asked.prefer:
        return Reply(204, headers=[location, (b"dataserviceid", address)])
    if b"return=representation" in asked.prefer:
        return Reply(201, orjson.dumps({"d": entity(book, number, asked.base)}), headers=[location])
    return Reply(201, small_json(book, number, asked.base).encode(), headers=[location])


def small_json(book: Book, number: int, base: str) -> str:
    """Return the default answer to a POST: no more than identity."""
    guid, code = book.guid(number), book.codes[number].rjust(CODE_WIDTH)
    if not (code.isascii() and code.lstrip().isalnum()):
        code = orjson.dumps(code).decode()[1:-1]
    return (
        f'{{"d":{{"__metadata":{{"uri":"{base}/api/v1/{book.company}/crm/Accounts(guid\'{guid}\')",'
        f'"type":"{ACCOUNT_TYPE}"}},"ID":"{guid}","Code":"{code}"}}}}'
    )


def check_change(world: World, route: Route, asked: Asked) -> int | Refusal:  # noqa: PLR0911 - one for each refusal
    """Check a PUT or DELETE; return the row's number."""
    book = world.ledger.book(route.company)
    number = book.number(route.key)
    if number is None:
        return Refusal(403, "Forbidden")
    if asked.method == "DELETE":
        return number
    try:
        changes = orjson.loads(asked.body)
    except orjson.JSONDecodeError:
        return _BAD_RESOURCE
    if not isinstance(changes, dict):
        return _BAD_RESOURCE
    if "Code" in changes:
        return world.rules.exists("Code")  # even when it is the same code
    if "Name" in changes and not str(changes["Name"] or "").strip():
        return world.rules.missing("Name")
    return world.rules.changes(changes) or number


def change(world: World, route: Route, asked: Asked) -> Reply:
    """Update or delete a row; fields that are not sent stay."""
    number = check_change(world, route, asked)
    if isinstance(number, Refusal):
        return error(number.status, number.text, language=number.language)
    book = world.ledger.book(route.company)
    if asked.method == "DELETE":
        book.delete(number)
    else:
        changes = {name: value for name, value in orjson.loads(asked.body).items() if name not in READ_ONLY}
        book.change(number, book.fields(number) | changes)
    return Reply(204)


def entity(book: Book, number: int, base: str, select: tuple[str, ...] = ()) -> Entity:
    """Return a row as an entity, with every property or the selected ones."""
    fields: Fields = book.fields(number)
    guid = book.guid(number)
    fields |= {"ID": guid, "Code": book.codes[number].rjust(CODE_WIDTH), "Division": book.company}
    uri = f"{base}/api/v1/{book.company}/crm/Accounts(guid'{guid}')"
    found: Entity = {"__metadata": {"uri": uri, "type": ACCOUNT_TYPE}}
    for name in select or _ALL_FIELDS:
        found[name] = shown(name, fields.get(name))
    return found


_ALL_FIELDS = tuple(sorted(KNOWN))


def _account(world: World, route: Route, asked: Asked) -> Reply:
    book = world.ledger.book(route.company)
    query = parse_query(asked.query, KNOWN)
    number = book.number(route.key)
    if number is None:
        return error(404, "Resource not found for the segment 'Accounts'.")
    return as_json(entity(book, number, asked.base, query.select))


def _accounts(world: World, company: int, asked: Asked) -> Reply:
    query = parse_query(asked.query, KNOWN)
    found = _find(world.ledger.book(company), query, asked.base)
    address = f"{asked.base}/api/v1/{company}/crm/Accounts"
    return _list(found, query, page_rows=world.scenario.page_rows, address=address)


def _find(book: Book, query: Query, base: str) -> Iterator[Listed]:
    """Yield the rows that a query asks for, whole where it orders, else as selected."""
    numbers: Iterable[int] = book.numbers()
    codes, guids = wanted_keys(query.where, "Code"), wanted_keys(query.where, "ID")
    if codes is not None:
        wanted = {code.strip() for code in codes if code.strip().rjust(CODE_WIDTH) == code}
        doubled = any(book.surplus.get(code) for code in wanted)
        rows = (n for n in numbers if book.codes[n] in wanted) if doubled else map(book.index.get, wanted)
        numbers = sorted(number for number in rows if number is not None)
    elif guids is not None:
        numbers = sorted(number for guid in set(guids) if (number := book.number(guid)) is not None)
    for number in numbers:
        whole = entity(book, number, base)
        if codes is None and guids is None and query.where is not None and not matches(query.where, whole):
            continue
        yield f"guid'{book.guid(number)}'", whole


def _divisions(world: World, asked: Asked) -> Reply:
    query = parse_query(asked.query, _DIVISION_FIELDS)
    address = f"{asked.base}/api/v1/current/system/Divisions"
    found: list[Listed] = []
    for company in world.companies.values():
        fields = company.fields()
        if query.where is None or matches(query.where, fields):
            uri = f"{asked.base}/api/v1/{company.code}/system/Divisions({company.code})"
            found.append(
                (str(company.code), {"__metadata": {"uri": uri, "type": "Platform.Models.Division"}, **fields})
            )
    return _list(found, query, page_rows=world.scenario.page_rows, address=address)


def _me(world: World, asked: Asked) -> Reply:
    parse_query(asked.query, frozenset({"CurrentDivision", "AccountingDivision", "UserID", "FullName", "UserName"}))
    first = next(iter(world.companies))
    me = {
        "__metadata": {"uri": f"{asked.base}/api/v1/current/Me", "type": "Platform.System.Me"},
        "CurrentDivision": first,
        "AccountingDivision": first,
        "UserID": "00000000-0000-4000-8000-000000000001",
        "UserName": "mock",
        "FullName": "Mock User",
        "Language": "en-GB" if world.scenario.language == "en" else "nl-NL",
    }
    return as_json({"results": [me]})


def _list(found: Iterable[Listed], query: Query, *, page_rows: int, address: str) -> Reply:
    """Answer with one page.

    `$top` without `$inlinecount` gives the bare array, as long as it fits one page.
    """
    total = 0
    if query.count or query.order:
        found = list(found)
        total = len(found)
    for name, descending in reversed(query.order):
        found = sorted(found, key=partial(_sort_key, name), reverse=descending)
    rest = _after(found, query.after)
    top = query.top
    room = page_rows if top is None else min(top, page_rows)
    page: list[Listed] = []
    more = False
    for place, listed in enumerate(rest, start=-query.skip):
        if place >= room:
            more = top is None or top > room
            break
        if place >= 0:
            page.append(listed)
    entities = [_selected(listed, query.select) for _, listed in page]
    if top is not None and top <= page_rows and not query.count and not query.after:
        return as_json(entities)
    envelope: Entity = {"results": entities}
    if query.count:
        envelope["__count"] = str(total)
    if more:
        envelope["__next"] = _next_address(address, query, token=page[-1][0], sent=len(page))
    return as_json(envelope)


def _selected(whole: Entity, select: tuple[str, ...]) -> Entity:
    return {name: whole[name] for name in ("__metadata", *select)} if select else whole


def _after(found: Iterable[Listed], token: str) -> Iterator[Listed]:
    reached = not token
    for listed in found:
        if reached:
            yield listed
        elif listed[0] == token:
            reached = True


def _next_address(address: str, query: Query, *, token: str, sent: int) -> str:
    options = [(name, value) for name, value in query.raw if name not in {"$skip", "$skiptoken", "$top"}]
    if query.top is not None:
        options.append(("$top", str(query.top - sent)))
    options.append(("$skiptoken", token))
    return f"{address}?" + "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in options)


_PLAIN = "$',()*:"


def _sort_key(name: str, listed: Listed) -> tuple[int, float, str]:
    value = listed[1].get(name)
    if isinstance(value, int | float):
        return (1, float(value), "")
    return (0, 0.0, "") if value is None else (2, 0.0, str(value))
