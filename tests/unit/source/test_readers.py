"""Opening a source, and reading Parquet."""

import datetime as dt
import os
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saasload.errors import UsageError
from saasload.source.readers import Source, open_source


def rows_of(source: Source, rows: int = 16_384) -> list[dict[str, object]]:
    """Read all rows."""
    return [row for batch in source.batches(rows) for row in batch.batch.to_pylist()]


def write(path: Path, data: bytes) -> Path:
    """Write the bytes and return where."""
    path.write_bytes(data)
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Write a Parquet file of 1,000 rows in row groups of 300."""
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"id": list(range(1, 1001)), "name": ["x" * 50] * 1000}), path, row_group_size=300)
    return path


def test_rows_keep_their_numbers_across_row_groups(people: Path) -> None:
    """Numbers start at 1 and follow on, however the rows are cut."""
    batches = list(open_source(people).batches(128))

    assert [row for batch in batches for row in range(batch.first_row, batch.first_row + len(batch))] == list(
        range(1, 1001)
    )
    assert [row["id"] for batch in batches for row in batch.batch.to_pylist()] == list(range(1, 1001))
    assert max(len(batch) for batch in batches) <= 128


def test_a_source_can_be_read_twice(people: Path) -> None:
    """Each call of batches begins again."""
    source = open_source(people)

    assert rows_of(source) == rows_of(source)
    assert (source.format, source.columns, source.rows) == ("parquet", ("id", "name"), 1000)


def test_first_bytes_count_more_than_the_suffix(people: Path) -> None:
    """A Parquet file called .csv is a Parquet file."""
    renamed = people.rename(people.with_suffix(".csv"))

    assert open_source(renamed).format == "parquet"


def test_a_format_that_is_given_counts_most(tmp_path: Path) -> None:
    """Commas in a file without a suffix are read when the format says so."""
    path = write(tmp_path / "people", b"id\n1\n")

    assert rows_of(open_source(path, format="csv")) == [{"id": "1"}]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("customers.parquet", b"id,name\n1,a\n", "customers.parquet: not a Parquet file"),
        ("customers.parquet", b"", "customers.parquet: empty, 0 bytes"),
        ("customers.csv", b"", "customers.csv: empty, 0 bytes"),
        ("customers.json", b"[]", "customers.json: unknown format .json"),
        ("customers", b"id,name", "customers: unknown format (no suffix)"),
        ("customers.csv", b"\x1f\x8b\x08\x00", "customers.csv: a gzip file; unpack it first"),
        ("customers.csv", b"PK\x03\x04", "customers.csv: a zip file or a spreadsheet"),
        ("customers.csv", "id,name\n".encode("utf-16"), "customers.csv: UTF-16 text; save it as UTF-8"),
        ("customers.parquet", b"PAR1 nothing of the kind PAR1", "customers.parquet: a Parquet file that is cut short"),
        ("customers.csv", b"\n\n\r\n", "customers.csv: no header"),
        ("customers.csv", b"id;name\n1;a\n", "customers.csv: semicolons between the columns"),
        ("customers.csv", b"id,na\xffme\n", "customers.csv: line 1 is not UTF-8"),
        ("customers.csv", b'id,"name\n1,a\n', "customers.csv: the header cannot be read"),
    ],
)
def test_a_file_that_is_no_use_is_refused_in_one_line(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    """The message names the file, what it is, and what to do."""
    path = write(tmp_path / name, data)

    with pytest.raises(UsageError) as caught:
        open_source(path)

    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The whole path is in the message."""
    with pytest.raises(UsageError, match=r"nothing\.csv: no such file"):
        open_source(tmp_path / "nothing.csv")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder of Parquet files is not one file."""
    with pytest.raises(UsageError, match="a folder, not a file"):
        open_source(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs there")
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """A source is read more than once, which a pipe cannot give."""
    os.mkfifo(tmp_path / "rows.csv")

    with pytest.raises(UsageError, match="not a plain file"):
        open_source(tmp_path / "rows.csv")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(people: Path) -> None:
    """The system's reason is in the message."""
    people.chmod(0)

    with pytest.raises(UsageError, match="cannot be read: Permission denied"):
        open_source(people)


def test_an_unknown_format_is_refused(people: Path) -> None:
    """Only the formats there are."""
    with pytest.raises(UsageError, match="unknown format 'xml'"):
        open_source(people, format="xml")


def test_a_parquet_file_cut_short_is_refused(people: Path) -> None:
    """Without its end nothing of it can be read."""
    people.write_bytes(people.read_bytes()[:-100])

    with pytest.raises(UsageError, match="cut short or damaged"):
        open_source(people)


