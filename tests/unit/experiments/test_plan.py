"""Arguments of experiments: what they become, and what is refused in one line."""

import pytest

from saasload.errors import UsageError
from saasload.experiments import extras
from saasload.experiments.plan import check_real_target, in_order, loads_of, make_plan, parse_levels, parse_modes
from saasload.experiments.practice import make_app, read_scenario


@pytest.mark.parametrize("text", ["", "1,,2", "0", "-1", "1.5", "two", "1,20000", "٣,x"])
def test_levels_that_are_none_are_refused(text: str) -> None:
    """A level is a whole number from 1 to 10,000."""
    with pytest.raises(UsageError, match="no whole number from 1 to 10,000"):
        parse_levels(text)


def test_modes_are_read_once_each_in_order() -> None:
    """And an unknown one is answered with the nearest."""
    assert parse_modes("xml, insert,xml") == ("xml", "insert")
    with pytest.raises(UsageError, match="--mode bacth: did you mean batch"):
        parse_modes("insert,bacth")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rows": 0}, "--rows 0: must be"),
        ({"repeats": -1}, "--repeats -1: must be"),
        ({"clock": "vritual"}, "--clock vritual: did you mean virtual"),
        ({"time_scale": 0.0}, "--time-scale 0.0: must be"),
        ({"to": "http://there"}, "add --clock real"),
        ({"rows_per_call": 0}, "--rows-per-call 0: must be"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(arguments: dict[str, object], words: str) -> None:
    """Each with the option and what it should be."""
    with pytest.raises(UsageError, match=words):
        make_plan(**arguments)


def test_every_level_does_the_same_work_with_the_same_seeds() -> None:
    """Levels differ by their parallelism alone, and run in a random order that the seed decides."""
    plan = make_plan(parallel=(1, 2, 4, 8), modes=("batch", "insert"), companies=3, rows=10, repeats=2, seed=5)
    loads = loads_of(plan, "mock")

    assert len(loads) == 16
    assert {(load.rows, load.companies) for load in loads} == {(30, 3)}
    assert {load.rows_per_call for load in loads if load.mode == "insert"} == {1}
    assert {load.rows_per_call for load in loads if load.mode == "batch"} == {3}
    assert {load.seed for load in loads} == {5, 6}
    assert loads == loads_of(plan, "mock") != in_order(loads)


def test_a_real_target_needs_consent_and_a_budget() -> None:
    """Both, and the budget must be large enough; the mock needs neither."""
    plan = make_plan(to="https://there", clock="real", parallel=(1, 2, 3, 4), companies=2, rows=10, repeats=1)

    with pytest.raises(UsageError, match="writes 240 rows there; add --yes-load-a-real-target"):
        check_real_target(plan, agreed="not agreed", row_budget=1000)
    with pytest.raises(UsageError, match="add --row-budget"):
        check_real_target(plan, agreed="agreed", row_budget=None)
    with pytest.raises(UsageError, match="--row-budget 239: this writes 240 rows"):
        check_real_target(plan, agreed="agreed", row_budget=239)
    check_real_target(plan, agreed="agreed", row_budget=240)
    check_real_target(make_plan(), agreed="not agreed", row_budget=None)


def test_an_unknown_scenario_is_answered_with_the_nearest() -> None:
    """In one line, as all bad input."""
    with pytest.raises(UsageError, match="sedes: no such scenario, did you mean seeds"):
        read_scenario("sedes")
    assert make_app("seeds", seed=3, epoch_s=0.0) is not None


def test_missing_extras_are_named_with_the_way_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, before anything is imported."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "scipy" else object())

    with pytest.raises(UsageError, match=r"need scipy: pip install 'saasload\[experiments\]'"):
        extras.need_extras()
