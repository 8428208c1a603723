"""Tables have their name when they are whole; each row of a source stands in one file."""

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saasload.errors import RunFolderError
from saasload.model import Company, Note, Outcomes, RowStatus
from saasload.run import tables
from saasload.run.book import Book, Times
from saasload.run.files import write_row_files
from saasload.run.journal import create_journal
from saasload.run.tables import ACCEPTED, TableWriter
from saasload.source.fingerprint import fingerprint, what_changed
from saasload.source.partition import ByColumn
from saasload.source.readers import open_source
from saasload.source.spool import Spool, open_spool, write_spool

ROW = [1, "1001", "created", "id"]


def test_a_table_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    """Whatever fails half way leaves the older file as it was."""
    path = tmp_path / "accepted.parquet"
    with TableWriter(path, ACCEPTED) as writer:
        writer.add(ROW)
        assert not path.exists()
    before = path.read_bytes()

    with pytest.raises(ValueError, match="zip"), TableWriter(path, ACCEPTED) as writer:
        writer.add(ROW[:2])

    assert path.read_bytes() == before
    assert pq.read_table(path).to_pylist() == [{"row": 1, "company": "1001", "status": "created", "id": "id"}]


def test_a_disk_that_fails_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with the file and the reason; the part that took up the last room is gone."""

    def full(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = TableWriter(tmp_path / "calls.parquet", ACCEPTED)
    writer.add(ROW)
    monkeypatch.setattr("os.replace", full)

    with pytest.raises(RunFolderError, match=r"calls\.parquet: cannot be written: no space left on device"):
        writer.close()

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    """Not a traceback."""
    with pytest.raises(RunFolderError, match="cannot be written"):
        TableWriter(tmp_path / "gone" / "calls.parquet", ACCEPTED)


def test_many_rows_are_several_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held in memory is bounded, and nothing is lost between the groups."""
    monkeypatch.setattr(tables, "GROUP_ROWS", 10)
    with TableWriter(tmp_path / "t.parquet", ACCEPTED) as writer:
        for number in range(25):
            writer.add([number, "1001", "created", ""])
        writer.extend([[25, 26], ["1002"] * 2, ["updated"] * 2, ["", ""]])

    assert pq.read_metadata(tmp_path / "t.parquet").num_row_groups == 3
    assert pq.read_table(tmp_path / "t.parquet").column("row").to_pylist() == list(range(27))


def test_a_table_without_rows_is_a_table(tmp_path: Path) -> None:
    """With its columns."""
    TableWriter(tmp_path / "t.parquet", ACCEPTED).close()

    assert pq.read_schema(tmp_path / "t.parquet").names == ["row", "company", "status", "id"]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """Give six rows: two companies, one row without a company; a column has a name of ours."""
    table = pa.table({
        "company": ["1001", "1001", "1001", "1002", "1002", None],
        "Code": ["a", "b", "c", "d", "e", "f"],
        "Reason": ["r"] * 6,
    })  # fmt: skip
    pq.write_table(table, tmp_path / "rows.parquet")
    source = open_source(tmp_path / "rows.parquet")
    assign = ByColumn(source.schema, "company", companies=["1001", "1002"], known=["1001", "1002"])
    write_spool(source, tmp_path / "spool.arrow", assign)
    with open_spool(tmp_path / "spool.arrow") as made:
        yield made


def test_each_row_that_is_not_accepted_stands_in_one_file_with_its_columns(tmp_path: Path, spool: Spool) -> None:
    """Source columns first, ours after them, with a prefix where the source has that name."""
    with closing(create_journal(tmp_path, {})) as journal:
        companies = {Company("1001"): 3, Company("1002"): 2}
        book = Book(journal, rows=6, companies=companies, times=Times("insert", 0.0, threads=False))
        statuses = [RowStatus.CREATED, RowStatus.REJECTED, RowStatus.IN_DOUBT]
        notes = {2: Note("too-long", "long", "Name", 400), 3: Note("late", "no answer")}
        book.refused_here(Company("1001"), Outcomes([1, 2, 3], statuses, [""] * 3, notes))
        book.refused_here(Company(""), Outcomes([6], [RowStatus.REJECTED], [""], {6: Note("no-company")}))
        book.closed(Company("1002"), Note("company-closed", "HTTP 403", http_status=403))

        write_row_files(tmp_path, spool, book)

    files = {
        name: pq.read_table(tmp_path / f"{name}.parquet").to_pylist() for name in ("rejected", "in_doubt", "unsent")
    }
    kept = {name: [(row["row"], row["Code"], row["saasload_reason"], row["status"]) for row in rows]
            for name, rows in files.items()}  # fmt: skip
    assert {name: sorted(rows) for name, rows in kept.items()} == {
        "rejected": [(2, "b", "too-long", 400), (6, "f", "no-company", 0)],
        "in_doubt": [(3, "c", "late", 0)],
        "unsent": [(4, "d", "company-closed", 403), (5, "e", "company-closed", 403)],
    }
    assert files["rejected"][0]["Reason"] == "r"
    assert files["in_doubt"][0]["message"] == "no answer"


def test_a_fingerprint_is_of_the_bytes_alone(tmp_path: Path) -> None:
    """A copy with another time is the same file; one byte at the same size is another."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"abc" * 10)
    two.write_bytes(b"abc" * 10)
    os.utime(two, (1, 1))
    before = fingerprint(one)

    assert what_changed(before, fingerprint(two)) == ""
    two.write_bytes(b"abd" + b"abc" * 9)
    assert "bytes differ" in what_changed(before, fingerprint(two))
    two.write_bytes(b"abc" * 9)
    assert what_changed(before, fingerprint(two)) == "it had 30 bytes and has 27"
    assert type(before).of_facts(before.facts()) == before
