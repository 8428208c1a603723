"""Query options: the part of OData that reads the platform's lists."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from mock_server.rows import epoch_ms

SYNTAX = "Bad Request - Error in query syntax."
_MAX_DEPTH = 40
_OPTIONS = frozenset(
    {"$filter", "$select", "$top", "$skip", "$inlinecount", "$skiptoken", "$orderby", "$format", "$expand"}
)
_TOKEN = re.compile(
    r"\s*(?:(?P<open>\()|(?P<close>\))|guid'(?P<guid>[^']*)'|datetime'(?P<date>[^']*)'|'(?P<text>(?:[^']|'')*)'"
    r"|(?P<number>-?\d{1,25}(?:\.\d{1,25})?)[LlMmDdFf]?(?![\w.])|(?P<word>[A-Za-z_]\w*))"
)
_COMPARE: Mapping[str, Callable[[object, object], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: _ordered(a, b) and a > b,  # type: ignore[operator]
    "ge": lambda a, b: _ordered(a, b) and a >= b,  # type: ignore[operator]
    "lt": lambda a, b: _ordered(a, b) and a < b,  # type: ignore[operator]
    "le": lambda a, b: _ordered(a, b) and a <= b,  # type: ignore[operator]
}


class QueryError(Exception):
    """The query cannot be answered: 400, with the text of the exception."""


@dataclass(frozen=True, slots=True)
class Compare:
    """A field held against a literal; `kind` tells how the literal was written."""

    field: str
    operator: str
    literal: object
    kind: str


@dataclass(frozen=True, slots=True)
class Junction:
    """Several conditions joined by `and` or `or`, or one after `not`."""

    word: str
    terms: tuple["Condition", ...]


Condition = Compare | Junction


@dataclass(frozen=True, slots=True)
class Query:
    """The options of one read."""

    where: Condition | None = None
    select: tuple[str, ...] = ()
    top: int | None = None
    skip: int = 0
    count: bool = False
    after: str = ""
    order: tuple[tuple[str, bool], ...] = ()
    expand: tuple[str, ...] = ()
    raw: tuple[tuple[str, str], ...] = ()


def parse_query(
    raw: bytes, known: frozenset[str], *, type_name: str = "Entity", lines: frozenset[str] = frozenset()
) -> Query:
    """Read a query string; raise `QueryError` where it asks for what is not there.

    `known` are the properties of the type, `lines` those of them that hold other entities.
    """
    if not raw:
        return Query()
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise QueryError(SYNTAX) from error
    options = dict(pairs)
    if any(name.startswith("$") and name not in _OPTIONS for name in options) or len(options) != len(pairs):
        raise QueryError(SYNTAX)
    where = options.get("$filter", "").strip()
    names = _Names(known, type_name)
    return Query(
        where=_Filter(where, names, lines).parse() if where else None,
        select=_select(options.get("$select", ""), names, lines),
        top=_number(options["$top"]) if "$top" in options else None,
        skip=_number(options.get("$skip", "0")),
        count=options.get("$inlinecount") == "allpages",
        after=options.get("$skiptoken", ""),
        order=_order(options.get("$orderby", ""), names),
        expand=_expand(options.get("$expand", ""), lines, type_name),
        raw=tuple(pairs),
    )


def matches(condition: Condition, entity: Mapping[str, object]) -> bool:
    """Say whether an entity meets a condition."""
    if isinstance(condition, Compare):
        value = _comparable(entity.get(condition.field), condition.kind)
        return _COMPARE[condition.operator](value, condition.literal)
    if condition.word == "not":
        return not matches(condition.terms[0], entity)
    if condition.word == "and":
        return all(matches(term, entity) for term in condition.terms)
    return any(matches(term, entity) for term in condition.terms)


def wanted_keys(condition: Condition | None, field: str) -> list[str] | None:
    """Return the values when a condition only asks for `field` being this or that, else None."""
    terms = condition.terms if isinstance(condition, Junction) and condition.word == "or" else (condition,)
    found = [
        str(term.literal)
        for term in terms
        if isinstance(term, Compare) and term.field == field and term.operator == "eq" and term.kind in {"text", "guid"}
    ]
    return found if len(found) == len(terms) else None


def _comparable(value: object, kind: str) -> object:
    if value is None:
        return None
    if kind == "date":
        return epoch_ms(value)
    if kind == "text":
        return str(value).rstrip(" ")
    if kind == "guid":
        return str(value).lower()
    if kind == "number" and isinstance(value, str):
        return float(value) if re.fullmatch(r"-?\d+(\.\d+)?", value) else value
    return value


def _ordered(left: object, right: object) -> bool:
    return (isinstance(left, str) and isinstance(right, str)) or (
        isinstance(left, int | float) and isinstance(right, int | float)
    )


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise QueryError(SYNTAX)
    return int(text)


@dataclass(frozen=True, slots=True)
class _Names:
    """The properties that a type has."""

    known: frozenset[str]
    type_name: str

    def check(self, name: str) -> None:
        if name not in self.known:
            message = f"No property {name[:60]} exists in type {self.type_name} at position 0."
            raise QueryError(message)


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _select(text: str, names: _Names, lines: frozenset[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for path in _split(text):
        name = path.partition("/")[0] if path.partition("/")[0] in lines else path
        if name != "*":
            names.check(name)
        found[name] = None
    return () if "*" in found else tuple(found)


def _expand(text: str, lines: frozenset[str], type_name: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(_split(text)))
    for name in found:
        if name not in lines:
            message = f"Could not find a navigation property {name[:60]} in type {type_name}."
            raise QueryError(message)
    return found


def _order(text: str, names: _Names) -> tuple[tuple[str, bool], ...]:
    found = []
    for term in _split(text):
        name, _, direction = term.partition(" ")
        if direction.strip() not in {"", "asc", "desc"}:
            raise QueryError(SYNTAX)
        names.check(name)
        found.append((name, direction.strip() == "desc"))
    return tuple(found)


class _Filter:
    """A reader of conditions: or of ands of nots of comparisons."""

    def __init__(self, text: str, names: _Names, lines: frozenset[str]) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0
        self._names = names
        self._lines = lines

    def parse(self) -> Condition:
        condition = self._junction("or", 0)
        if self._place != len(self._tokens):
            raise QueryError(SYNTAX)
        return condition

    def _junction(self, word: str, depth: int) -> Condition:
        terms = [self._term(word, depth)]
        while self._peek() == ("word", word):
            self._place += 1
            terms.append(self._term(word, depth))
        return terms[0] if len(terms) == 1 else Junction(word, tuple(terms))

    def _term(self, word: str, depth: int) -> Condition:
        return self._junction("and", depth) if word == "or" else self._unary(depth)

    def _unary(self, depth: int) -> Condition:
        if depth > _MAX_DEPTH:
            raise QueryError(SYNTAX)
        if self._peek() == ("word", "not"):
            self._place += 1
            return Junction("not", (self._unary(depth + 1),))
        if self._peek()[0] == "open":
            self._place += 1
            condition = self._junction("or", depth + 1)
            if self._take()[0] != "close":
                raise QueryError(SYNTAX)
            return condition
        return self._comparison()

    def _comparison(self) -> Condition:
        (kind, field), (_, operator), (literal_kind, text) = self._take(), self._take(), self._take()
        if kind != "word" or operator not in _COMPARE:
            raise QueryError(SYNTAX)
        self._names.check(field)
        if field in self._lines:
            message = f"Filtering on these fields is not supported: {field}"
            raise QueryError(message)
        return Compare(field, operator, *_literal(literal_kind, text))

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._place] if self._place < len(self._tokens) else ("end", "")

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._place += 1
        return token


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, text = 0, text.rstrip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise QueryError(SYNTAX)
        yield found.lastgroup, found[found.lastgroup]
        place = found.end()


def _literal(kind: str, text: str) -> tuple[object, str]:
    match kind:
        case "text":
            return text.replace("''", "'").rstrip(" "), "text"
        case "guid":
            return text.lower(), "guid"
        case "number":
            return (float(text) if "." in text else int(text)), "number"
        case "date":
            ms = epoch_ms(text)
            if ms is None:
                raise QueryError(SYNTAX)
            return ms, "date"
        case "word" if text in {"true", "false", "null"}:
            return {"true": True, "false": False, "null": None}[text], "word"
        case _:
            raise QueryError(SYNTAX)
