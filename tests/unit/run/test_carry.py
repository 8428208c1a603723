"""Outcomes go over to a source that has changed, where rows can be told apart by content."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saasload.errors import UsageError
from saasload.model import Note, RowStatus
from saasload.run.carry import Known, carry
from saasload.source.partition import ByColumn, Dealt
from saasload.source.readers import open_source
from saasload.source.spool import Spool, open_spool, write_spool

CREATED, REJECTED, IN_DOUBT = RowStatus.CREATED, RowStatus.REJECTED, RowStatus.IN_DOUBT
Rows = list[tuple[str | None, ...]]
COMPANIES = ["1001", "1002"]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Callable[..., Spool]]:
    """Give a function that spools rows: company and code, or codes alone, which are dealt."""
    with ExitStack() as stack:
        made = iter(range(99))

        def make(rows: Rows, names: tuple[str, ...] = ("company", "Code"), companies: list[str] = COMPANIES) -> Spool:
            place = tmp_path / str(next(made))
            columns = {name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)}
            pq.write_table(pa.table(columns), place.with_suffix(".parquet"))
            source = open_source(place.with_suffix(".parquet"))
            by_column = "company" in names
            assign = (
                ByColumn(source.schema, "company", companies=companies, known=COMPANIES)
                if by_column
                else Dealt(companies)
            )
            write_spool(source, place.with_suffix(".arrow"), assign)
            return stack.enter_context(open_spool(place.with_suffix(".arrow")))

        yield make


def known(statuses: dict[int, RowStatus], *, sent: bool = True) -> Known:
    """Say what is known of the old rows."""
    codes = bytearray(50)
    for row, status in statuses.items():
        codes[row] = status
    notes = {
        row: Note("x", http_status=400 if sent else 0) for row, status in statuses.items() if status is not CREATED
    }
    return Known(codes, notes, {row: f"id{row}" for row, status in statuses.items() if status is CREATED})


def carried(old: Spool, new: Spool, what: Known) -> dict[int, tuple[RowStatus, str]]:
    """Carry, and sort by the new row numbers."""
    return {
        row: (status, identity)
        for _, outcomes in carry(old, new, what)
        for row, status, identity in zip(outcomes.rows, outcomes.statuses, outcomes.ids, strict=True)
    }


OLD: Rows = [("1001", "a"), ("1002", "b"), ("1001", "c")]


@pytest.mark.parametrize(
    ("new", "rows"),
    [
        ([("1001", "z"), *OLD], {2: 1, 3: 2}),
        ([*OLD, ("1001", "z")], {1: 1, 2: 2}),
        (list(reversed(OLD)), {3: 1, 2: 2}),
        ([("1001", "A"), ("1002", "b")], {2: 2}),
        ([("1002", "a"), ("1002", "b")], {2: 2}),
        ([("1001", "q")], {}),
    ],
    ids=["in-front", "appended", "reversed", "changed", "another-company", "all-others"],
)
def test_rows_are_known_again_by_their_values(new: Rows, rows: dict[int, int], spool: Callable[..., Spool]) -> None:
    """Wherever they stand now; a row with any other value is another row."""
    found = carried(spool(OLD), spool(new), known({1: CREATED, 2: CREATED}))

    assert found == {row: (CREATED, f"id{old}") for row, old in rows.items()}


def test_doubts_and_refusals_are_carried_with_their_notes(spool: Callable[..., Spool]) -> None:
    """What is in doubt stays so under its new number; what the target refused stays refused."""
    old, new = spool(OLD), spool([("1001", "z"), *OLD])

    outcomes = {row: (status, outcome.notes[row]) for _, outcome in carry(old, new, known({1: IN_DOUBT, 2: REJECTED}))
                for row, status in zip(outcome.rows, outcome.statuses, strict=True)}  # fmt: skip

    assert outcomes == {2: (IN_DOUBT, Note("x", http_status=400)), 3: (REJECTED, Note("x", http_status=400))}


def test_a_row_that_was_refused_here_is_judged_anew(spool: Callable[..., Spool]) -> None:
    """The target has never heard of it."""
    assert carried(spool(OLD), spool(OLD), known({1: REJECTED}, sent=False)) == {}


def test_equal_rows_with_one_fate_are_carried_as_often_as_they_are_there(spool: Callable[..., Spool]) -> None:
    """Three twins that are all accepted, of which two are left, or five."""
    twins = [("1001", "t")] * 3
    what = known({1: CREATED, 2: CREATED, 3: CREATED})

    assert len(carried(spool(twins), spool(twins[:2]), what)) == 2
    assert len(carried(spool(twins), spool([*twins, *twins[:2]]), what)) == 3


def test_equal_rows_with_different_fates_are_refused(spool: Callable[..., Spool]) -> None:
    """Nothing tells which of them is which."""
    twins = [("1001", "t")] * 2
    for fates in ({1: CREATED}, {1: CREATED, 2: REJECTED}):
        with pytest.raises(UsageError, match="told apart by nothing"):
            carried(spool(twins), spool(twins), known(fates))


def test_other_columns_are_refused_by_name(spool: Callable[..., Spool]) -> None:
    """No row can be the same."""
    new = spool([("1001", "a", "x")], ("company", "Code", "City"))

    with pytest.raises(UsageError, match=r"other columns than it had \(City\)"):
        carried(spool(OLD), new, known({1: CREATED}))


def test_rows_that_are_dealt_to_another_company_now_are_refused(spool: Callable[..., Spool]) -> None:
    """Without a company of its own a row's place decides; what is booked in one would be booked in another too."""
    old = [("a",), ("b",), ("c",)]
    what = known({1: CREATED, 2: CREATED})

    with pytest.raises(UsageError, match="would go to company 1001, and went to 1002 before"):
        carried(spool(old, ("Code",)), spool([("z",), *old], ("Code",)), what)
    with pytest.raises(UsageError, match="would go to company 1001, and went to 1002 before"):
        carried(spool(old, ("Code",)), spool(old, ("Code",), ["1001"]), what)
    assert len(carried(spool(old, ("Code",)), spool([*old, ("z",)], ("Code",)), what)) == 2


def test_empty_values_are_values(spool: Callable[..., Spool]) -> None:
    """A null equals a null, and no empty text."""
    found = carried(spool([("1001", None)]), spool([("1001", ""), ("1001", None)]), known({1: CREATED}))

    assert list(found) == [2]
