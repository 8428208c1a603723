"""Ask which companies, in words: `Status = 1 and Country in ("NL", "BE")`.

    query      = and-part { "or" and-part }
    and-part   = not-part { "and" not-part }
    not-part   = "not" not-part | "(" query ")" | field test
    test       = operator value | ["not"] "in" "(" value { "," value } ")" | ["not"] "like" text | "is" ["not"] "null"
    operator   = "=" | "<>" | "!=" | "<" | "<=" | ">" | ">="
    value      = number | text in single or double quotes | "true" | "false"

Words and field names may be in any case; text is compared exactly. A number is compared as a number, also with a field
that holds digits as text. A field without a value answers no comparison, not even `<>` (as in SQL): ask `is null`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import NoReturn

from saasload.errors import UsageError

Predicate = Callable[[Mapping[str, object]], bool]
"""Answers for one company's fields."""

# True, False or nobody knows
_Test = Callable[[Mapping[str, object]], bool | None]
_Value = Decimal | str | bool

_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>-?[0-9]+(?:\.[0-9]+)?(?![\w.]))
  | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<sign><>|!=|<=|>=|=|<|>|\(|\)|,)
  | (?P<word>\w+(?:[.\-]\w+)*)
    )""",
    re.VERBOSE,
)
_QUERY = re.compile(r"[=<>]|\b(?:in|like|is|not|and|or)\b", re.IGNORECASE)
_COMPARE: Mapping[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def looks_like_query(text: str) -> bool:
    """Tell a query from a list of codes.

    >>> looks_like_query("Status = 1"), looks_like_query("1001, 1002")
    (True, False)
    """
    return _QUERY.search(text) is not None


def parse_query(text: str, fields: Collection[str] | None = None) -> Predicate:
    """Return what the query asks; only `fields` may be asked about, None for any.

    >>> parse_query("Status = 1 and Country like 'N%'", ["Status", "Country"])({"Status": "1", "Country": "NL"})
    True
    """
    test = _Parser(text, fields).query()

    def answer(values: Mapping[str, object]) -> bool:
        return test({name.casefold(): value for name, value in values.items()}) is True

    return answer


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the query: `kind` is number, text, sign, word or end."""

    kind: str
    text: str
    place: int

    @property
    def plain(self) -> str:
        """The text for comparing; quoted text keeps its quotes, so it is never a word."""
        return self.text.casefold()


def _fail(token: _Token, expected: str) -> NoReturn:
    """Say where it went wrong."""
    found = f"found {token.text!r}" if token.kind != "end" else "found the end"
    message = f"query, position {token.place + 1}: expected {expected}, {found}"
    raise UsageError(message)


def _tokens(text: str) -> list[_Token]:
    """Cut the query into pieces."""
    tokens = []
    place = 0
    end = len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            if text[start] in "'\"":
                _fail(_Token("text", text[start:], start), "a closing quote")
            _fail(_Token("sign", text[start], start), "a field, a value or an operator")
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        place = match.end()
    return [*tokens, _Token("end", "", len(text))]


