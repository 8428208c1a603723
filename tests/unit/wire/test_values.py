"""Source columns as the values that fields take."""
# ruff: noqa: DTZ001 - columns without a zone hold just that

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.profile import FieldSpec
from saasload.wire.values import Table, tabulate, utf16_units

Type = Literal["text", "integer", "decimal", "date", "datetime", "bool", "guid"]
TYPES: tuple[Type, ...] = ("text", "integer", "decimal", "date", "datetime", "bool", "guid")
BAD = "does-not-fit"


def table(array: Any, spec: FieldSpec) -> Table:
    """Convert one column."""
    return tabulate(pa.record_batch({"column": array}), range(len(array)), {"Field": ("column", spec)})


def outcome(array: Any, kind: Type) -> tuple[Sequence[Any], Mapping[int, str]]:
    """Convert one column; its values, and what is wrong by place."""
    made = table(array, FieldSpec(type=kind))
    assert made.columns[0].absent or None not in made.columns[0].values
    return list(made.columns[0].values), {place: note.reason for place, note in made.problems.items()}


def text(*values: str | None) -> Any:
    """Make a text column."""
    return pa.array(values, pa.string())


GUID = "6F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0"
D = Decimal

CASES: list[tuple[Type, Any, list[Any], set[int]]] = [
    # codes that look like numbers stay as they are (C21)
    ("text", text("007", "12E3", "+31", "TRUE", "NaN", " 5 ", "1.10", None, ""),
     ["007", "12E3", "+31", "TRUE", "NaN", " 5 ", "1.10", None, ""], set()),
    ("text", pa.array([7, -1, None]), ["7", "-1", None], set()),
    ("text", pa.array([D("1.50"), D("0E-10")], pa.decimal128(38, 10)), ["1.5000000000", "0.0000000000"], set()),
    ("text", pa.array([True, False, None]), ["true", "false", None], set()),
    ("text", pa.array([dt.date(2024, 2, 29)]), ["2024-02-29"], set()),
    ("text", pa.array([1.0, None]), [None, None], {0}),
    ("integer", text("12", "+5", "-0", "007", "1" * 18, None, ""), [12, 5, 0, 7, int("1" * 18), None, None], set()),
    ("integer", text("1.0", " 5", "12\n", "1" * 19, "--1", "٣", "1e3", "x"), [None] * 8, set(range(8))),
    ("integer", pa.array([2**63, 1], pa.uint64()), [2**63, 1], set()),
    ("integer", pa.array([1.0, 1.5, float("nan"), float("inf"), 1e30, None, -2.0]),
     [1, None, None, None, None, None, -2],
     {1, 2, 3, 4}),
    ("integer", pa.array([D("2.00"), D("2.50"), None], pa.decimal128(10, 2)), [2, None, None], {1}),
    ("integer", pa.array([D(1), D(10) ** 37], pa.decimal128(38, 0)), [1, None], {1}),
    ("integer", pa.array([1.0, 1.5, None], pa.float16()), [1, None, None], {1}),
    ("integer", pa.array([True]), [None], {0}),
    # decimals keep their digits and have no exponent (C19)
    ("decimal", pa.array([D("0"), D("0.0000000001"), None], pa.decimal128(18, 10)),
     ["0.0000000000", "0.0000000001", None], set()),
    ("decimal", pa.array([D(10) ** 37, D("-1")], pa.decimal128(38, 0)), ["1" + "0" * 37, "-1"], set()),
    ("decimal", pa.array([D("0"), D("0.000001")], pa.decimal128(38, 6)), ["0.000000", "0.000001"], set()),
    ("decimal", pa.array([D("0"), D("0.0000001")], pa.decimal128(38, 7)), ["0.0000000", "0.0000001"], set()),
    ("decimal", pa.array([D("1000")], pa.decimal128(5, -2)), ["1000"], set()),
    ("decimal", pa.array([D("1.5"), None], pa.decimal256(76, 10)), ["1.5000000000", None], set()),
    ("decimal", pa.array([1, 2**62]), ["1", str(2**62)], set()),
    ("decimal", pa.array([0.1, 1e22, 1e-7, -0.0, float("nan"), float("-inf"), None]),
     ["0.1", "1" + "0" * 22, "0.0000001", "-0", None, None, None], {4, 5}),
    ("decimal", pa.array([0.1, 16777216.0], pa.float32()), ["0.1", "16777216"], set()),
    ("decimal", text("1.50", "-0.5", "007", "-00.10", "0", "00", None, ""),
     ["1.50", "-0.5", "7", "-0.10", "0", "0", None, None], set()),
    ("decimal", text("1.", ".5", "1e3", "+1", "1,5", "0x1F", "1_000", "NaN", "1\n"), [None] * 9, set(range(9))),
    ("decimal", pa.array([True]), [None], {0}),
    ("date", text("2024-02-29", "9999-12-31", "0001-01-01", None, ""),
     ["2024-02-29", "9999-12-31", "0001-01-01", None, None], set()),
    ("date", text("2023-02-29", "2024-13-01", "2024-1-1", "0000-01-01", "2024-01-01T00:00:00", "29-02-2024"),
     [None] * 6, set(range(6))),
    ("date", text("2023-02-29", "2024-01-31", None), [None, "2024-01-31", None], {0}),
    ("date", pa.array([dt.date(1899, 12, 30), None]), ["1899-12-30", None], set()),
    ("date", pa.array([3_000_000, 1, -800_000], pa.int32()).cast(pa.date32()), [None, "1970-01-02", None], {0, 2}),
    ("date", pa.array([dt.datetime(2024, 1, 31, 23, 59)], pa.timestamp("us")), ["2024-01-31"], set()),
    ("date", pa.array([dt.datetime(2024, 1, 31, 23, 30)], pa.timestamp("us", "Europe/Amsterdam")),
     ["2024-02-01"], set()),
    ("date", pa.array([20240131]), [None], {0}),
    ("datetime", text("2024-02-29T23:59:59", "2024-02-29T23:59:59.5", None, ""),
     ["2024-02-29T23:59:59", "2024-02-29T23:59:59.5", None, None], set()),
    ("datetime", text("2024-02-30T00:00:00", "2024-02-29 23:59:59", "2024-02-29T24:00:00", "2024-02-29T23:59:59Z",
     "2024-02-29"),
     [None] * 5, set(range(5))),
    ("datetime", pa.array([dt.date(2024, 2, 29)]), ["2024-02-29T00:00:00"], set()),
    # a fraction of a second is kept to the millisecond, before 1970 too (C18), and is not written where there is none
    ("datetime", pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 500000), dt.datetime(2024, 1, 1)], pa.timestamp("ms")),
     ["1969-12-31T23:59:59.500", "2024-01-01T00:00:00"], set()),
    ("datetime", pa.array([-1, 1_500_000_001], pa.timestamp("ns")),
     ["1969-12-31T23:59:59.999", "1970-01-01T00:00:01.500"], set()),
    ("datetime", pa.array([dt.datetime(2024, 7, 1, 12)], pa.timestamp("s", "Europe/Amsterdam")),
     ["2024-07-01T14:00:00"], set()),
    ("bool", pa.array([True, False, None]), [True, False, None], set()),
    ("bool", text("true", "FALSE", " 1 ", "0", None, ""), [True, False, True, False, None, None], set()),
    ("bool", text("yes", "2", "ja", "wahr"), [None] * 4, set(range(4))),
    ("bool", pa.array([1, 0, 2, None]), [True, False, None, None], {2}),
    ("bool", pa.array([1.0]), [None], {0}),
    ("guid", text(GUID, GUID.lower(), None, ""), [GUID.lower(), GUID.lower(), None, None], set()),
    ("guid", text("{" + GUID + "}", GUID[:-1], "x"), [None] * 3, {0, 1, 2}),
    ("guid", pa.array([1]), [None], {0}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "array", "expected", "bad"), CASES)
