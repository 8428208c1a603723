"""Rows by company in one file."""

import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saasload.errors import RunFolderError, UsageError
from saasload.source.base import SourceBatch
from saasload.source.partition import ByColumn, Dealt
from saasload.source.readers import open_source
from saasload.source.spool import SpoolIndex, open_spool, write_spool

SCHEMA = pa.schema([("company", pa.string()), ("value", pa.int64())])
KNOWN = ["A", "B", "C", "D"]
PICKED = ["B", "A", "D"]


class Rows:
    """A source of given companies; value is ten times the row number."""

    format = "csv"
    path = Path("rows.csv")
    schema = SCHEMA
    columns = ("company", "value")
    rows = None

    def __init__(self, companies: Sequence[str | None], bad: Sequence[int] = (), cuts: Sequence[int] = ()) -> None:
        """Cut the batches before the places `cuts`; rows in `bad` cannot be read."""
        self.companies = companies
        self.bad = set(bad)
        self.cuts = cuts

    def batches(self, rows: int = 10**9) -> Iterator[SourceBatch]:
        """Yield the rows."""
        edges = sorted({0, len(self.companies), *(cut for cut in self.cuts if cut < len(self.companies))})
        edges = sorted({*edges, *range(0, len(self.companies), rows)})
        for start, end in pairwise(edges):
            numbers = range(start + 1, end + 1)
            batch = pa.record_batch(
                [
                    pa.array([None if row in self.bad else self.companies[row - 1] for row in numbers], pa.string()),
                    pa.array([None if row in self.bad else row * 10 for row in numbers], pa.int64()),
                ],
                schema=SCHEMA,
            )
            yield SourceBatch(batch, start + 1, {row: f"bad {row}" for row in numbers if row in self.bad})


class Failing(Rows):
    """A source that breaks after its rows."""

    def batches(self, rows: int = 10**9) -> Iterator[SourceBatch]:
        """Yield the rows, then fail."""
        yield from super().batches(rows)
        message = "rows.csv: damaged"
        raise UsageError(message)


