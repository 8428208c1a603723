"""Which company a row belongs to, and which companies take part."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from saasload.errors import UsageError
from saasload.source.partition import (
    ByColumn,
    CompanyInfo,
    Dealt,
    Refused,
    company_column,
    parse_company_file,
    pick_companies,
)

COMPANIES = [
    CompanyInfo("1001", {"Status": 1, "Country": "NL"}),
    CompanyInfo("1002", {"Status": 2, "Country": "NL"}),
    CompanyInfo("1003", {"Status": 1, "Country": "BE"}),
    CompanyInfo("007", {"Status": 1, "Country": None}),
]


def codes_of(values: Any, companies: list[str], known: list[str]) -> list[int]:
    """Assign one column of values."""
    batch = pa.record_batch({"company": values})
    codes = ByColumn(batch.schema, "company", companies=companies, known=known).codes(batch, 1)
    assert codes.type == pa.int32()
    return list(codes.to_pylist())


def picked(selection: str, limit: int | None = None) -> list[str]:
    """Pick from the four."""
    return [company.code for company in pick_companies(COMPANIES, selection, limit)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["1001", " 1002\t", None, "", "  ", "1003", "9", "1001.0"]),
        pa.array(["1001", " 1002\t", None, "", "  ", "1003", "9", "1001.0"], pa.large_string()),
    ],
)
def test_text_names_companies_without_its_spaces(values: Any) -> None:
    """Each way to have no company has its own code."""
    expected = [0, 1, Refused.NO_COMPANY, Refused.NO_COMPANY, Refused.NO_COMPANY]
    expected += [Refused.COMPANY_NOT_PICKED, Refused.UNKNOWN_COMPANY, Refused.UNKNOWN_COMPANY]

    assert codes_of(values, ["1001", "1002"], ["1001", "1002", "1003"]) == expected


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1002, 1001, None, 1003, 5], pa.int64()),
        pa.array([1002, 1001, None, 1003, 5], pa.uint16()),
        pa.array([1002.0, 1001.0, None, 1003.0, 5.5]),
        pa.array([1002.0, 1001.0, None, 1003.0, 5.5], pa.float32()),
        pa.array([1002.0, 1001.0, None, 1003.0, 5.5], pa.float16()),
        pa.array([Decimal("1002.00"), Decimal("1001.00"), None, Decimal("1003.00"), Decimal("5.50")]),
    ],
)
def test_numbers_name_companies_without_a_fraction(values: Any) -> None:
    """1001.0, as a column with gaps often has it, is 1001."""
    expected = [1, 0, Refused.NO_COMPANY, Refused.COMPANY_NOT_PICKED, Refused.UNKNOWN_COMPANY]

    assert codes_of(values, ["1001", "1002"], ["1003"]) == expected


def test_numbers_that_are_none_name_no_company() -> None:
    """Not a number, infinite, or too large to be exact: unknown, never a crash."""
    values = pa.array([float("nan"), float("inf"), 1e300, -1.0])

    assert codes_of(values, ["1001"], []) == [Refused.UNKNOWN_COMPANY] * 4


def test_leading_zeros_are_part_of_a_code() -> None:
    """007 is not 7."""
    assert codes_of(pa.array(["007", "7"]), ["007"], []) == [0, Refused.UNKNOWN_COMPANY]


def test_an_empty_column_names_no_company() -> None:
    """A column of nulls has no type; all its rows are refused."""
    assert codes_of(pa.nulls(2), ["1001"], []) == [Refused.NO_COMPANY] * 2


@pytest.mark.parametrize("values", [pa.array([True]), pa.array([b"1001"]), pa.array([["1001"]])])
def test_a_column_of_something_else_is_refused(values: Any) -> None:
    """Companies are named by text or numbers."""
    with pytest.raises(UsageError, match="column 'company' holds"):
        codes_of(values, ["1001"], [])


def test_every_refusal_has_a_word() -> None:
    """The words programs know."""
    words = ["no-company", "unknown-company", "company-not-picked", "unreadable"]

    assert [refused.reason for refused in Refused] == words


@pytest.mark.parametrize(("count", "rows"), [(1, 10), (3, 10), (10, 3), (7, 7)])
def test_dealing_goes_by_row_number(count: int, rows: int) -> None:
    """Whatever the batches, row n goes to company (n - 1) modulo the number of companies."""
    assign = Dealt([str(place) for place in range(count)])
    found: list[int] = []
    for size in (rows, 1, 5 * rows, 2):
        batch = pa.record_batch({"x": pa.nulls(size)})
        found += assign.codes(batch, len(found) + 1).to_pylist()

    assert found == [row % count for row in range(len(found))]


def test_dealing_needs_a_company() -> None:
    """Rows must go somewhere."""
    with pytest.raises(UsageError, match="no company"):
        Dealt([])


def test_the_company_column_is_found() -> None:
    """By its name, in any case; by default the one called company, if there is one."""
    assert company_column(["id", "Company "]) == "Company "
    assert company_column(["id", "Division"], "division") == "Division"
    assert company_column(["id"]) is None
    with pytest.raises(UsageError, match="no column 'divsion'; did you mean 'Division'"):
        company_column(["id", "Division"], "divsion")


@pytest.mark.parametrize(
    ("selection", "limit", "codes"),
    [
        ("all", None, ["1001", "1002", "1003", "007"]),
        (" ALL ", 2, ["1001", "1002"]),
        ("1003, 1001,1003", None, ["1003", "1001"]),
        ("007", None, ["007"]),
        ("Status = 1", None, ["1001", "1003", "007"]),
        ("status = 1 and Country = 'NL'", None, ["1001"]),
        ("code like '100%'", 3, ["1001", "1002", "1003"]),
        ("Country is null", None, ["007"]),
    ],
)
def test_companies_are_picked(selection: str, limit: int | None, codes: list[str]) -> None:
    """All, by code, by query; the first so many."""
    assert picked(selection, limit) == codes


def test_a_file_of_codes_picks_companies() -> None:
    """One a line, comments left out; the reading is the caller's."""
    read = {"mine.txt": "\ufeff# ours\n1002 # two\r\n\n 1001\n1002\n"}.__getitem__

    assert [company.code for company in pick_companies(COMPANIES, "@mine.txt", None, read_text=read)] == [
        "1002",
        "1001",
    ]
    assert parse_company_file("# none\n") == []