def test_a_column_becomes_exact_values(kind: Type, array: Any, expected: list[Any], bad: set[int]) -> None:
    """Each type from each source type: the values, and the rows at fault."""
    assert outcome(array, kind) == (expected, dict.fromkeys(sorted(bad), BAD))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], None]),
        pa.array([{"a": 1}, None]),
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([b"x", None]),
        pa.array([dt.time(1, 2), None]),
        pa.array([dt.timedelta(1), None]),
    ],
    ids=["list", "struct", "map", "binary", "time", "duration"],
)
def test_nested_and_foreign_types_are_problems_of_their_rows(kind: Type, array: Any) -> None:
    """Never text in Python's own words (C32): a row with such a value is refused, one without is not."""
    assert outcome(array, kind) == ([None, None], {0: BAD})


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_of_nulls_is_absent_everywhere(kind: Type) -> None:
    """A column without a type has nothing that could be wrong."""
    assert outcome(pa.nulls(2), kind) == ([None, None], {})


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_all_forms_of_text_are_one(kind: Type, form: Any) -> None:
    """Dictionary, large and view columns convert as plain text does (C32)."""
    values = ["a", None, "", "12", "2024-02-29", "true", "2024-02-29T00:00:00", GUID, "1.5", "a"]

    assert outcome(pa.array(values, form), kind) == outcome(text(*values), kind)


@pytest.mark.parametrize("kind", TYPES)
def test_text_that_is_not_utf8_is_a_problem_of_its_row(kind: Type) -> None:
    """Bytes that no reader checked stop neither the load nor the rows beside them."""
    bytes_of = pa.py_buffer(b"1\xff1")
    offsets = pa.py_buffer(b"".join(number.to_bytes(4, "little") for number in (0, 1, 2, 3)))
    values, problems = outcome(pa.Array.from_buffers(pa.string(), 3, [None, offsets, bytes_of]), kind)

    assert values[1] is None
    assert problems[1] == BAD
    assert kind not in {"text", "integer", "decimal", "bool"} or set(problems) == {1}


