"""What is written comes back, whole or not at all; a file that cannot be ours is said to be so."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from saasload.errors import RunFolderError
from saasload.model import Company, Note, Outcomes, RowStatus, all_rows
from saasload.run.book import Book, Times
from saasload.run.journal import (
    CARRIED,
    FILE,
    LOOK_UP,
    MIXED,
    Journal,
    Sending,
    Settled,
    create_journal,
    open_journal,
    unpack_notes,
    unpack_rows,
)

A, B = Company("1001"), Company("1002")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a run folder with nothing in it."""
    return tmp_path


def sending(no: int, rows: list[int], *, company: Company = A, form: str = "batch") -> Sending:
    """Make a record of a call that leaves."""
    return Sending(no, company, form, 1_790_000_000_000 + no, 100, 1, rows)


def settled(no: int, outcomes: Outcomes | None, note: str = "") -> Settled:
    """Make a record of what came of it."""
    return Settled(no, 200, 12.5, note, outcomes)


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
STATUSES = st.sampled_from(RowStatus)


@st.composite
def heard(draw: st.DrawFn) -> Outcomes:
    """Draw outcomes of one row or several."""
    rows = draw(st.lists(st.integers(1, 2**40), min_size=1, max_size=6, unique=True))
    statuses = draw(st.lists(STATUSES, min_size=len(rows), max_size=len(rows)))
    ids = draw(st.lists(TEXT, min_size=len(rows), max_size=len(rows)))
    notes = draw(st.dictionaries(st.sampled_from(rows), st.builds(Note, TEXT, TEXT, TEXT, st.integers(0, 599))))
    return Outcomes(rows, statuses, ids, notes)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(st.tuples(heard(), st.sampled_from(("insert", LOOK_UP, CARRIED))), min_size=1, max_size=4))
def test_every_kind_of_record_comes_back(calls: list[tuple[Outcomes, str]], folder: Path) -> None:
    """Rows, statuses, notes and ids of any text, in the order the calls left, after the file was closed."""
    (folder / FILE).unlink(missing_ok=True)
    with closing(create_journal(folder, {"name": "é"})) as journal:
        for number, (outcomes, form) in enumerate(calls, 1):
            journal.write([sending(number, list(outcomes.rows), form=form), settled(number, outcomes)])

    with closing(open_journal(folder)) as journal:
        entries, ids = list(journal.replay()), journal.ids()

    assert len(entries) == len(calls)
    for entry, (outcomes, form) in zip(entries, calls, strict=True):
        rows = [entry.row] if entry.rows is None else list(unpack_rows(entry.rows))
        codes = list(entry.outcomes) if entry.outcome == MIXED and entry.outcomes else [entry.outcome] * len(rows)
        assert (entry.company, entry.form, rows) == (A, form, list(outcomes.rows))
        assert codes == list(outcomes.statuses)
        assert ({} if entry.notes is None else unpack_notes(entry.notes)) == outcomes.notes
    wanted = {}
    for outcomes, _ in calls:
        pairs = zip(outcomes.rows, outcomes.statuses, outcomes.ids, strict=True)
        wanted.update({row: identity for row, status, identity in pairs if status.accepted and identity})
    assert wanted.items() <= ids.items() or len({row for outcomes, _ in calls for row in outcomes.rows}) < sum(
        len(outcomes) for outcomes, _ in calls
    )


def test_a_call_without_an_answer_and_one_that_was_not_executed_differ(folder: Path) -> None:
    """The first leaves its rows in doubt, the second as unsent as before."""
    with closing(create_journal(folder, {})) as journal:
        journal.write([sending(1, [1]), sending(2, [2, 3]), settled(2, None, "busy")])
        lost, refused = journal.replay()

        assert (lost.outcome, refused.outcome) == (None, 0)
        assert journal.last_call() == 2
        assert journal.count_calls() == {A: 2}


