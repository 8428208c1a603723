"""The query language over companies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.errors import UsageError
from saasload.source.query import looks_like_query, matches, parse_query

FIELDS = {
    "Code": "1001",
    "Status": 1,
    "Name": "Café 'O' \"x\"",
    "Country": "NL",
    "Size": "12.50",
    "Gone": None,
    "On": True,
    "Odd": "nan",
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Status = 1", True),
        ("STATUS=1", True),
        ("Status <> 1", False),
        ("Status != 2", True),
        ("Status < 2", True),
        ("Status <= 0", False),
        ("Status > -1.5", True),
        ("Status >= 1.0", True),
        ("Size = 12.5", True),
        ("Size > 9", True),
        ("Country = 'NL'", True),
        ('Country = "nl"', False),
        ("Country < 'NM'", True),
        ("Status = '1'", True),
        ("Country = 1", False),
        ("not Country = 1", False),
        ("Country in ('BE', 'NL')", True),
        ("Status in (2, 3)", False),
        ("Status not in (2, 3)", True),
        ("Country like 'N%'", True),
        ("Country not like 'N%'", False),
        ("Country like '_'", False),
        ("Name = 'Café ''O'' \"x\"'", True),
        ('Name = "Café \'O\' ""x"""', True),
        ("Gone is null", True),
        ("Gone is not null", False),
        ("Country is not null", True),
        ("Gone = 1", False),
        ("Gone <> 1", False),
        ("Gone <> 'x'", False),
        ("Odd <> 1", False),
        ("Odd > 1", False),
        ("not Gone = 1", False),
        ("Gone = 1 or Status = 1", True),
        ("Gone not in (1)", False),
        ("On = true", True),
        ("On = 'true'", True),
        ("Status = true", True),
        ("On <> false", True),
        ("Status = 2 and Country = 'NL' or Code = '1001'", True),
        ("Status = 2 and (Country = 'NL' or Code = '1001')", False),
        ("not (Status = 2 or Country = 'BE')", True),
        ("not not Status = 1", True),
        ("  Status = 1  ", True),
    ],
)
def test_a_query_answers(query: str, expected: bool) -> None:
    """Each operator, precedence, quotes, numbers as text, and what null does."""
    assert parse_query(query, FIELDS)(FIELDS) is expected


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", r"position 1: expected a field, 'not' or '\(', found the end"),
        ("Status", "position 7: expected an operator such as =, in, like or is, found the end"),
        ("Status =", "position 9: expected a number, a text in quotes, true or false, found the end"),
        ("Status = NL", "position 10: expected a number, a text in quotes, true or false, found 'NL'"),
        ("Status = null", "position 10: expected .* found 'null'"),
        ("Status == 1", "position 9: expected a number"),
        ("Status = 1 Country = 'NL'", "position 12: expected 'and', 'or' or the end, found 'Country'"),
        ("(Status = 1", r"position 12: expected '\)', found the end"),
        ("Status in 1", r"position 11: expected '\(', found '1'"),
        ("Status in ()", r"position 12: expected a number, .* found '\)'"),
        ("Status is 1", "position 11: expected 'null', found '1'"),
        ("Status not = 1", "position 12: expected 'in' or 'like', found '='"),
        ("Country like 1", "position 14: expected a text in quotes"),
        ("Country = 'NL", "position 11: expected a closing quote"),
        ("Status = 1 ; drop", "position 12: expected a field, a value or an operator, found ';'"),
        ("Statsu = 1", "position 1: no field 'Statsu'; did you mean 'Status'?"),
        ("Zzzz = 1", "position 1: no field 'Zzzz'; there are Code, Status, Name"),
        ("(" * 1000 + "Status = 1", "at most 40 levels"),
        ("not " * 1000 + "Status = 1", "at most 40 levels"),
    ],
)
def test_a_mistake_is_placed(query: str, words: str) -> None:
    """The message says where, what was expected and what was found."""
    with pytest.raises(UsageError, match=words):
        parse_query(query, FIELDS)


def test_a_quoted_word_is_not_a_keyword() -> None:
    """Text stays text."""
    assert parse_query("Country <> 'and'", FIELDS)(FIELDS)
    with pytest.raises(UsageError):
        parse_query("Status = 1 'and' Status = 1", FIELDS)


def test_long_chains_do_not_sink() -> None:
    """A thousand alternatives are read in a loop."""
    query = " or ".join(f"Code = '{code}'" for code in range(2, 1002))

    assert parse_query(query, FIELDS)(FIELDS)


def test_like_is_quick_on_hostile_patterns() -> None:
    """Backtracking over many stars would take years."""
    assert not matches("a" * 2000, "%a" * 200 + "b")


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [("abc", "abc", True), ("abc", "a%", True), ("abc", "%c", True), ("abc", "%b%", True), ("abc", "a_c", True),
     ("abc", "", False), ("", "%", True), ("", "", True), ("a.c", "a.c", True), ("abc", "a.c", False),
     ("aXbXc", "a%X_", True), ("50%", "50%", True), ("a\nb", "a%b", True)],
)  # fmt: skip
def test_like(text: str, pattern: str, expected: bool) -> None:
    """% is any text, _ one sign, nothing else is special."""
    assert matches(text, pattern) is expected


@pytest.mark.parametrize("text", ["1001", "1001,1002", "A-1 ,B_2", "inland", "ORANGE"])
def test_codes_are_no_queries(text: str) -> None:
    """Words only count as words."""
    assert not looks_like_query(text)


PIECES = st.sampled_from(
    ["Status", "Country", "Gone", "On", "zz", "=", "<>", "<", ">=", "in", "not", "like", "is", "null", "and", "or", "(",
     ")", ",", "1", "-2.5", "'NL'", '"x', "'", "true", "%", "1e5", "\x00", "é", "٣"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map(" ".join)))
def test_any_text_is_a_query_or_a_usage_error(text: str) -> None:
    """Nothing else ever comes out, when read or when asked."""
    try:
        answer = parse_query(text, FIELDS)
    except UsageError:
        return
    assert answer(FIELDS) in (True, False)
    assert answer({}) in (True, False)
