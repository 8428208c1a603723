"""The sample of customers."""

import resource
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saasload.errors import UsageError
from saasload.sample import write_sample
from saasload.source.readers import open_source

COLUMNS = (
    "company Code Name Email Phone Website AddressLine1 Postcode City Country VATNumber ChamberOfCommerce Language "
    "IsSales CreditLineSales StartDate"
)


def companies_of(path: Path) -> list[str]:
    """Read the company of each row."""
    return [str(company) for company in pq.read_table(path).column("company").to_pylist()]


def test_a_sample_looks_like_customers(tmp_path: Path) -> None:
    """Columns, types, traps and gaps are what the documents promise."""
    path = tmp_path / "customers.parquet"
    write_sample(path, rows=5_000, companies=7)
    table = pq.read_table(path)
    rows = table.to_pylist()

    assert table.column_names == COLUMNS.split()
    assert table.schema.field("CreditLineSales").type == pa.decimal128(12, 2)
    assert table.schema.field("StartDate").type == pa.date32()
    assert table.schema.field("IsSales").type == pa.bool_()
    assert set(companies_of(path)) == {str(code) for code in range(1001, 1008)}
    assert len({(row["company"], row["Code"]) for row in rows}) == 5_000
    assert {row["Code"] for row in rows} >= {"000001", "000123"}
    names = "".join(row["Name"] for row in rows)
    assert set("&<'\"é") <= set(names)
    assert max(len(row["Name"]) for row in rows) <= 50
    assert all(len(row["Country"]) == 2 for row in rows)
    assert any(row["ChamberOfCommerce"].startswith("0") for row in rows)
    assert any(row["Postcode"].startswith("0") for row in rows)
    for column in ("VATNumber", "CreditLineSales", "StartDate", "Email", "Phone", "Website"):
        assert 0 < table.column(column).null_count < 2_500
    assert all(row["CreditLineSales"] is None or row["CreditLineSales"] < Decimal(50_000) for row in rows)
    assert len({row["CreditLineSales"] for row in rows}) > 3_000


def test_the_seed_decides_everything(tmp_path: Path) -> None:
    """The same seed gives the same bytes, another one other rows."""
    first, again, other = (tmp_path / f"{name}.parquet" for name in ("first", "again", "other"))
    write_sample(first, rows=3_000, companies=5, skew=0.7)
    write_sample(again, rows=3_000, companies=5, skew=0.7)
    write_sample(other, rows=3_000, companies=5, skew=0.7, seed=2)

    assert first.read_bytes() == again.read_bytes()
    assert not pq.read_table(first).equals(pq.read_table(other))


def test_csv_says_the_same_as_parquet(tmp_path: Path) -> None:
    """Cell by cell, as text."""
    write_sample(tmp_path / "a.parquet", rows=500, companies=3)
    write_sample(tmp_path / "a.csv", rows=500, companies=3)
    source = open_source(tmp_path / "a.csv")
    read = [row for batch in source.batches() for row in batch.batch.to_pylist()]

    def text(value: object) -> str | None:
        return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    expected = [
        {name: text(value) for name, value in row.items()} for row in pq.read_table(tmp_path / "a.parquet").to_pylist()
    ]
    assert read == expected


@pytest.mark.parametrize(("rows", "companies"), [(0, 3), (2, 5), (5, 5), (101, 4), (70_000, 3)])
@pytest.mark.parametrize("order", ["shuffled", "sorted", "dealt"])
def test_rows_are_shared_out_evenly(tmp_path: Path, rows: int, companies: int, order: str) -> None:
    """Without skew, no company has two rows more than another."""
    path = tmp_path / "even.parquet"
    write_sample(path, rows=rows, companies=companies, order=order)
    found = Counter(companies_of(path))
    counts = [found[str(1001 + place)] for place in range(companies)]

    assert sum(counts) == rows
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("order", ["shuffled", "sorted", "dealt"])
def test_skew_is_zipfs(tmp_path: Path, order: str) -> None:
    """The first has twice the second, thrice the third; none goes without."""
    path = tmp_path / "skew.parquet"
    write_sample(path, rows=20_000, companies=200, skew=1.0, order=order)
    found = Counter(companies_of(path))

    assert len(found) == 200
    assert found["1001"] / found["1002"] == pytest.approx(2, rel=0.02)
    assert found["1001"] / found["1003"] == pytest.approx(3, rel=0.02)


def test_extreme_skew_leaves_one_row_each(tmp_path: Path) -> None:
    """Nearly all to the first."""
    path = tmp_path / "skew.parquet"
    write_sample(path, rows=100, companies=50, skew=10.0)

    assert sorted(Counter(companies_of(path)).values())[:48] == [1] * 48


def test_orders_are_what_they_say(tmp_path: Path) -> None:
    """Sorted by company; dealt round and round; shuffled neither."""
    found = {}
    for order in ("shuffled", "sorted", "dealt"):
        write_sample(tmp_path / "a.parquet", rows=12, companies=4, order=order)
        found[order] = [int(company) - 1001 for company in companies_of(tmp_path / "a.parquet")]

    assert found["sorted"] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert found["dealt"] == [0, 1, 2, 3] * 3
    assert found["shuffled"] not in (found["sorted"], found["dealt"])


def test_dealt_with_skew_goes_on_without_those_who_are_done(tmp_path: Path) -> None:
    """Every company in turn while it has rows."""
    write_sample(tmp_path / "a.parquet", rows=8, companies=3, skew=1.5, order="dealt")

    assert companies_of(tmp_path / "a.parquet") == ["1001", "1002", "1003"] * 2 + ["1001"] * 2


def test_groups_are_small(tmp_path: Path) -> None:
    """Memory is bounded by one group."""
    path = tmp_path / "a.parquet"
    write_sample(path, rows=70_000, companies=2)
    file = pq.ParquetFile(path)

    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [65_536, 4_464]


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("a.xlsx", {}, "a.xlsx: a sample is written to .parquet or .csv"),
        ("a.csv", {"rows": -1}, "--rows -1: at least 0"),
        ("a.csv", {"companies": 0}, "--companies 0: at least 1"),
        ("a.csv", {"skew": -0.5}, "--skew -0.5"),
        ("a.csv", {"skew": float("nan")}, "--skew nan"),
        ("a.csv", {"order": "random"}, "--order random: use shuffled, sorted or dealt"),
        ("folder.csv", {}, "there already, and not a file"),
        ("gone/a.csv", {}, "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, name: str, changes: dict[str, object], words: str) -> None:
    """One line, and nothing left behind."""
    (tmp_path / "folder.csv").mkdir()
    arguments: dict[str, object] = {"rows": 1, "companies": 1} | changes

    with pytest.raises(UsageError, match=words) as caught:
        write_sample(tmp_path / name, **arguments)  # type: ignore[arg-type]  # a table of arguments

    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_room_is_said_and_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    """The file has its name only when it is whole."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(UsageError, match="cannot be written") as caught:
            write_sample(tmp_path / f"a{suffix}", rows=5_000, companies=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_replaced(tmp_path: Path) -> None:
    """As a whole, and nothing else is left in the folder."""
    path = tmp_path / "a.csv"
    path.write_text("old")
    write_sample(path, rows=1, companies=1)

    assert path.read_text().startswith('"company","Code"')
    assert list(tmp_path.iterdir()) == [path]
