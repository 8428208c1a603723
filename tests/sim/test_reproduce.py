"""The published table again, and parameters of scenarios recovered, all in virtual time.

The golden file is rewritten by `saasload reproduce --quiet --out tests/golden/reproduce` (keep `reproduce.json` only).
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mock_server.scenario import parse_scenario
from saasload.experiments.calibrate import calibrate
from saasload.experiments.curve import CurveResult, run_curve
from saasload.experiments.document import reproduction_document, rounded, to_json
from saasload.experiments.loads import Load
from saasload.experiments.models import LinearFlat, Usl
from saasload.experiments.plan import make_plan
from saasload.experiments.reproduce import SEED, TESTS, Reproduction, load_of, reproduce
from saasload.experiments.runs import Ground, make_run, spare_cores
from saasload.testing import Simulation

GOLDEN = Path(__file__).parents[1] / "golden" / "reproduce" / "reproduce.json"
VIRTUAL = Ground("seeds", "virtual", 1.0)
LEVELS = (1, 2, 4, 8, 12, 20, 40)

pytestmark = pytest.mark.timeout(400)


def _ignore(_ran: object) -> None:
    pass


def test_the_published_table_comes_out_again() -> None:
    """EI1, EB1 and EX1 within 2 %, the others within 5 %, as many calls, a knee at the same place, the golden bytes.

    One test, so that workers that share out the tests do not each make the table.
    """
    table = reproduce(seed=SEED, workers=spare_cores(), time_scale=None, done=_ignore)

    assert [f"{cell.test.name}: {cell.rows_per_hour:,.0f} rows an hour" for cell in table.cells if not cell.fits] == []
    _check_unknown_cells(table)
    _check_curve(table)
    # every word and whole number as in the golden file; fractions within a thousandth, as machines round apart
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert list(_differences(expected, rounded(reproduction_document(table)))) == []


def _check_unknown_cells(table: Reproduction) -> None:
    """EI10 and EX10 get figures, and are marked as nobody's but ours; the work is the published one, call by call."""
    unknown = [cell for cell in table.cells if not cell.known]

    assert [(cell.test.name, cell.calls) for cell in unknown] == [("EI10", 10_000), ("EX10", 1_100)]
    assert all(90_000 < cell.rows_per_hour < 210_000 and cell.deviation is None for cell in unknown)
    assert [cell.calls for cell in table.cells] == [1000, 4, 11, 10_000, 400, 1_100, 400, 400, 11]


def _check_curve(table: Reproduction) -> None:
    """The knee lies between 7 and 10, and 32 and 100 are slower than 10."""
    assert table.knee_fits
    assert table.slower_beyond
    assert 7 <= table.curve.advice.recommended <= 10
    assert table.curve.advice.fits.best.curve.name == "linear-flat"


def test_the_same_seed_gives_the_same_bytes() -> None:
    """Run for run and digit for digit; another seed does not."""
    load = load_of(next(test for test in TESTS if test.name == "EB100"), repeat=0, seed=SEED)

    first, again, other = (
        make_run(made, VIRTUAL) for made in (load, load, load_of(TESTS[6], repeat=1, seed=SEED))
    )  # fmt: skip

    assert first == again
    assert first.duration_s != other.duration_s


def test_a_whole_curve_gives_the_same_bytes_again_whoever_runs_it(tmp_path: Path) -> None:
    """In one process or in two, the JSON is the same."""
    from saasload.experiments.document import curve_document  # noqa: PLC0415 beside its only use

    scenario = tmp_path / "s.toml"
    scenario.write_text("companies = 8\n[latency]\nslots = 3\njitter_sigma = 0.2\nbatch = { row_s = 0.1 }\n")
    texts = [to_json(curve_document(_curve(scenario, companies=8, rows=8, workers=workers))) for workers in (1, 2)]

    assert texts[0] == texts[1]


