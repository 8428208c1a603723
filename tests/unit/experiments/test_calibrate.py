"""A scenario file from finished runs."""

import tomllib
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mock_server.scenario import parse_scenario
from saasload.errors import RunFolderError, UsageError
from saasload.experiments.calibrate import calibrate, find_run, lines, scenario_text
from saasload.experiments.infer import Cost, Target

TARGET = Target(
    costs={"batch": Cost(0.25, 0.13, 400, split=True), "insert": Cost(0.276, 0.0, 1000, split=False)},
    slots=8,
    saturated=True,
    busy_coef=0.0,
    wait_coef=0.01051234,
    error=0.05,
    slower={"1003": 2.5},
    calls_per_minute=60,
)
COMPANIES = ("1001", "1002", "1003")


def _run(folder: Path, *, calls: int = 40, target: str = "embedded", mode: str = "batch", status: int = 200) -> Path:
    folder.mkdir()
    begin = [number * 1000 for number in range(calls)]
    table = pa.table(
        {
            "time": pa.array(begin, pa.timestamp("ms", tz="UTC")),
            "company": [str(1001 + number % 4) for number in range(calls)],
            "mode": [mode] * calls,
            "rows": [10 + 10 * (number % 2) for number in range(calls)],
            "status": [status] * calls,
            "ms": [600.0 + 200.0 * (number % 2) for number in range(calls)],
        }
    )
    pq.write_table(table, folder / "calls.parquet")
    (folder / "report.json").write_bytes(orjson.dumps({"target": target}))
    return folder


def test_the_mock_takes_what_is_written() -> None:
    """Every figure arrives under the key the mock has for it."""
    text = scenario_text(TARGET, runs=["a"], companies=COMPANIES, calls=1400)

    scenario = parse_scenario(text, source="here", name="here")
    assert (scenario.companies, scenario.first_company) == (3, 1001)
    assert (scenario.latency.slots, scenario.latency.wait_coef) == (8, 0.01051)
    assert (scenario.latency.batch.call_s, scenario.latency.batch.row_s) == (0.25, 0.13)
    assert scenario.company[1003].slower == 2.5
    assert scenario.limits is not None
    assert scenario.limits.calls_per_minute == 60


def test_what_is_not_known_is_said_in_the_file() -> None:
    """Comments tell a reader what the run could not show."""
    unsure = Target(TARGET.costs, 8, False, 0.0, 0.0, 0.05, {}, None)
    text = scenario_text(unsure, runs=["a"], companies=COMPANIES, calls=1400)

    assert "# No call ever waited: there are 8 slots at least." in text
    assert "# All insert calls were of one size" in text
    assert "[limits]" not in text


def test_companies_without_numbers_are_numbered_anew() -> None:
    """Names are kept as comments."""
    named = Target(TARGET.costs, 8, True, 0.0, 0.0, 0.05, {"north": 2.0}, None)
    text = scenario_text(named, runs=["a"], companies=("east", "north"), calls=1)

    assert "[company.1002]  # north" in text
    assert tomllib.loads(text)["company"] == {"1002": {"slower": 2.0}}


def test_runs_become_a_file(tmp_path: Path) -> None:
    """Costs of 0.4 s a call and 0.02 s a row come back, and the words say so."""
    found = calibrate([_run(tmp_path / "one"), _run(tmp_path / "two")], tmp_path / "mine.toml")

    assert found.path.read_text(encoding="utf-8") == found.text
    cost = found.target.costs["batch"]
    assert (cost.call_s, cost.row_s) == pytest.approx((0.4, 0.02), rel=0.01)
    assert "batch: 0.4 s a call and 0.02 s a row" in lines(found)
    assert "slots: at least 1" in lines(found)[1]


def test_runs_of_two_targets_do_not_mix(tmp_path: Path) -> None:
    """One scenario is one target."""
    one, two = _run(tmp_path / "one"), _run(tmp_path / "two", target="https://there")

    with pytest.raises(UsageError, match="one went to embedded and two to https://there"):
        calibrate([one, two], tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"calls": 3}, "3 calls were accepted there"), ({"status": 429}, "0 calls"), ({"mode": "array"}, "does not play")],
)
def test_a_run_that_cannot_tell_is_refused(arguments: dict[str, int], words: str, tmp_path: Path) -> None:
    """Too few accepted calls, or a mode the mock has not."""
    with pytest.raises(UsageError, match=words):
        calibrate([_run(tmp_path / "one", **arguments)], tmp_path / "mine.toml")


def test_a_run_is_found_by_name_or_folder(tmp_path: Path) -> None:
    """And a wrong name is answered with the newest there is."""
    _run(tmp_path / "20260101")

    assert find_run(tmp_path, "20260101") == find_run(Path("nowhere"), str(tmp_path / "20260101"))
    with pytest.raises(UsageError, match=r"no such run in .*; the newest is 20260101"):
        find_run(tmp_path, "2025")
    with pytest.raises(UsageError, match="there are none yet"):
        find_run(tmp_path / "empty", "2025")


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """With its name and the reason."""
    with pytest.raises(RunFolderError, match="cannot be written: no such file or directory"):
        calibrate([_run(tmp_path / "one")], tmp_path / "none" / "mine.toml")