def test_facts_are_kept_over_what_was_kept_before(folder: Path) -> None:
    """The last value of a name counts."""
    with closing(create_journal(folder, {"state": "begun", "job": {"a": 1}})) as journal:
        journal.state({"state": "sending"})
    with closing(open_journal(folder)) as journal:
        assert journal.facts() == {"state": "sending", "job": {"a": 1}}


def test_accepted_rows_are_told_with_their_ids(folder: Path) -> None:
    """Single POSTs, batches, look-ups and what was carried over, each row once; what is not accepted is not told."""
    mixed = Outcomes([4, 5], [RowStatus.UPDATED, RowStatus.REJECTED], ["id4", ""], {5: Note("refused")})
    with closing(create_journal(folder, {})) as journal:
        journal.write([
            sending(1, [1], form="insert"), settled(1, Outcomes([1], [RowStatus.CREATED], ["id1"])),
            sending(2, [2], form="insert"),
            sending(3, [4, 5]), settled(3, mixed),
            sending(4, [2], form=LOOK_UP), settled(4, Outcomes([2], [RowStatus.CREATED], ["id2"])),
            sending(5, [6], form="insert"), settled(5, all_rows([6], RowStatus.IN_DOUBT, Note("late"))),
            sending(6, [7], form="insert"), settled(6, None),
        ])  # fmt: skip

        assert {row: name for row, name in journal.ids().items() if name} == {1: "id1", 2: "id2", 4: "id4"}
        assert sum(len(columns[0]) for columns in journal.trips()) == 6


def test_a_journal_that_is_not_there_is_said(folder: Path) -> None:
    """No journal, no run."""
    with pytest.raises(RunFolderError, match="no journal here"):
        open_journal(folder)


def test_a_half_created_journal_is_none(folder: Path) -> None:
    """It has its name only when it is whole; what a cut-off start left is no hindrance."""
    (folder / f"{FILE}.part").write_bytes(b"half")
    with pytest.raises(RunFolderError, match="no journal here"):
        open_journal(folder)

    create_journal(folder, {"x": 1}).close()

    assert not (folder / f"{FILE}.part").exists()
    with closing(open_journal(folder)) as journal:
        assert journal.facts() == {"x": 1}


@pytest.mark.parametrize(
    ("version", "words"), [(3, "newer version of saasload; update"), (1, "an older version"), (0, "no finished start")]
)
def test_another_version_is_refused(version: int, words: str, folder: Path) -> None:
    """A newer one asks for an update; 0 is a file that nobody finished."""
    create_journal(folder, {}).close()
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute(f"pragma user_version = {version}")

    with pytest.raises(RunFolderError, match=words):
        open_journal(folder)


def test_it_is_durable_against_power_loss(folder: Path) -> None:
    """WAL, and every commit is synced: what `sending` rests on."""
    with closing(create_journal(folder, {})) as journal:
        pragma = journal._connection.execute
        assert pragma("pragma journal_mode").fetchone() == ("wal",)
        assert pragma("pragma synchronous").fetchone() == (2,)


def test_a_failed_write_leaves_nothing_of_itself(folder: Path) -> None:
    """Records go in together or not at all, and the journal can be written again after it."""
    with closing(create_journal(folder, {})) as journal:
        journal.write([sending(1, [1])])
        with pytest.raises(RunFolderError, match=r"journal\.db: unique constraint"):
            journal.write([sending(2, [2]), sending(1, [3])])
        journal.write([sending(3, [4])])

        assert [entry.row for entry in journal.replay()] == [1, 4]


