"""The fault matrix in virtual time: each way to travel, each way to go wrong, and pairs of them.

Every cell ends with rows that add up, a ledger that is what accepted.parquet says, the documented exit code, and,
after a resume with the faults off, every row that can be accepted accepted once.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .line import FAULTS, MODES, ONLY, REFUSES
from .stage import ROWS, set_up

CELLS = [(mode, fault) for fault in FAULTS for mode in MODES if mode in ONLY.get(fault, MODES)]


@pytest.mark.parametrize(("mode", "fault"), CELLS, ids=lambda value: value.replace(" ", "-"))
def test_every_fault_ends_with_each_row_once_and_known(mode: str, fault: str, tmp_path: Path) -> None:
    """Two calls meet the fault; the run ends by itself, and what it says is what the ledger holds."""
    stage = set_up(tmp_path, mode, {("write", 2): fault, ("write", 4): fault})

    report = stage.push()

    rejected = 2 if mode == "insert" and fault in REFUSES else 0
    assert stage.faulty.hit == [fault, fault]
    assert stage.adds_up(report)
    assert (report.exit_code, report.accepted, report.rejected) == (bool(rejected), ROWS - rejected, rejected)
    assert stage.ledger() == stage.accepted()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda value: value.replace(" ", "-"))
@pytest.mark.parametrize("mode", MODES)
def test_a_fault_that_does_not_end_leaves_a_run_that_a_resume_completes(mode: str, fault: str, tmp_path: Path) -> None:
    """From the second call on every one meets the fault, look-ups too; nothing is said that is not so."""
    if mode not in ONLY.get(fault, MODES):
        pytest.skip(f"{mode} has no such answer")
    endless = {(kind, number): fault for kind in ("write", "look-up") for number in range(2, 2000)}
    stage = set_up(tmp_path, mode, endless)

    first = stage.push()
    held, known = stage.ledger(), stage.accepted()
    assert stage.adds_up(first)
    assert set(known) <= set(held)
    assert len(held) == len(set(held))
    unexplained = set(held) - set(known)
    assert len(unexplained) <= first.in_doubt
    expected = {0} if first.accepted == ROWS else {1, 3, 4}
    assert first.exit_code in expected

    last = stage.resume()

    assert stage.adds_up(last)
    assert (last.accepted, last.in_doubt, last.unsent) == (ROWS - first.rejected, 0, 0)
    assert last.exit_code == bool(first.rejected)
    assert stage.ledger() == stage.accepted()


CALLS = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 8)),
    st.tuples(st.just("look-up"), st.integers(1, 3)),
)
PAIRS = st.lists(st.tuples(CALLS, st.sampled_from(FAULTS)), min_size=2, max_size=5, unique_by=lambda pair: pair[0])


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(mode=st.sampled_from(MODES), pairs=PAIRS, per_company=st.integers(1, 2))
def test_faults_that_meet_leave_each_row_once(
    mode: str, pairs: list[tuple[tuple[str, int], str]], per_company: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two to five faults at calls drawn at random, on the rows or on the questions after them."""
    possible = {call: fault for call, fault in pairs if mode in ONLY.get(fault, MODES) or call[0] == "look-up"}
    stage = set_up(tmp_path_factory.mktemp("pairs"), mode, possible)

    first = stage.push(per_company=per_company, parallel=4)

    assert stage.adds_up(first)
    held = stage.ledger()
    assert len(held) == len(set(held))
    assert set(stage.accepted()) <= set(held)
    # A question that is refused for good leaves its rows in doubt: for them a person, or the next process, asks again.
    refused = any(call[0] == "look-up" and fault in REFUSES for call, fault in possible.items())
    assert first.unsent == 0
    assert first.exit_code == (4 if first.in_doubt else bool(first.rejected))
    assert not first.in_doubt or refused
    last = stage.resume()
    assert (last.accepted, last.rejected) == (ROWS - first.rejected, first.rejected)
    assert last.exit_code == bool(first.rejected)
    assert stage.ledger() == stage.accepted()
