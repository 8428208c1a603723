"""Run folders: one process at a time, found by name, the latest where none is given."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from saasload.errors import RunFolderError, UsageError
from saasload.run.folder import find_run, make_run_folder, new_run_id, run_names
from saasload.run.journal import create_journal, open_journal
from saasload.run.lock import run_lock


@pytest.fixture
def begun(tmp_path: Path) -> Callable[[str], Path]:
    """Give a function that begins a run of a name."""
    moments = iter(range(1_790_000_000, 1_790_001_000))

    def begin(name: str) -> Path:
        folder = make_run_folder(tmp_path, name)
        create_journal(folder, {}).close()
        moment = next(moments)
        for path in (folder / "journal.db", folder):
            os.utime(path, (moment, moment))
        return folder

    return begin


def test_the_latest_run_is_found_where_none_is_named(tmp_path: Path, begun: Callable[[str], Path]) -> None:
    """By time, not by name; a folder without a journal is no run."""
    begun("zebra")
    begun("ape")
    (tmp_path / "empty").mkdir()

    assert find_run(tmp_path, None).name == "ape"
    assert find_run(tmp_path, "zebra").name == "zebra"
    assert run_names(tmp_path) == ["zebra", "ape"]


def test_looking_at_a_run_does_not_make_it_the_latest(tmp_path: Path, begun: Callable[[str], Path]) -> None:
    """A report or a proof of an older run opens its journal; a resume goes on with the newer one all the same."""
    old = begun("old")
    new = begun("new")
    for moment, folder in enumerate((old, new), 1_790_000_000):
        (folder / "spool.arrow").write_bytes(b"rows")
        os.utime(folder / "spool.arrow", (moment, moment))

    with run_lock(old):
        journal = open_journal(old)
        journal.state({"looked": True})
        journal.close()

    assert find_run(tmp_path, None) == new
    (old / "report.json").write_bytes(b"{}")
    assert find_run(tmp_path, None) == old


def test_a_name_that_is_not_there_is_answered_with_the_nearest(tmp_path: Path, begun: Callable[[str], Path]) -> None:
    """UsageError: what was meant, or where to look."""
    with pytest.raises(UsageError, match="no runs here"):
        find_run(tmp_path, None)
    begun("customers")
    with pytest.raises(UsageError, match=r"run custmers: .*did you mean customers\?"):
        find_run(tmp_path, "custmers")
    with pytest.raises(UsageError, match="not in"):
        find_run(tmp_path, "../customers")
    assert run_names(tmp_path / "nowhere") == []


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", ".hidden", "x" * 65, "a\nb", "é"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    """A run's name is a file's name everywhere."""
    with pytest.raises(UsageError, match="letters, digits, dots and dashes"):
        make_run_folder(tmp_path / "runs", name)
    assert not (tmp_path / "runs").exists()


def test_a_name_that_is_taken_is_refused_and_one_that_was_cut_off_is_free(
    tmp_path: Path, begun: Callable[[str], Path]
) -> None:
    """A folder without a journal is a start of which nothing was sent."""
    begun("taken")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "spool.arrow.part").write_bytes(b"half")

    with pytest.raises(UsageError, match="exists already"):
        make_run_folder(tmp_path, "taken")
    assert make_run_folder(tmp_path, "cut") == tmp_path / "cut"


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A file where the folder should be: one line with a way out."""
    (tmp_path / "runs").write_text("")

    with pytest.raises(RunFolderError, match=r"cannot be written: .*choose another with --runs"):
        make_run_folder(tmp_path / "runs", "run")


def test_names_made_here_differ_and_sort_by_time() -> None:
    """Two in one second differ by their last letters."""
    names = {new_run_id() for _ in range(50)}

    assert len(names) > 40
    assert all(len(name) == len("20260921-131327-abcd") for name in names)


HOLD = """
import sys
from pathlib import Path
from saasload.run.lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_with_the_number_of_the_first(tmp_path: Path) -> None:
    """And is let in as soon as the first has ended, even by SIGKILL."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"

        with pytest.raises(UsageError, match=f"in use by process {first.pid};"), run_lock(tmp_path):
            raise AssertionError

        first.send_signal(signal.SIGKILL)
        first.wait()
    with run_lock(tmp_path):
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_a_lock_ends_with_its_block_also_when_that_fails(tmp_path: Path) -> None:
    """One process may hold it again and again."""
    with pytest.raises(ZeroDivisionError), run_lock(tmp_path):
        raise ZeroDivisionError
    with run_lock(tmp_path), pytest.raises(UsageError, match="in use"), run_lock(tmp_path):
        raise AssertionError


def test_a_folder_that_cannot_be_locked_is_said(tmp_path: Path) -> None:
    """A folder in the place of the lock: one line, no traceback."""
    (tmp_path / "lock").mkdir()

    with pytest.raises(RunFolderError, match="lock: cannot be written: is a directory"), run_lock(tmp_path):
        raise AssertionError