class _Parser:
    """Recursive descent over the pieces."""

    def __init__(self, text: str, fields: Collection[str] | None) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self._fields = None if fields is None else {name.casefold(): name for name in fields}

    def query(self) -> _Test:
        """Read it all."""
        test = self._or()
        if self._next.kind != "end":
            _fail(self._next, "'and', 'or' or the end")
        return test

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _took(self, *words: str) -> bool:
        """Take the next piece if it is one of these."""
        if self._next.plain in words:
            self._at += 1
            return True
        return False

    def _need(self, word: str) -> None:
        if not self._took(word):
            _fail(self._next, repr(word))

    def _or(self) -> _Test:
        tests = [self._and()]
        while self._took("or"):
            tests.append(self._and())
        return tests[0] if len(tests) == 1 else _any_of(tests)

    def _and(self) -> _Test:
        tests = [self._not()]
        while self._took("and"):
            tests.append(self._not())
        return tests[0] if len(tests) == 1 else _all_of(tests)

    def _not(self) -> _Test:
        token = self._next
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            _fail(token, f"at most {_MAX_DEPTH} levels of parentheses and 'not'")
        if self._took("not"):
            test = _negated(self._not())
        elif self._took("("):
            test = self._or()
            self._need(")")
        else:
            test = self._test()
        self._depth -= 1
        return test

    def _test(self) -> _Test:
        token = self._take()
        if token.kind != "word":
            _fail(token, "a field, 'not' or '('")
        name = self._field(token)
        operator = self._next
        if operator.text in _COMPARE:
            self._at += 1
            return _compared(name, operator.text, self._value())
        if self._took("is"):
            negated = self._took("not")
            self._need("null")
            return _is_null(name) if not negated else _negated(_is_null(name))
        negated = self._took("not")
        if self._took("in"):
            test = self._in(name)
        elif self._took("like"):
            test = _like(name, self._pattern())
        else:
            _fail(self._next, "'in' or 'like'" if negated else "an operator such as =, in, like or is")
        return _negated(test) if negated else test

    def _in(self, name: str) -> _Test:
        self._need("(")
        tests = [_compared(name, "=", self._value())]
        while self._took(","):
            tests.append(_compared(name, "=", self._value()))
        self._need(")")
        return _any_of(tests)

    def _pattern(self) -> str:
        token = self._take()
        if token.kind != "text":
            _fail(token, "a text in quotes, such as 'A%'")
        return _unquoted(token.text)

    def _value(self) -> _Value:
        token = self._take()
        if token.kind == "number":
            return Decimal(token.text)
        if token.kind == "text":
            return _unquoted(token.text)
        if token.plain in ("true", "false"):
            return token.plain == "true"
        hint = " (for null: 'is null')" if token.plain == "null" else ""
        _fail(token, f"a number, a text in quotes, true or false{hint}")

    def _field(self, token: _Token) -> str:
        """Return the field's name in plain letters, if there is one."""
        name = token.text.casefold()
        if self._fields is None or name in self._fields:
            return name
        near = get_close_matches(name, self._fields, n=1, cutoff=0.5)
        hint = f"did you mean {self._fields[near[0]]!r}?" if near else f"there are {', '.join(self._fields.values())}"
        message = f"query, position {token.place + 1}: no field {token.text!r}; {hint}"
        raise UsageError(message)


def _unquoted(text: str) -> str:
    """Take the quotes off."""
    return text[1:-1].replace(text[0] * 2, text[0])


def _any_of(tests: Sequence[_Test]) -> _Test:
    def any_of(values: Mapping[str, object]) -> bool | None:
        answers = [test(values) for test in tests]
        return True if True in answers else None if None in answers else False

    return any_of


def _all_of(tests: Sequence[_Test]) -> _Test:
    def all_of(values: Mapping[str, object]) -> bool | None:
        answers = [test(values) for test in tests]
        return False if False in answers else None if None in answers else True

    return all_of


def _negated(test: _Test) -> _Test:
    def negated(values: Mapping[str, object]) -> bool | None:
        answer = test(values)
        return None if answer is None else not answer

    return negated


def _is_null(name: str) -> _Test:
    return lambda values: values.get(name) is None


def _like(name: str, pattern: str) -> _Test:
    def like(values: Mapping[str, object]) -> bool | None:
        value = values.get(name)
        return None if value is None else matches(_text(value), pattern)

    return like


def _compared(name: str, operator: str, wanted: _Value) -> _Test:
    holds = _COMPARE[operator]

    def compared(values: Mapping[str, object]) -> bool | None:
        order = _order(values.get(name), wanted)
        return None if order is None else holds(order)

    return compared


def _order(value: object, wanted: _Value) -> int | None:
    """Compare as the wanted value's kind: below 0, 0, above 0, or None where they cannot be compared."""
    if value is None:
        return None
    if isinstance(wanted, Decimal):
        number = _number(value)
        return None if number is None else (number > wanted) - (number < wanted)
    text = _text(value)
    if isinstance(wanted, bool):
        truth = {"true": True, "1": True, "false": False, "0": False}.get(text.casefold())
        return None if truth is None else truth - wanted
    return (text > wanted) - (text < wanted)


def _number(value: object) -> Decimal | None:
    """Return the value as a number, if it is one."""
    try:
        number = Decimal(_text(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _text(value: object) -> str:
    """Return the value as text."""
    return str(value).casefold() if isinstance(value, bool) else str(value)


def matches(text: str, pattern: str) -> bool:
    """Match SQL's way: % is any text, _ any one sign; in time that grows with length times length, never worse.

    >>> matches("Delft", "De%"), matches("Delft", "_elf")
    (True, False)
    """
    at = place = 0
    star, mark = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            star, mark = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at += 1
            place += 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(sign == "%" for sign in pattern[place:])
