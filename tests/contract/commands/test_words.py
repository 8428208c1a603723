"""What a person reads of a load, besides errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TWICE = "company,Code,Name\n1002,9,Z\n1002,9,Y\n1001,01,A\n1001,01,C\n"
"""The file of rejected rows goes by company: there the fourth row comes before the second."""


def test_the_summary_shows_the_first_rejected_row_and_where_the_rest_is(
    saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """Its number in the source and its reason; a second look at the run shows the same."""
    (workplace / "rows.csv").write_text(TWICE)

    ran = saasload("push", "rows.csv", "--to", serve("fast").url, "--mode", "insert", "--run", "one")

    assert ran.code == 1
    assert "\nfirst rejected: row 2: duplicate: " in ran.err
    assert "\nall rejected, with reasons: .saasload/runs/one/rejected.parquet\n" in ran.err
    assert "first rejected: row 2: duplicate: " in saasload("report", "one").err


def test_the_first_rejected_row_is_found_beside_columns_of_the_same_names(
    saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """A source may have a column called row, or reason."""
    (workplace / "rows.csv").write_text("company,Code,Name,row,reason\n1001,1,A,77,x\n1001,,B,78,y\n")

    ran = saasload("push", "rows.csv", "--to", serve("fast").url)

    assert "\nfirst rejected: row 2, Code: " in ran.err


def test_one_is_no_plural_and_a_moment_has_no_rate(
    saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """A load of one row is over before a rate means anything."""
    (workplace / "rows.csv").write_text("company,Code,Name\n1001,1,A\n")

    ran = saasload("push", "rows.csv", "--to", serve("fast").url, "--mode", "insert")

    assert "1 call by insert into 1 company, " in ran.err
    assert "rows an hour" not in ran.err


def test_a_resumed_run_says_what_its_target_is(saasload: Callable[..., Any], workplace: Path) -> None:
    """Nobody forgot a target there: the run began with the embedded server."""
    (workplace / "rows.csv").write_text("company,Code,Name\n1001,1,A\n")
    saasload("push", "rows.csv")

    ran = saasload("resume")

    assert "no target given" not in ran.err
    assert "the target is an embedded mock server at http://127.0.0.1:" in ran.err


@pytest.mark.parametrize("arguments", [["-h"], ["push", "-h"], ["report", "-h"]], ids=" ".join)
def test_h_is_help(arguments: list[str], saasload: Callable[..., Any]) -> None:
    """As in most programs."""
    ran = saasload(*arguments)

    assert ran.code == 0
    assert ran.out == saasload(*arguments[:-1], "--help").out
