"""Reads: entities, lists of them in pages, and counts."""

from collections.abc import Iterable, Iterator
from functools import partial
from urllib.parse import quote

from mock_server.entities import ENTITIES, Entity
from mock_server.ledger import Book
from mock_server.metadata import metadata, service_document
from mock_server.odata import Query, QueryError, matches, parse_query, wanted_keys
from mock_server.replies import ATOM_SVC, PLAIN, XML, Asked, Reply, as_json, error
from mock_server.routes import Route
from mock_server.rows import shown
from mock_server.world import World

_ME = frozenset({
    "CurrentDivision", "AccountingDivision", "UserID", "FullName", "UserName", "Email", "Language", "LanguageCode",
    "ServerTime", "ServerUtcOffset", "Legislation",
})  # fmt: skip

Shown = dict[str, object]
Listed = tuple[str, Shown]
"""An entity and the token with which a page after it begins."""


def read(world: World, route: Route, asked: Asked) -> Reply:
    """Answer a GET."""
    try:
        return _read(world, route, asked)
    except QueryError as failure:
        return error(400, str(failure))


def _read(world: World, route: Route, asked: Asked) -> Reply:
    match route.kind:
        case "me":
            reply = _me(world, asked)
        case "metadata":
            reply = Reply(200, metadata(route.service), XML)
        case "service":
            reply = Reply(200, service_document(route.service, f"{asked.base}{route.path}"), ATOM_SVC)
        case _ if route.entity.key == "Code":
            reply = _divisions(world, route, asked)
        case "set":
            reply = _set(world, route, asked)
        case "count":
            query = _parse(asked, route.entity)
            total = sum(1 for _ in _find(world.ledger.book(route.company, route.entity), query, asked.base))
            reply = Reply(200, str(total).encode(), PLAIN)
        case _:
            reply = _one(world, route, asked)
    return reply


def entity(book: Book, number: int, base: str) -> Shown:
    """Return a row as an entity with every property, its lines deferred."""
    spec, fields = book.entity, book.whole(number)
    uri = f"{base}{book.path}(guid'{book.guid(number)}')"
    found: Shown = {"__metadata": {"uri": uri, "type": spec.type_name}}
    for name in spec.shown:
        found[name] = shown(spec, name, fields.get(name))
    for name in spec.lines:
        found[name] = {"__deferred": {"uri": f"{uri}/{name}"}}
    return found


def _parse(asked: Asked, spec: Entity) -> Query:
    return parse_query(asked.query, spec.known, type_name=spec.name, lines=frozenset(spec.lines))


def _one(world: World, route: Route, asked: Asked) -> Reply:
    book = world.ledger.book(route.company, route.entity)
    query = _parse(asked, route.entity)
    number = book.number(route.key)
    if number is None:
        return error(404, f"Resource not found for the segment '{route.entity.set}'.")
    if route.lines:
        own = world.ledger.book(route.company, ENTITIES[route.entity.lines[route.lines]])
        query = _parse(asked, own.entity)
        found = ((own.guid(line), entity(own, line, asked.base)) for line in own.lines_of(number))
        return _list((one for one in found if query.where is None or matches(query.where, one[1])), query,
                     page_rows=world.scenario.page_rows, address=f"{asked.base}{route.path}")  # fmt: skip
    whole = entity(book, number, asked.base)
    _expand(world, book, number, whole, query, asked.base)
    return as_json(_selected(whole, query.select))


def _expand(world: World, book: Book, number: int, whole: Shown, query: Query, base: str) -> None:
    for name in query.expand:
        own = world.ledger.book(book.company, ENTITIES[book.entity.lines[name]])
        whole[name] = {"results": [entity(own, line, base) for line in own.lines_of(number)]}


def _set(world: World, route: Route, asked: Asked) -> Reply:
    if route.whole_pages and not any(word in asked.query for word in (b"$select=", b"%24select=", b"$top=1")):
        return error(400, "Please add a $select or a $top=1 statement to the query string.")
    query = _parse(asked, route.entity)
    book = world.ledger.book(route.company, route.entity)
    if world.scenario.filter_needed and query.where is None and query.top is None and not route.whole_pages:
        names = ", ".join(("ID", *route.entity.code, *route.entity.mandatory[:1]))
        return error(400, f"This endpoint has mandatory filtering applied. Filter on one of: {names}")
    found = _find(book, query, asked.base)
    if query.expand:
        found = _expanded(world, book, found, query, asked.base)
    page_rows = world.scenario.bulk_page_rows if route.whole_pages else world.scenario.page_rows
    return _list(found, query, page_rows=page_rows, address=f"{asked.base}{route.path}")


