"""C42: the source is another file when the run goes on."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saasload.engine import Live, Resume, Surroundings, push_sync, resume_sync
from saasload.errors import UsageError
from saasload.job import make_job
from saasload.model import Note
from saasload.run.report import Report

from .conftest import RESUME, Place, Server


def write(path: Path, rows: list[tuple[str, str, str]]) -> None:
    """Write a source of its own: company, code, name."""
    path.write_text("company,Code,Name\n" + "".join(f"{','.join(row)}\n" for row in rows))


FIRST = [(str(1001 + row % 3), f"{row:04}", f"Customer {row:04}") for row in range(60)]
"""Sixty rows over three companies."""


def stopped_half_way(place: Place, server: Server) -> int:
    """Begin a run of single POSTs and stop it after some rows; return how many calls the target has seen."""
    write(place.folder / "rows.csv", FIRST)
    report = stop_after(15, place, server)
    assert 15 <= report.accepted < 60
    assert report.unsent
    calls: int = server.audit()["calls"]
    return calls


def stop_after(rows: int, place: Place, server: Server) -> Report:
    """Load in this process, and stop as a signal would once so many rows are there."""

    async def watch(live: Live) -> None:
        while live.counts().total() < rows:
            await anyio.lowlevel.checkpoint()
        live.driver.stop("interrupted", Note("interrupted"))

    job = make_job(
        source=place.folder / "rows.csv", to=server.url, profile="mock-unlimited", mode="insert",
        runs=place.folder / "runs", run="run",
    )  # fmt: skip
    return push_sync(job, Surroundings(watch=watch))


def booked_keys(place: Place, source: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """List company and code of the rows that are accepted by the new source's row numbers."""
    return sorted((source[row - 1][0], source[row - 1][1]) for row in place.rows("accepted"))


VARIANTS = {
    "v2, the same size": ([(*row[:2], row[2].replace("Customer", "Kunde---")) for row in FIRST], "bytes differ"),
    "v3, a row in front": ([("1001", "9999", "New"), *FIRST], "bytes and has"),
    "v4, rows appended": ([*FIRST, ("1001", "9998", "New"), ("1002", "9999", "New")], "bytes and has"),
    "rows taken away": (FIRST[:-5], "bytes and has"),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS, ids=lambda name: name.replace(" ", "-"))
def test_a_source_that_changed_is_refused_and_accepted_when_told_to(
    name: str, place: Place, serve: Callable[..., Server]
) -> None:
    """The line says what changed and what can be done; accepted, rows that are there already are not sent again."""
    rows, words = VARIANTS[name]
    server = serve()
    calls = stopped_half_way(place, server)
    before, _ = server.booked()
    write(place.folder / "rows.csv", rows)

    with pytest.raises(
        UsageError, match=rf"rows\.csv: changed since the run began: .*{words}.*--source-changed=accept"
    ):
        resume_sync(place.folder / "runs", "run")

    assert server.audit()["calls"] == calls
    accepted = resume_sync(place.folder / "runs", "run", Resume(source_changed="accept"))
    assert accepted.read == len(rows)
    assert server.booked()[1] == 0
    if name.startswith("v2"):
        # not one row is the same: those with a code that is there already are refused by the target
        assert (accepted.exit_code, accepted.rejected) == (1, before)
        return
    assert (accepted.exit_code, accepted.accepted) == (0, len(rows))
    assert server.booked()[0] == max(len(rows), before)
    assert booked_keys(place, rows) == sorted((company, code) for company, code, _ in rows)


def test_the_command_says_it_in_one_line(place: Place, serve: Callable[..., Server]) -> None:
    """Exit code 2 and no call; the option lets it go on."""
    server = serve()
    calls = stopped_half_way(place, server)
    write(place.folder / "rows.csv", [("1001", "9999", "New"), *FIRST])

    refused = place.run(*RESUME)
    assert (refused.code, len(refused.lines), server.audit()["calls"]) == (2, 1, calls)
    assert refused.err.startswith("saasload: rows.csv: changed since the run began")
    accepted = place.run(*RESUME, "--source-changed", "accept")

    assert (accepted.code, accepted.report["accepted"], server.booked()) == (0, 61, (61, 0))


