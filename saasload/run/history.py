"""Read what runs have left."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from saasload.errors import RunFolderError
from saasload.model import RowStatus
from saasload.policy.concurrency import Change
from saasload.profile import Pace
from saasload.run.files import FILES
from saasload.run.folder import run_names
from saasload.run.journal import open_journal
from saasload.run.report import Group, Report

FEWEST_CALLS = 20
"""Fewer tell nothing of a pace."""


def read_report(folder: Path) -> Report:
    """Read a run's report; RunFolderError where there is none, since the run never came to its end."""
    path = folder / "report.json"
    try:
        facts = orjson.loads(path.read_bytes())
        return Report(
            **{
                **facts,
                "groups": tuple(Group(**group) for group in facts["groups"]),
                "limit_changes": tuple(Change(**change) for change in facts["limit_changes"]),
            }
        )
    except FileNotFoundError as error:
        message = f"{folder}: no report yet; the run was cut off, go on with it: saasload resume {folder.name}"
        raise RunFolderError(message) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"{path}: cannot be read as a report"
        raise RunFolderError(message) from error


class Rejected(NamedTuple):
    """One row that the target, or we, refused."""

    row: int
    field: str
    reason: str
    message: str


def first_rejected(folder: Path) -> Rejected | None:
    """Find the first row of the source that a run saw rejected; None where there is none, or no file of them."""
    path = folder / FILES[RowStatus.REJECTED]
    try:
        # our columns stand behind the source's, and have its names in front of them where it has them too
        names = pq.read_schema(path).names[-5:]
        table = pq.read_table(path, columns=[name for name in names if not name.endswith("status")])
    except (OSError, pa.ArrowException):
        return None
    rows = table.column(0).to_pylist()
    if not rows:
        return None
    first = table.slice(rows.index(min(rows)), 1).to_pylist()[0]
    return Rejected(*first.values())


def latest_parallel(runs: Path, target: str) -> int | None:
    """Tell the parallelism that the latest adaptive load into a target found; 1 is no hint."""
    for name in reversed(run_names(runs)):
        try:
            found = read_report(runs / name)
        except RunFolderError:
            continue
        if found.target == target and found.parallel_found and found.calls >= FEWEST_CALLS and found.parallel > 1:
            return found.parallel
    return None


def latest_paces(runs: Path, target: str) -> dict[str, Pace]:
    """Fit, by mode, how long calls took in the latest run into a target: `call_s + row_s * rows`, by least squares.

    What the run's calls waited for each other at the target is in it, so it holds for a like parallelism.
    """
    for name in reversed(run_names(runs)):
        try:
            found = read_report(runs / name)
            if found.target != target:
                continue
            calls = pq.read_table(runs / name / "calls.parquet", columns=["mode", "rows", "ms", "status"]).to_pylist()
        except (RunFolderError, OSError, pa.ArrowException):
            continue
        paces = {}
        for mode in ("insert", "batch", "xml"):
            points = [
                (call["rows"], call["ms"] / 1000.0)
                for call in calls
                if call["mode"] == mode and 200 <= call["status"] < 300
            ]
            if len(points) >= FEWEST_CALLS:
                paces[mode] = _line(points)
        if paces:
            return paces
    return {}


def _line(points: list[tuple[int, float]]) -> Pace:
    """Fit a line through points; calls of one size tell only what a row takes."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread > 0 else mean_y / mean_x
    slope = min(max(slope, 0.0), mean_y / mean_x)
    return Pace(call_s=max(mean_y - slope * mean_x, 0.0), row_s=slope)


def is_open(folder: Path) -> bool:
    """Whether a run has something left to do."""
    try:
        with closing(open_journal(folder)) as journal:
            return journal.facts().get("state") != "finished"
    except RunFolderError:
        return False


def outline(folder: Path) -> Mapping[str, Any]:
    """Sum a run up in a few words and figures, for a list; a damaged run is listed as such."""
    try:
        with closing(open_journal(folder)) as journal:
            facts: Mapping[str, Any] = journal.facts()
    except RunFolderError:
        return {"run": folder.name, "state": "damaged"}
    job = facts.get("job", {})
    line = {
        "run": folder.name,
        "state": facts.get("state", ""),
        "source": Path(job.get("source", "")).name,
        "target": job.get("to", ""),
        "mode": job.get("mode", ""),
    }
    try:
        found = read_report(folder)
    except RunFolderError:
        return {**line, "state": "cut off"}
    figures = {name: getattr(found, name) for name in ("read", "accepted", "rejected", "in_doubt", "unsent")}
    return {**line, "mode": found.mode, **figures}
