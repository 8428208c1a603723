"""The folder a run keeps its files in."""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from saasload.errors import NoRoomError, RunFolderError, UsageError
from saasload.names import nearest
from saasload.run.journal import FILE as JOURNAL

_LANDMARKS = ("spool.arrow", "report.json")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_run_id() -> str:
    """Make a run's name: when it began, and four letters so that two at once differ."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def find_run(runs: Path, run: str | None, wanted: Callable[[Path], bool] = lambda _: True) -> Path:
    """Find a run's folder by its name; where none is given the latest that is wanted, else the latest.

    Raises UsageError with the nearest names.
    """
    names = run_names(runs)
    if run is None and names:
        return runs / next((name for name in reversed(names) if wanted(runs / name)), names[-1])
    if run is not None and run in names:
        return runs / run
    if not names:
        message = f"{runs}: no runs here; name their folder with --runs"
    else:
        message = f"run {run}: not in {runs}; {nearest(str(run), names[-5:])}"
    raise UsageError(message)


def run_names(runs: Path) -> list[str]:
    """List the runs in a folder, the one that began or ended last at the end."""
    try:
        found = [(_moment(path), path.name) for path in runs.iterdir() if (path / JOURNAL).is_file()]
    except OSError:
        return []
    return [name for _, name in sorted(found)]


def _moment(folder: Path) -> int:
    """Tell when a run last wrote of itself; the folder's own time changes when somebody only looks at it."""
    written = [path.stat().st_mtime_ns for name in _LANDMARKS if (path := folder / name).exists()]
    return max(written, default=(folder / JOURNAL).stat().st_mtime_ns)


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
        # A folder without a journal is a start that was cut off: nothing was sent, and its name is free.
        folder.mkdir(exist_ok=not (folder / JOURNAL).exists())
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


@contextmanager
def kept_for_room(folder: Path) -> Iterator[None]:
    """Say of a run that a full disk stops how it goes on."""
    try:
        yield
    except NoRoomError as error:
        message = f"{error}; make room, then go on with it: saasload resume {folder.name}"
        raise NoRoomError(message) from error
