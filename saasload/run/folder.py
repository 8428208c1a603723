"""The folder a run keeps its files in."""

import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

from saasload.errors import RunFolderError, UsageError

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_run_id() -> str:
    """Make a run's name: when it began, and four letters so that two at once differ."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def make_run_folder(runs: Path, run: str) -> Path:
    """Make a new run's folder, and try that it can be written.

    Raises RunFolderError where it cannot, UsageError where the name is taken or is none.
    """
    if not _RUN_ID.fullmatch(run):
        message = f"--run {run}: a run's name has letters, digits, dots and dashes, at most 64"
        raise UsageError(message)
    folder = runs / run
    try:
        runs.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        probe = folder / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        if folder.exists():
            message = f"{folder}: exists already; give the run another name"
            raise UsageError(message) from error
        message = f"{folder}: cannot be written: {os.strerror(error.errno or 0).lower()}; choose another with --runs"
        raise RunFolderError(message) from error
    return folder
