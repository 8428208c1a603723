"""Read what runs have left."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from saasload.errors import RunFolderError
from saasload.policy.concurrency import Change
from saasload.run.journal import open_journal
from saasload.run.report import Group, Report


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