@given(st.lists(st.floats() | st.integers(-(2**70), 2**70).map(float) | st.none(), min_size=1, max_size=20))
def test_one_float_out_of_range_spoils_no_other(values: list[float | None]) -> None:
    """A whole number converts, whatever stands beside it."""
    found, problems = outcome(pa.array(values, pa.float64()), "integer")

    for place, value in enumerate(values):
        whole = value is not None and value.is_integer() and -(2.0**63) <= value < 2.0**63
        if value is None:
            assert (found[place], place in problems) == (None, False)
        elif whole and abs(value) <= 2**53:
            assert (found[place], place in problems) == (int(value), False)
        elif not whole:
            assert (found[place], place in problems) == (None, True)


@given(
    st.lists(st.dates() | st.none(), min_size=1, max_size=10),
    st.sampled_from([pa.date32(), pa.date64(), pa.timestamp("s")]),
)
def test_every_date_is_written_as_iso(values: list[dt.date | None], form: Any) -> None:
    """From year 1 to 9999, four digits each."""
    array = pa.array([None if value is None else dt.datetime(value.year, value.month, value.day) for value in values],
                     pa.timestamp("s")).cast(form)  # fmt: skip

    assert outcome(array, "date") == ([value and value.isoformat() for value in values], {})


NAMES10 = [  # the case file of C28: eight names against a limit of 10 UTF-16 units
    ("abcdefghij", True), ("abcdefgh😀", True), ("abcdefghi😀", False), ("😀😀😀😀😀", True), ("😀😀😀😀😀x", False),
    ("e\u0301" * 5, True), ("👨\u200d👩\u200d👧", True), ("𠮷野家abcdef", True),
]  # fmt: skip


def test_length_is_counted_in_utf16_units() -> None:
    """As the platforms count (C28): names the field and both numbers."""
    made = table(text(*(name for name, _ in NAMES10)), FieldSpec(max_length=10))

    assert {place: note.reason for place, note in made.problems.items()} == {2: "too-long", 4: "too-long"}
    assert made.problems[2].message == "11 characters, Field takes 10"
    assert made.problems[2].field == "Field"


@given(st.lists(st.text(max_size=8) | st.none(), min_size=1, max_size=8), st.integers(1, 9))
def test_too_long_is_said_of_exactly_the_rows_that_are(values: list[str | None], limit: int) -> None:
    """Looking at all values at once finds the same as looking at each."""
    made = table(text(*values), FieldSpec(max_length=limit))
    too_long = {place for place, note in made.problems.items() if note.reason == "too-long"}
    forbidden = {place for place, note in made.problems.items() if note.reason == "invalid-character"}

    units = [0 if value is None else sum(2 if ord(sign) > 0xFFFF else 1 for sign in value) for value in values]
    assert [utf16_units(value or "") for value in values] == units
    assert too_long == {place for place, count in enumerate(units) if count > limit} - forbidden


@pytest.mark.parametrize(
    ("sign", "allowed"),
    [("\t", True), ("\n", True), ("\r", True), (" ", True), ("\x7f", True), ("\x85", True), ("\ufeff", True),
     ("😀", True),
     ("\x00", False), ("\x08", False), ("\x0b", False), ("\x1f", False), ("\ufffe", False), ("\uffff", False)],
)  # fmt: skip
def test_control_characters_are_problems_of_their_rows(sign: str, allowed: bool) -> None:
    """What XML cannot say and no platform stores is refused; all else stays."""
    made = table(text("ok", f"a{sign}b", None), FieldSpec())

    assert list(made.columns[0].values) == ["ok", f"a{sign}b", None]
    assert {place: note.reason for place, note in made.problems.items()} == (
        {} if allowed else {1: "invalid-character"}
    )


@pytest.mark.parametrize("values", [["x", ""], ["x", None], ["x", "", None], ["", ""], [None, None]])
def test_required_means_there_and_not_empty(values: list[str | None]) -> None:
    """Empty is missing, with or without a null beside it."""
    made = table(text(*values), FieldSpec(required=True))

    assert {place: note.reason for place, note in made.problems.items()} == {
        place: "missing" for place, value in enumerate(values) if not value
    }


def test_a_value_that_does_not_fit_is_shown_short() -> None:
    """The message names what stands there, but not all of it."""
    made = table(text("x" * 100), FieldSpec(type="integer"))

    assert made.problems[0].message == f"'{'x' * 56}... is not a whole number"


def test_the_first_problem_of_a_row_is_kept() -> None:
    """A row has one reason."""
    made = table(text("a\x00" * 9), FieldSpec(max_length=3))

    assert made.problems[0].reason == "invalid-character"


def test_a_table_finds_columns_by_field() -> None:
    """By the name of the field, not of the source column."""
    made = table(text("a"), FieldSpec())
    found = made.column("Field")

    assert found is not None
    assert list(found.values) == ["a"]
    assert made.column("column") is None
