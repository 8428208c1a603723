"""The fault matrix on real sockets: what a connection can do to a call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from saasload.engine import Resume, push_sync, resume_sync
from saasload.job import make_job
from saasload.run.report import Report

from .conftest import Line, Target

MODES = ("insert", "batch", "xml")
ROWS = 24
FAULTS = (
    "reset before the request", "closed before the request", "time-out before the commit",
    "reset after the commit", "closed after the commit", "time-out after the commit",
    "cut head", "cut body", "length too long", "length too short", "not HTTP", "slow body", "closed after the answer",
)  # fmt: skip


def push(source: Path, runs: Path, line: Line, mode: str, **changes: Any) -> Report:
    """Load through a line."""
    return push_sync(make_job(**{
        "source": source, "to": line.url, "profile": "mock-unlimited", "mode": mode, "runs": runs, "run": "run",
        "rows_per_call": 1 if mode == "insert" else 4, "deadline_s": 240.0, "parallel": 2, **changes,
    }))  # fmt: skip


def accepted(runs: Path) -> list[int]:
    """List the rows of accepted.parquet."""
    found: list[int] = pq.read_table(runs / "run" / "accepted.parquet").column("row").to_pylist()
    return sorted(found)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.replace(" ", "-"))
@pytest.mark.parametrize("mode", MODES)
def test_a_connection_that_fails_leaves_each_row_once(
    mode: str, fault: str, source: Path, tmp_path: Path, target: Target, line: Callable[..., Line]
) -> None:
    """Two calls meet it; the run ends by itself with every row accepted, known, and booked once."""
    faulty = line({2: fault, 4: fault})

    report = push(source, tmp_path, faulty, mode)

    assert faulty.hit == [fault, fault]
    assert (report.exit_code, report.accepted, report.in_doubt) == (0, ROWS, 0)
    assert target.booked() == (ROWS, 0)
    assert accepted(tmp_path) == list(range(1, ROWS + 1))


@pytest.mark.parametrize("mode", MODES)
def test_a_target_that_refuses_connections_stops_the_run_and_it_goes_on_later(
    mode: str, source: Path, tmp_path: Path, target: Target, line: Callable[..., Line]
) -> None:
    """Never sent is sent again, and after enough tries the run stops with exit code 3, to go on later."""
    down = line({3: "hung up"})

    first = push(source, tmp_path, down, mode)

    assert (first.exit_code, first.unsent > 0) == (3, True)
    assert "connection refused" in first.stopped
    assert target.booked()[0] >= first.accepted
    assert first.read == first.accepted + first.rejected + first.in_doubt + first.unsent == ROWS
    again = resume_sync(tmp_path, "run", Resume({"to": line({}).url}))
    assert (again.exit_code, again.accepted) == (0, ROWS)
    assert target.booked() == (ROWS, 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_drops_idle_connections_loses_nothing(
    mode: str, source: Path, tmp_path: Path, target: Target, line: Callable[..., Line]
) -> None:
    """C46: each connection serves one request, says nothing of it, and closes when the second arrives."""
    dropping = line({})
    dropping.one_request_a_connection = True

    report = push(source, tmp_path, dropping, mode)
    while report.exit_code in {3, 4}:
        dropping.one_request_a_connection = False
        report = resume_sync(tmp_path, "run", None)

    assert (report.exit_code, report.rejected) == (0, 0)
    assert target.booked() == (ROWS, 0)
    assert accepted(tmp_path) == list(range(1, ROWS + 1))


@pytest.mark.parametrize("mode", ["batch", "xml"])
def test_a_call_that_was_cut_off_goes_out_whole_again(
    mode: str, source: Path, tmp_path: Path, target: Target, line: Callable[..., Line]
) -> None:
    """C48: a row that was not stored is sent with the same bytes as before."""
    faulty = line({1: "closed before the request"})

    report = push(source, tmp_path, faulty, mode, parallel=1)

    assert (report.exit_code, target.booked()) == (0, (ROWS, 0))
    assert faulty.bodies.count(faulty.bodies[0]) == 2