@pytest.mark.parametrize("slots", [5, 12])
def test_the_places_of_a_scenario_are_recovered(slots: int, tmp_path: Path) -> None:
    """A line with a ceiling fits best, and is as wide as the scenario within 10 %."""
    scenario = tmp_path / "slots.toml"
    scenario.write_text(
        f"companies = 40\n[latency]\nslots = {slots}\njitter_sigma = 0.1\nbatch = {{ call_s = 0.4, row_s = 0.05 }}\n"
    )

    best = _curve(scenario).curves[0].advice.fits.best.curve

    assert isinstance(best, LinearFlat)
    assert best.ceiling / best.slope == pytest.approx(slots, rel=0.1)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_law_of_a_scenario_is_recovered(alpha: float, tmp_path: Path) -> None:
    """Calls that slow each other down are the law's alpha, recovered within 10 %, as is the rate of one."""
    scenario = tmp_path / "usl.toml"
    scenario.write_text(
        f"companies = 40\n[latency]\nslots = 200\nbusy_coef = {alpha}\njitter_sigma = 0.05\n"
        "batch = { call_s = 0.4, row_s = 0.05 }\n"
    )

    best = _curve(scenario).curves[0].advice.fits.best.curve

    assert isinstance(best, Usl)
    assert best.alpha == pytest.approx(alpha, rel=0.1)
    assert best.gamma == pytest.approx(3 * 3600 / (0.4 + 3 * 0.05), rel=0.1)


def test_a_scenario_is_fitted_to_runs_and_plays_like_them(
    simulate: Callable[..., Simulation], samples: Callable[..., Path], tmp_path: Path
) -> None:
    """a, b, slots and the slow company within 10 %; and the scenario so written takes as long as the one it is of."""
    text = (
        "companies = 30\n[company.1007]\nslower = 3.0\n[latency]\nslots = 6\njitter_sigma = 0.1\n"
        "batch = { call_s = 0.4, row_s = 0.05 }\nxml = { call_s = 0.8, row_s = 0.03 }\n"
    )
    truth = parse_scenario(text, source="truth", name="truth")
    source = samples(rows=1500, companies=30)

    def load(scenario: Any, mode: str, rows_per_call: int) -> Simulation:
        how = {"parallel": 12, "profile": "mock-unlimited", "mode": mode, "rows_per_call": rows_per_call}
        return simulate(source, scenario, **how)

    runs = [load(truth, mode, size) for mode in ("batch", "xml") for size in (8, 40)]
    found = calibrate([run.folder for run in runs], tmp_path / "mine.toml")

    costs = found.target.costs
    assert found.target.slots == 6
    assert (costs["batch"].call_s, costs["batch"].row_s) == pytest.approx((0.4, 0.05), rel=0.1)
    assert (costs["xml"].call_s, costs["xml"].row_s) == pytest.approx((0.8, 0.03), rel=0.1)
    assert found.target.slower == {"1007": pytest.approx(3.0, rel=0.1)}
    again = load(parse_scenario(found.text, source="mine", name="mine"), "batch", 20)
    once = load(truth, "batch", 20)
    assert again.report.duration_s == pytest.approx(once.report.duration_s, rel=0.1)


def test_rows_loaded_again_unchanged_are_cheaper() -> None:
    """The second upload of the same rows is measured, and takes less than a third of the first."""
    once = Load("xml", 1, 1, 200, 91, 0, 1, "mock-unlimited")
    twice = Load("xml", 1, 1, 200, 91, 0, 1, "mock-unlimited", times=2)

    assert make_run(twice, VIRTUAL).duration_s < make_run(once, VIRTUAL).duration_s / 3


def _curve(scenario: Path, *, companies: int = 40, rows: int = 12, workers: int = 1) -> CurveResult:
    plan = make_plan(
        parallel=LEVELS, modes=("batch",), companies=companies, rows=rows, repeats=2, scenario=str(scenario),
        workers=workers,
    )  # fmt: skip
    return run_curve(plan, done=_ignore)


def _differences(expected: Any, found: Any, place: str = "") -> Sequence[str]:
    """Name the places where two documents differ."""
    if isinstance(expected, dict) and isinstance(found, dict) and list(expected) == list(found):
        return [line for name in expected for line in _differences(expected[name], found[name], f"{place}.{name}")]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        return [line for number, pair in enumerate(pairs) for line in _differences(*pair, f"{place}[{number}]")]
    if isinstance(expected, float) and isinstance(found, float):
        # beta of a fit may be next to nothing, and the AICc of two fits next to each other
        return [] if found == pytest.approx(expected, rel=1e-3, abs=1e-4) else [f"{place}: {expected} {found}"]
    return [] if expected == found else [f"{place}: {expected} {found}"]