def _expanded(world: World, book: Book, found: Iterator[Listed], query: Query, base: str) -> Iterator[Listed]:
    for token, whole in found:
        number = book.number(token[5:-1])
        if number is not None:
            _expand(world, book, number, whole, query, base)
        yield token, whole


def _find(book: Book, query: Query, base: str) -> Iterator[Listed]:
    """Yield the rows that a query asks for, whole."""
    spec = book.entity
    numbers: Iterable[int] = book.numbers()
    codes = wanted_keys(query.where, spec.code[0]) if len(spec.code) == 1 and spec.code_width else None
    guids = wanted_keys(query.where, spec.key)
    if codes is not None:
        wanted = {code.strip() for code in codes if code.strip().rjust(spec.code_width) == code}
        doubled = any(book.surplus.get(code) for code in wanted)
        rows = (n for n in numbers if book.codes[n] in wanted) if doubled else map(book.index.get, wanted)
        numbers = sorted(number for number in rows if number is not None)
    elif guids is not None:
        numbers = sorted(number for guid in set(guids) if (number := book.number(guid)) is not None)
    else:
        numbers = _after_token(book, numbers, query.after)
    for number in numbers:
        whole = entity(book, number, base)
        if codes is None and guids is None and query.where is not None and not matches(query.where, whole):
            continue
        yield f"guid'{book.guid(number)}'", whole


def _after_token(book: Book, numbers: Iterable[int], token: str) -> Iterable[int]:
    """Begin at the row of a page's token: what stands before it need not be read again."""
    start = book.number(token[5:-1]) if token.startswith("guid'") else None
    return numbers if start is None else (number for number in range(start, len(book.rows)) if book.rows[number])


def _divisions(world: World, route: Route, asked: Asked) -> Reply:
    spec = route.entity
    query = parse_query(asked.query, spec.known, type_name=spec.name)
    found: list[Listed] = []
    for company in world.companies.values():
        fields = {name: value for name, value in company.fields().items() if name in spec.fields}
        if query.where is None or matches(query.where, fields):
            uri = f"{asked.base}/api/v1/{company.code}/{spec.resource}({company.code})"
            found.append((str(company.code), {"__metadata": {"uri": uri, "type": spec.type_name}, **fields}))
    if route.kind == "count":
        return Reply(200, str(len(found)).encode(), PLAIN)
    return _list(
        found, query, page_rows=world.scenario.page_rows, address=f"{asked.base}/api/v1/current/{spec.resource}"
    )


def _me(world: World, asked: Asked) -> Reply:
    query = parse_query(asked.query, _ME, type_name="Me")
    first = next(iter(world.companies))
    dutch = world.scenario.language == "nl"
    me: Shown = {
        "__metadata": {"uri": f"{asked.base}/api/v1/current/Me", "type": "Platform.System.Me"},
        "CurrentDivision": first,
        "AccountingDivision": first,
        "UserID": "00000000-0000-4000-8000-000000000001",
        "UserName": "mock",
        "FullName": "Mock User",
        "Email": "mock@example.org",
        "Language": "nl-NL" if dutch else "en-GB",
        "LanguageCode": "nl-NL" if dutch else "en-GB",
        "ServerTime": f"/Date({int(world.clock.wall_s() * 1000)})/",
        "ServerUtcOffset": 0,
        "Legislation": 1,
    }
    return as_json({"results": [_selected(me, query.select)]})


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
    envelope: Shown = {"results": entities}
    if query.count:
        envelope["__count"] = str(total)
    if more:
        envelope["__next"] = _next_address(address, query, token=page[-1][0], sent=len(page))
    return as_json(envelope)


def _selected(whole: Shown, select: tuple[str, ...]) -> Shown:
    return {name: whole[name] for name in ("__metadata", *select) if name in whole} if select else whole


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
