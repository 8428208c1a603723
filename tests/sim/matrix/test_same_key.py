"""Rows of the source that have one key, when answers are lost."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from saasload.engine import Resume
from saasload.run.report import Report

from .line import FAULTS, ONLY, REFUSES, Crashing, PowerFailureError
from .stage import WORLD, Stage, set_up


def write_rows(folder: Path, keys: Sequence[tuple[str, str]]) -> None:
    """Write a source of companies and codes, each row with a name of its own."""
    columns = {
        "company": [company for company, _ in keys],
        "Code": [code for _, code in keys],
        "Name": [f"Row {row}" for row in range(1, len(keys) + 1)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / "rows.parquet")


@pytest.mark.parametrize("mode", ["insert", "batch"])
@pytest.mark.parametrize("fault", ["reset before the request", "reset after the commit"])
def test_of_two_rows_with_one_key_one_is_accepted_whatever_is_lost(mode: str, fault: str, tmp_path: Path) -> None:
    """The row that is found there is counted for one of them only; the other one is a duplicate."""
    twice = {"company": ["1001"] * 4, "Code": ["1", "2", "1", "2"], "Name": ["A", "B", "A", "B"]}
    pq.write_table(pa.table(twice), tmp_path / "rows.parquet")
    stage = set_up(tmp_path, mode, {("write", 1): fault, ("write", 2): fault})

    report = stage.push(rows_per_call=1 if mode == "insert" else 2)

    assert (report.exit_code, report.accepted, report.rejected, report.reasons) == (1, 2, 2, {"duplicate": 2})
    assert stage.ledger() == stage.accepted()


@pytest.mark.parametrize("per_company", [1, 2])
@pytest.mark.parametrize("fault", ["time-out before the commit", "reset after the commit"])
def test_an_upload_that_was_lost_does_not_come_after_a_newer_row_of_its_key(
    fault: str, per_company: int, tmp_path: Path
) -> None:
    """The row in doubt goes again, then the newer one; rows of other keys do not wait for it."""
    write_rows(tmp_path, [("1001", code) for code in ("1", "2", "1", "3")])
    stage = set_up(tmp_path, "xml", {("write", 1): fault})

    report = stage.push(rows_per_call=1, per_company=per_company)

    assert (report.exit_code, report.accepted) == (0, 4)
    assert stage.names() == {("1001", "1"): "Row 3", ("1001", "2"): "Row 2", ("1001", "3"): "Row 4"}


def _until_done(stage: Stage, **arguments: int) -> Report:
    """Push, and resume after a crash or a stop."""
    report: Report | None = None
    for _ in range(5):
        begun = (stage.folder / "runs" / "run" / "journal.db").exists()
        try:
            report = stage.resume(Resume(arguments)) if begun else stage.push(**arguments)
        except PowerFailureError:
            continue
        except BaseExceptionGroup as group:
            if group.split(PowerFailureError)[1] is not None:
                raise
            continue
        if not report.unsent and not report.in_doubt:
            break
    assert report is not None
    return report


def test_a_row_in_doubt_whose_key_a_newer_row_has_by_now_is_not_sent_over_it(tmp_path: Path) -> None:
    """Sent by POST and lost, a newer one stored, and then the run goes on by upload: the newer one stays."""
    write_rows(tmp_path, [("1001", "1"), ("1001", "1"), ("1001", "2")])
    stage = set_up(tmp_path, "insert", {("write", 1): "time-out before the commit"})
    crashing = stage.faulty = Crashing(stage.app, stage.faulty.faults)
    crashing.crash_when_asked = True
    with pytest.raises(PowerFailureError):
        stage.push()
    writes = crashing.seen["write"]

    report = stage.resume(Resume({"mode": "xml"}))

    assert (report.exit_code, report.created, report.unchanged, report.reasons) == (0, 2, 1, {"replaced": 1})
    assert (crashing.seen["write"], stage.rows("accepted")) == (writes, [1, 2, 3])
    assert stage.names() == {("1001", "1"): "Row 2", ("1001", "2"): "Row 3"}
    assert stage.resume().unchanged == 1


KEYS = st.lists(st.tuples(st.sampled_from(("1001", "1002")), st.sampled_from("12345")), min_size=4, max_size=24)
HARMLESS = [fault for fault in FAULTS if fault not in REFUSES and "xml" in ONLY.get(fault, ("xml",))]
LOST = st.dictionaries(st.integers(1, 10).map(lambda number: ("write", number)), st.sampled_from(HARMLESS), max_size=5)


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    keys=KEYS, lost=LOST, crash_at=st.sampled_from((0, 0, 1, -1, 2, -3, 5)), per_company=st.integers(1, 3),
    rows_per_call=st.integers(1, 4),
)  # fmt: skip
@example(keys=[("1001", "1")] * 6, lost={("write", 1): "an answer without the last row"}, crash_at=0, per_company=1,
         rows_per_call=4)  # fmt: skip
@example(keys=[("1001", "1")] * 6, lost={("write", 2): "reset before the request"}, crash_at=1, per_company=3,
         rows_per_call=1)  # fmt: skip
def test_the_last_row_of_each_key_is_what_the_target_holds(
    keys: list[tuple[str, str]], lost: dict[tuple[str, int], str], crash_at: int, per_company: int,
    rows_per_call: int, tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """Whatever is lost, late, refused or cut off by a crash; and each row is accepted, once."""
    folder = tmp_path_factory.mktemp("keys")
    write_rows(folder, keys)
    stage = set_up(folder, "xml", {})
    crashing = stage.faulty = Crashing(stage.app, lost)
    crashing.crash_at = crash_at

    report = _until_done(stage, per_company=per_company, rows_per_call=rows_per_call, parallel=4)

    assert (report.exit_code, report.accepted) == (0, len(keys)), report
    assert stage.adds_up(report, len(keys))
    stage.ledger()  # with what is stored late
    assert stage.names() == {key: f"Row {row}" for row, key in enumerate(keys, 1)}


@pytest.mark.parametrize(
    ("mode", "keys", "expected"),
    [
        ("xml", [str(number % 50) for number in range(120)], (120, 50, 0, 0, 70)),
        ("insert", [str(number) for number in range(45)], (45, 45, 0, 0, 0)),
        ("insert", ["1", "2", "1", "1"], (4, 4, 0, 0, 0)),
    ],
    ids=["updated", "created", "created-with-one-key"],
)
def test_the_proof_knows_rows_with_one_key(
    mode: str, keys: list[str], expected: tuple[int, ...], tmp_path: Path
) -> None:
    """However far apart they stand; updated by each other they are one row there, created they are as many."""
    write_rows(tmp_path, [("1001", key) for key in keys])
    stage = set_up(tmp_path, mode, {}, "unique_code = false\n" + WORLD)
    assert stage.push().exit_code == 0

    proof = stage.verify()

    assert (proof.expected, proof.once, proof.missing, proof.twice, proof.replaced) == expected
    assert (proof.exit_code, proof.different, proof.keyless) == (0, 0, 0)
    assert proof.expected == proof.once + proof.replaced


def test_the_proof_finds_what_is_missing_and_what_is_there_too_often(tmp_path: Path) -> None:
    """Of a key that several rows share, too."""
    write_rows(tmp_path, [("1001", key) for key in "12344"])
    stage = set_up(tmp_path, "xml", {})
    assert stage.push().exit_code == 0
    (book,) = stage.app.world.ledger.books().values()
    for number in list(book.numbers()):
        if book.codes[number] in {"1", "4"}:
            book.delete(number)
    book.add("2", book.rows[next(number for number in book.numbers() if book.codes[number] == "2")])

    proof = stage.verify()

    assert (proof.expected, proof.once, proof.missing, proof.twice, proof.replaced) == (5, 1, 2, 1, 1)
    assert proof.exit_code == 1