def test_a_company_told_twice_is_there_once() -> None:
    """The first telling counts."""
    twice = [CompanyInfo("1", {"a": 1}), CompanyInfo("1", {"a": 2})]

    assert pick_companies(twice, "all", None) == [twice[0]]


def test_a_code_that_looks_like_a_query_is_a_code() -> None:
    """What the target calls a company comes first."""
    odd = [CompanyInfo("A=B"), CompanyInfo("C")]

    assert [company.code for company in pick_companies(odd, "A=B", None)] == ["A=B"]


@pytest.mark.parametrize(
    ("selection", "limit", "words"),
    [
        ("1001,1044", None, "company '1044': the target does not have it; did you mean"),
        ("x,y", None, r"company 'x': .* \(and 1 more unknown\)"),
        ("all", 5, "5 companies asked for, only 4 to pick from"),
        ("all", 0, "0 companies asked for; at least 1"),
        ("Status = 9", None, "none of the target's 4 companies"),
        (",", None, "none of the target's 4 companies"),
        ("", None, "none of the target's 4 companies"),
        ("Statu = 1", None, "no field 'Statu'; did you mean 'Status'"),
        ("@codes.txt", None, "a file cannot be read here"),
    ],
)
def test_what_cannot_be_picked_is_said(selection: str, limit: int | None, words: str) -> None:
    """Each mistake has its sentence."""
    with pytest.raises(UsageError, match=words):
        picked(selection, limit)


@pytest.mark.parametrize("selection", ["all", "Status = 1"])
def test_a_target_without_companies_has_none_to_pick(selection: str) -> None:
    """Not a crash, and not a complaint about fields."""
    with pytest.raises(UsageError, match="none of the target's 0 companies"):
        pick_companies([], selection, None)