def test_going_over_to_another_source_is_one_step(folder: Path) -> None:
    """Outcomes that are carried over count, older ones do not; where carrying fails nothing has changed."""
    with closing(create_journal(folder, {})) as journal:
        journal.write([sending(1, [1]), settled(1, all_rows([1], RowStatus.CREATED)), sending(2, [2])])

        def failing() -> "list[tuple[Company, Outcomes]]":
            raise RunFolderError("no")

        with pytest.raises(RunFolderError, match="no"):
            journal.begin_source("spool-2.arrow", (pair for _ in range(1) for pair in failing()))
        assert len(list(journal.replay())) == 2
        carried = [(A, all_rows([5], RowStatus.CREATED)), (B, all_rows([7, 8], RowStatus.IN_DOUBT, Note("late")))]
        journal.begin_source("spool-2.arrow", iter(carried))

    with closing(open_journal(folder)) as journal:
        assert journal.facts()["spool"] == "spool-2.arrow"
        assert [(entry.form, entry.row, entry.outcome) for entry in journal.replay()] == [
            (CARRIED, 5, RowStatus.CREATED),
            (CARRIED, None, RowStatus.IN_DOUBT),
        ]
        assert journal.count_calls() == {}
        assert journal.last_call() == 4
        assert sum(len(columns[0]) for columns in journal.trips()) == 2


def _full(folder: Path) -> Path:
    """Write a journal of some size, all of it in the main file."""
    with closing(create_journal(folder, {"job": {"source": "rows.csv"}})) as journal:
        for number in range(1, 120):
            rows = list(range(number * 20, number * 20 + 20))
            outcomes = Outcomes(rows, [RowStatus.CREATED] * 19 + [RowStatus.REJECTED], [f"id{row}" for row in rows],
                                {rows[-1]: Note("refused", "Verplicht: Naam", "Name", 400)})  # fmt: skip
            journal.write([sending(number, rows), settled(number, outcomes)])
    return folder / FILE


@settings(
    max_examples=60, deadline=None, derandomize=True, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(data=st.data())
def test_a_damaged_file_is_said_to_be_damaged_or_read_as_far_as_it_can_be(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Bytes flipped anywhere: one sentence, never a traceback, and never an empty journal in its place."""
    base = tmp_path_factory.getbasetemp() / "journal-whole"
    if not base.exists():
        base.mkdir()
        _full(base)
    folder = tmp_path_factory.mktemp("damaged")
    shutil.copy(base / FILE, folder / FILE)
    size = (folder / FILE).stat().st_size
    place = data.draw(st.integers(0, size - 1))
    run = data.draw(st.binary(min_size=1, max_size=64))
    with (folder / FILE).open("r+b") as file:
        file.seek(place)
        file.write(run[: size - place])

    try:
        with closing(open_journal(folder)) as journal:
            facts = journal.facts()
            book = Book(journal, rows=3000, companies={A: 3000}, times=Times("batch", 0.0, threads=False))
            book.replay()
            settled_rows = book.counts.total()
            book.close()
    except RunFolderError as error:
        said = str(error)
    else:
        said = str(folder / FILE)
        assert isinstance(facts, dict)
        # a change within a value cannot be seen without checksums; nothing is lost for it
        assert settled_rows > 2000
    assert str(folder / FILE) in said
    assert "\n" not in said


def test_damage_is_said_before_anything_is_read(folder: Path) -> None:
    """A page of calls in the middle of the file is gone: the run is not gone on with as far as it can be read."""
    path = _full(folder)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 4096 // 2 * 4096)
        file.write(bytes(4096))

    with pytest.raises(RunFolderError, match=r"damaged .*look there first"):
        open_journal(folder)


@pytest.mark.parametrize("size", [0, 100, 4096, 9000])
def test_a_file_that_was_cut_short_is_said(size: int, folder: Path) -> None:
    """A journal that lost its end is damaged, not short."""
    os.truncate(_full(folder), size)

    with pytest.raises(RunFolderError, match=r"journal\.db"):
        open_journal(folder)


def test_nothing_but_this_run_is_in_a_new_journal(folder: Path) -> None:
    """A new journal has no calls."""
    with closing(create_journal(folder, {})) as journal:
        assert isinstance(journal, Journal)
        assert (list(journal.replay()), journal.last_call(), list(journal.single_rows())) == ([], 0, [])


def test_a_number_that_only_a_second_half_has_is_taken(folder: Path) -> None:
    """A full disk may keep that a call was not sent, and not that it was to be."""
    journal = create_journal(folder, {})
    journal.write([settled(7, None)])

    assert journal.last_call() == 7
    assert list(journal.replay()) == []
    journal.close()