def test_damage_inside_a_parquet_file_names_the_last_good_row(people: Path) -> None:
    """What can be read before it comes first."""
    data = bytearray(people.read_bytes())
    start = pq.ParquetFile(people).metadata.row_group(1).column(0).dictionary_page_offset
    data[start : start + 20] = b"\xff" * 20
    people.write_bytes(data)
    batches = open_source(people).batches(300)

    assert len(next(batches)) == 300
    with pytest.raises(UsageError, match=r"people\.parquet: damaged after row 300: ") as caught:
        list(batches)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("names", [["id", "id"], ["id", "ID"], ["id", "id "], ["id", ""], ["id", "__row__"]])
def test_parquet_columns_that_cannot_be_told_apart_are_refused(tmp_path: Path, names: list[str]) -> None:
    """The same rule as for CSV."""
    path = tmp_path / "double.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=names), path)

    with pytest.raises(UsageError, match=r"double\.parquet: column"):
        open_source(path)


def test_a_parquet_file_without_rows_is_fine(tmp_path: Path) -> None:
    """It has columns and no batches."""
    path = tmp_path / "none.parquet"
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), path)
    source = open_source(path)

    assert (list(source.batches()), source.columns, source.rows) == ([], ("id",), 0)


ODD = {
    "dict": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "large": pa.array(["x", "y", None, ""], pa.large_string()),
    "view": pa.array(["v1", None, "", "a longer text beyond twelve bytes"], pa.string_view()),
    "list": pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())),
    "list_view": pa.array([["a", None], [], ["b"], None], pa.list_view(pa.string())),
    "struct": pa.array(
        [{"a": 1, "b": None}, None, {"a": None, "b": "q"}, {"a": 2, "b": "r"}],
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
    ),
    "map": pa.array([[("k", 1)], [], None, [("k", None), ("j", 2)]], pa.map_(pa.string(), pa.int64())),
    "bin": pa.array([b"\x00\xff", None, b"", b"x"]),
    "time": pa.array([dt.time(1, 2, 3, 4), None, dt.time(0), dt.time(23, 59, 59, 999999)], pa.time64("us")),
    "money": pa.array([Decimal("1.10"), None, Decimal("-0.01"), Decimal(0)], pa.decimal128(12, 2)),
    "half": pa.array([1.5, None, 0.0, -2.0], pa.float16()),
    "list_of_dict": pa.ListArray.from_arrays(
        pa.array([0, 2, None, 2, 3], pa.int32()), pa.array(["p", "q", "p"]).dictionary_encode()
    ),
    "struct_of_dict": pa.StructArray.from_arrays([pa.array(["p", "q", "p", "p"]).dictionary_encode()], ["x"]),
}


@pytest.mark.parametrize("name", list(ODD))
def test_odd_types_come_through_with_their_values(tmp_path: Path, name: str) -> None:
    """The values are what was written, in types without dictionaries and views."""
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"c": ODD[name]}), path)
    source = open_source(path)

    batches = [batch.batch for batch in source.batches(3)]

    assert [value for batch in batches for value in batch.column("c").to_pylist()] == ODD[name].to_pylist()
    assert all(batch.schema.equals(source.schema) for batch in batches)
    assert "dictionary" not in str(source.schema)
    assert "view" not in str(source.schema)


@pytest.mark.parametrize("name", ["large", "list", "struct", "map", "bin", "time", "money", "half"])
def test_types_without_dictionaries_stay_what_they_are(tmp_path: Path, name: str) -> None:
    """Nothing is turned into something else on the way."""
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"c": ODD[name]}), path)

    assert open_source(path).schema.field("c").type == pq.read_schema(path).field("c").type


def test_one_huge_row_group_is_read_a_little_at_a_time(tmp_path: Path) -> None:
    """C44: small on disk, one row group, a hundred megabytes as rows; a third of that is never held at once."""
    path = tmp_path / "wide.parquet"
    texts = [f"{row} " * 80 for row in range(1000, 3000)] * 125
    pq.write_table(pa.table({"text": texts}), path, row_group_size=len(texts), compression="zstd", use_dictionary=False)
    size = sum(len(text) for text in texts)
    before = pa.total_allocated_bytes()

    held = [pa.total_allocated_bytes() - before for _ in open_source(path).batches()]

    assert size > 95_000_000
    assert max(held) < size / 3


def test_rows_of_megabytes_come_a_few_at_a_time(tmp_path: Path) -> None:
    """A batch is bounded by bytes too."""
    path = tmp_path / "wide.parquet"
    texts = [os.urandom(1 << 19).hex() for _ in range(40)]
    pq.write_table(pa.table({"text": texts}), path, compression="none", use_dictionary=False)

    assert max(batch.batch.nbytes for batch in open_source(path).batches()) < 20 << 20