def by_column() -> ByColumn:
    """Assign by the company column."""
    return ByColumn(SCHEMA, "company", companies=PICKED, known=KNOWN)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the spool is written."""
    return tmp_path / "spool.arrow"


def everything(path: Path) -> tuple[dict[str, list[tuple[int, int]]], dict[str, list[tuple[int, int, str]]]]:
    """Read row numbers and values of each company and each reason."""
    with open_spool(path) as spool:
        companies = {
            company: [
                (row["__row__"], row["value"]) for batch in spool.company_batches(company) for row in batch.to_pylist()
            ]
            for company in spool.index.companies
        }
        refused = {
            reason: [
                (row["__row__"], row["value"], problems.get(row["__row__"], ""))
                for batch, problems in spool.refused_batches(reason)
                for row in batch.to_pylist()
            ]
            for reason in spool.index.refused
        }
    return companies, refused


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_row_is_in_one_place_with_its_number(path: Path, data: st.DataObject) -> None:
    """In its company in source order, or refused for the right reason, whatever the order and the batch sizes."""
    companies = data.draw(st.lists(st.sampled_from([*KNOWN, None, "", "E", " A "]), max_size=60))
    bad = data.draw(st.sets(st.integers(1, 60), max_size=4))
    source = Rows(companies, bad=sorted(bad), cuts=data.draw(st.lists(st.integers(0, 60), max_size=6)))
    expected: dict[str, list[tuple[int, int]]] = {company: [] for company in PICKED}
    refused: dict[str, list[tuple[int, int | None, str]]] = {}
    for row, company in enumerate(companies, 1):
        name = (company or "").strip()
        reason = "unreadable" if row in bad else "" if name in PICKED else "company-not-picked" if name in KNOWN else ""
        reason = reason or ("" if name in PICKED else "unknown-company" if name else "no-company")
        if reason:
            value = None if row in bad else row * 10
            refused.setdefault(reason, []).append((row, value, f"bad {row}" if row in bad else ""))
        else:
            expected[name].append((row, row * 10))

    index = write_spool(source, path, by_column(), buffer_rows=data.draw(st.integers(1, 70)))

    assert everything(path) == (expected, refused)
    assert index.rows == len(companies)
    assert {company: part.rows for company, part in index.companies.items()} == {
        company: len(rows) for company, rows in expected.items()
    }


def test_the_file_alone_has_the_index(path: Path) -> None:
    """Another process opens it and finds the same."""
    index = write_spool(Rows(["A", "B", None] * 10), path, by_column(), buffer_rows=7)
    ask = f"import pathlib, saasload.source.spool as s; print(s.open_spool(pathlib.Path({str(path)!r})).index)"

    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == repr(index)
    with open_spool(path) as spool:
        assert spool.index == index


def test_rows_without_a_company_column_are_dealt(path: Path) -> None:
    """Evenly, and each keeps its number."""
    write_spool(Rows(["x"] * 10), path, Dealt(["1", "2", "3"]), buffer_rows=4)

    companies, _ = everything(path)

    assert {company: [row for row, _ in rows] for company, rows in companies.items()} == {
        "1": [1, 4, 7, 10],
        "2": [2, 5, 8],
        "3": [3, 6, 9],
    }


def test_batches_have_the_sources_columns_and_the_row(path: Path) -> None:
    """Nothing else, and by number in any order."""
    index = write_spool(Rows(["A", "B"]), path, by_column())

    with open_spool(path) as spool:
        assert spool.schema.names == ["company", "value", "__row__"]
        assert spool.batch(index.companies["B"].batches[0]).to_pylist() == [{"company": "B", "value": 20, "__row__": 2}]
        assert list(spool.refused_batches("no-company")) == []


def test_no_rows_make_an_empty_spool(path: Path) -> None:
    """Every company is in the index, with nothing."""
    index = write_spool(Rows([]), path, by_column())

    assert (index.rows, list(index.companies)) == (0, PICKED)
    assert everything(path) == ({"B": [], "A": [], "D": []}, {})


def test_a_buffer_is_bounded_by_rows(path: Path) -> None:
    """No batch is longer than the buffer."""
    index = write_spool(Rows(["A"] * 10), path, by_column(), buffer_rows=4)

    assert index.companies["A"].counts == (4, 4, 2)


def test_a_buffer_is_bounded_by_bytes(path: Path) -> None:
    """Few bytes make many batches, and the same rows."""
    source = Rows(["A"] * 100, cuts=range(0, 100, 10))
    index = write_spool(source, path, by_column(), buffer_bytes=1)

    assert index.companies["A"].counts == (10,) * 10


@pytest.mark.parametrize("keep", [0, 3, 100, -1, -10, -300])
def test_half_a_file_is_refused(path: Path, keep: int) -> None:
    """A spool without its end is not whole."""
    write_spool(Rows(["A", "B"] * 50), path, by_column(), buffer_rows=10)
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(RunFolderError, match=r"spool\.arrow: cut short, damaged or not a spool"):
        open_spool(path)


def test_an_arrow_file_that_is_no_spool_is_refused(path: Path) -> None:
    """It has no index."""
    for batches in (0, 1):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            for _ in range(batches):
                writer.write_batch(pa.RecordBatch.from_pylist([], schema=SCHEMA))

        with pytest.raises(RunFolderError, match="not a spool"):
            open_spool(path)


def test_damage_inside_is_said_when_it_is_read(path: Path) -> None:
    """The file opens; the batch does not."""
    index = write_spool(Rows(["A", "B"] * 50), path, by_column())
    data = bytearray(path.read_bytes())
    data[8 : len(data) // 4] = b"\xff" * (len(data) // 4 - 8)
    path.write_bytes(data)

    with open_spool(path) as spool, pytest.raises(RunFolderError, match=r"batch \d+ cannot be read"):
        spool.batch(index.companies["B"].batches[0])


def test_a_spool_that_is_not_there_is_said(path: Path) -> None:
    """The message has the path."""
    with pytest.raises(RunFolderError, match="no such file"):
        open_spool(path)


def test_a_source_that_breaks_leaves_nothing(path: Path) -> None:
    """Its own error comes out; no file looks whole."""
    with pytest.raises(UsageError, match="damaged"):
        write_spool(Failing(["A"] * 10), path, by_column(), buffer_rows=2)

    assert list(path.parent.iterdir()) == []


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    """One line, with the system's reason."""
    with pytest.raises(RunFolderError) as caught:
        write_spool(Rows(["A"]), tmp_path / "gone" / "spool.arrow", by_column())

    assert "cannot be written" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_in_the_way_is_said(path: Path) -> None:
    """The file cannot take the name of a folder."""
    path.mkdir()

    with pytest.raises(RunFolderError, match="cannot be written: is a directory"):
        write_spool(Rows(["A"]), path, by_column())
    assert list(path.parent.iterdir()) == [path]


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Let no file grow beyond 20,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("rows", [1_000, 200_000])
@pytest.mark.usefixtures("small_disk")
def test_no_room_is_said_and_leaves_nothing(path: Path, rows: int) -> None:
    """Both when writing the rows and when writing what is left."""
    with pytest.raises(RunFolderError) as caught:
        write_spool(Rows(["A", "B"] * (rows // 2)), path, by_column())

    assert "spool.arrow: cannot be written" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(path.parent.iterdir()) == []


def test_ragged_rows_of_a_file_end_as_refused(tmp_path: Path, path: Path) -> None:
    """From the CSV to the spool, with their message."""
    rows = tmp_path / "rows.csv"
    rows.write_text("company,value\nA,1\nA\nB,2\nA,3,4\n")
    source = open_source(rows)

    index = write_spool(source, path, ByColumn(source.schema, "company", companies=["A", "B"]))

    with open_spool(path) as spool:
        [(batch, problems)] = spool.refused_batches("unreadable")
    assert batch.column("__row__").to_pylist() == [2, 4]
    assert problems == {
        2: "line 3: 1 cell where the header has 2: A",
        4: "line 5: 3 cells where the header has 2: A,3,4",
    }
    assert isinstance(index, SpoolIndex)


def test_odd_types_survive_the_spool(path: Path) -> None:
    """Lists, structs and decimals come out as they went in, also from the middle of a buffer."""
    values: dict[str, Any] = {
        "list": pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1}, None, {"a": None}, {"a": 2}]),
        "map": pa.array([[("k", 1)], [], None, [("j", 2)]], pa.map_(pa.string(), pa.int64())),
        "bin": pa.array([b"\x00", None, b"", b"x"]),
        "half": pa.array([1.5, None, 0.0, -2.0], pa.float16()),
        "large": pa.array(["x", None, "", "é"], pa.large_string()),
    }
    table = pa.record_batch(values)

    class Odd(Rows):
        schema = table.schema

        def batches(self, rows: int = 4) -> Iterator[SourceBatch]:
            yield SourceBatch(table, 1)

    write_spool(Odd([]), path, Dealt(["1", "2"]))

    with open_spool(path) as spool:
        for company, places in (("1", (0, 2)), ("2", (1, 3))):
            [batch] = spool.company_batches(company)
            assert batch.drop_columns(["__row__"]).to_pylist() == [table.to_pylist()[place] for place in places]
