"""Rows in doubt that no rule of the profile settles: a person's word, and what a crash leaves of it."""

from pathlib import Path

import pytest

from saasload.engine import Resume
from saasload.errors import UsageError
from saasload.profile import config_folder

from .line import Crashing, PowerFailureError
from .stage import ROWS, Stage, set_up

LOST = {("write", 5): "time-out before the commit", ("write", 6): "time-out before the commit"}


def two_in_doubt(folder: Path) -> tuple[Stage, Crashing]:
    """Load by POST without a rule; two rows are in doubt, and not there."""
    text = (config_folder() / "platforms" / "mock.toml").read_text()
    start, end = text.index("[entities.Account.in_doubt]"), text.index("[entities.Account.look_up]")
    profile = folder / "no-rule.toml"
    profile.write_text(text[:start] + text[end:])
    stage = set_up(folder, "insert", {})
    line = stage.faulty = Crashing(stage.app, LOST)
    report = stage.push(profile=str(profile))
    assert (report.exit_code, report.in_doubt) == (4, 2)
    return stage, line


def test_without_a_word_nothing_is_sent_and_the_line_says_what_is_in_doubt(tmp_path: Path) -> None:
    """They are not counted as settled."""
    stage, line = two_in_doubt(tmp_path)
    writes = line.seen["write"]

    with pytest.raises(UsageError, match="--in-doubt=resend"):
        stage.resume()

    assert line.seen["write"] == writes
    assert f"going on with run run: {ROWS - 2} of {ROWS} rows settled, 2 in doubt" in stage.said


def test_a_crash_after_the_word_asks_for_it_again(tmp_path: Path) -> None:
    """One row was sent and stored, the other was not: the journal calls both in doubt, and nothing comes twice."""
    stage, line = two_in_doubt(tmp_path)
    doubtful = stage.rows("in_doubt")
    line.crash_at = line.seen["write"] + 1
    with pytest.raises(PowerFailureError):
        stage.resume(Resume({"parallel": 1}, in_doubt="resend"))
    assert len(stage.ledger()) == ROWS - 1

    with pytest.raises(UsageError, match="2 rows are in doubt"):
        stage.resume()
    assert stage.rows("in_doubt") == doubtful
    last = stage.resume(Resume(in_doubt="resend"))

    assert (last.accepted, last.rejected, last.in_doubt, last.reasons) == (ROWS - 1, 1, 0, {"duplicate": 1})
    assert len(stage.ledger()) == len(set(stage.ledger())) == ROWS


def test_rows_that_were_on_the_wire_at_a_crash_are_in_the_file_that_a_person_is_sent_to(tmp_path: Path) -> None:
    """It is written anew before the question, for the run that crashed wrote none."""
    stage, line = two_in_doubt(tmp_path)
    line.crash_at = -line.seen["write"] - 1
    with pytest.raises(PowerFailureError):
        stage.resume(Resume({"parallel": 1}, in_doubt="resend"))
    (tmp_path / "runs" / "run" / "in_doubt.parquet").unlink()

    with pytest.raises(UsageError, match="2 rows are in doubt"):
        stage.resume()

    assert len(stage.rows("in_doubt")) == 2