def test_a_source_that_was_only_touched_goes_on(place: Place, serve: Callable[..., Server]) -> None:
    """A new time on the same bytes is the same file."""
    server = serve()
    stopped_half_way(place, server)
    os.utime(place.folder / "rows.csv", (1, 1))

    report = resume_sync(place.folder / "runs", "run")

    assert (report.exit_code, server.booked()) == (0, (60, 0))


def test_a_source_that_is_gone_goes_on_from_the_spool(place: Place, serve: Callable[..., Server]) -> None:
    """The rows were read already; the run says so and ends."""
    server = serve()
    stopped_half_way(place, server)
    (place.folder / "rows.csv").unlink()

    said: list[str] = []
    report = resume_sync(place.folder / "runs", "run", None, Surroundings(say=said.append))

    assert (report.exit_code, server.booked()) == (0, (60, 0))
    assert [line for line in said if "no longer there" in line]


def test_a_changed_source_is_proved_by_its_own_rows(place: Place, serve: Callable[..., Server]) -> None:
    """After rows were put in front, the proof reads the new rows, and a second change is followed too."""
    server = serve()
    stopped_half_way(place, server)
    for number in range(2):
        rows = [*[("1001", f"99{more:02}", "New") for more in range(number + 1)], *FIRST]
        write(place.folder / "rows.csv", rows)
        assert resume_sync(place.folder / "runs", "run", Resume(source_changed="accept")).exit_code == 0

    proof = place.run("report", "run", "--verify", "--runs", "runs", "--json")

    assert (proof.code, proof.report["expected"], proof.report["once"]) == (0, 62, 62)
    assert server.booked() == (62, 0)


def test_rows_that_cannot_be_told_apart_are_refused(place: Place, serve: Callable[..., Server]) -> None:
    """Two equal rows, of which the target took one and refused the other: nothing tells which is which."""
    server = serve()
    twins = [("1001", "0001", "Twin"), ("1001", "0001", "Twin"), *FIRST[3:]]
    write(place.folder / "rows.csv", twins)
    assert stop_after(99, place, server).exit_code == 1
    calls = server.audit()["calls"]
    write(place.folder / "rows.csv", [*twins, ("1002", "9999", "New")])

    with pytest.raises(UsageError, match="told apart by nothing"):
        resume_sync(place.folder / "runs", "run", Resume(source_changed="accept"))
    assert [path.name for path in (place.folder / "runs" / "run").glob("spool*")] == ["spool.arrow"]

    assert server.audit()["calls"] - calls <= 1  # the list of companies


def test_other_columns_are_refused(place: Place, serve: Callable[..., Server]) -> None:
    """With a column more no row is the same, and the line names the column."""
    server = serve()
    stopped_half_way(place, server)
    table = pa.table({"company": ["1001"], "Code": ["1"], "Name": ["A"], "City": ["B"]})
    lines = [",".join(values) for values in zip(*table.to_pydict().values(), strict=True)]
    (place.folder / "rows.csv").write_text(",".join(table.column_names) + "\n" + "\n".join(lines) + "\n")

    with pytest.raises(UsageError, match="City"):
        resume_sync(place.folder / "runs", "run", Resume(source_changed="accept"))
    assert [path.name for path in (place.folder / "runs" / "run").glob("spool*")] == ["spool.arrow"]


def test_rows_that_are_dealt_anew_are_refused(place: Place, serve: Callable[..., Server]) -> None:
    """Without a company column rows go by their place; a row in front would send them all to other companies."""
    server = serve()
    rows = [f"{row:04},Customer {row}" for row in range(60)]
    (place.folder / "rows.csv").write_text("Code,Name\n" + "\n".join(rows) + "\n")
    stop_after(15, place, server)
    before = server.booked()

    (place.folder / "rows.csv").write_text("Code,Name\n" + "\n".join(["9999,New", *rows]) + "\n")
    with pytest.raises(UsageError, match="would go to company"):
        resume_sync(place.folder / "runs", "run", Resume(source_changed="accept"))
    assert server.booked() == before

    (place.folder / "rows.csv").write_text("Code,Name\n" + "\n".join([*rows, "9999,New"]) + "\n")
    appended = resume_sync(place.folder / "runs", "run", Resume(source_changed="accept"))
    assert (appended.exit_code, server.booked()) == (0, (61, 0))
    assert len(pq.read_table(place.folder / "runs" / "run" / "accepted.parquet")) == 61
