"""What a plan says beforehand is what the load then takes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mock_server.app import create_app
from mock_server.scenario import load_scenario
from saasload import testing
from saasload.clock import Clock
from saasload.contact import Surroundings
from saasload.engine import plan
from saasload.job import make_job
from saasload.plan import Plan


def _plan(source: Path, scenario: str, **arguments: object) -> Plan:
    app = create_app(load_scenario(scenario), epoch0_s=testing.EPOCH_S)
    around = Surroundings(app=app, clock=Clock.virtual(epoch_s=testing.EPOCH_S))
    job = make_job(source=source, **arguments)
    return testing.run_virtual(partial(plan, job, around), seed=1)


@pytest.mark.parametrize("mode", ["insert", "batch", "xml"])
@pytest.mark.parametrize(("scenario", "profile"), [("seeds", "mock-unlimited"), ("default", "mock")])
@pytest.mark.parametrize("parallel", [4, 10])
def test_the_forecast_is_within_a_tenth_of_the_load(
    mode: str,
    scenario: str,
    profile: str,
    parallel: int,
    simulate: Callable[..., testing.Simulation],
    samples: Callable[..., Path],
) -> None:
    """For each mode, with limits and without, below and above the platform's places."""
    # by insert 80 calls a company, for its limit is 60 a minute
    source = samples(rows=2400, companies=30) if mode == "insert" else samples(rows=6000, companies=50)
    given = {"mode": mode, "profile": profile, "parallel": parallel}

    (forecast,) = _plan(source, scenario, **given).forecasts
    report = simulate(source, scenario, **given).report

    assert forecast.calls == report.calls
    assert forecast.duration_s == pytest.approx(report.duration_s, rel=0.1)


def test_the_plan_recommends_the_mode_and_the_parallelism_of_the_published_tests(
    samples: Callable[..., Path],
) -> None:
    """XML first, single POSTs last, and about as many calls as the platform has places."""
    found = _plan(samples(rows=10000, companies=100), "default", profile="mock")

    by_mode = {forecast.mode: forecast for forecast in found.forecasts}
    assert found.recommended_mode == "xml"
    assert by_mode["xml"].duration_s < by_mode["batch"].duration_s < by_mode["insert"].duration_s
    assert 8 <= by_mode["batch"].parallel <= 12
    assert by_mode["insert"].binding == {"60 calls a minute by company": 100}


def test_a_day_limit_names_the_companies_that_are_late(samples: Callable[..., Path]) -> None:
    """6,000 single POSTs into one company are more than its 5,000 a day: the plan says who ends when."""
    found = _plan(samples(rows=6000, companies=1), "default", profile="mock", mode="insert")

    (forecast,) = found.forecasts
    assert list(forecast.late) == ["1001"]
    assert "5,000 calls a day by company" in forecast.binding
    assert forecast.fixed_by in {"", "1001"}


def test_a_plan_leaves_nothing_behind(samples: Callable[..., Path], tmp_path: Path) -> None:
    """No run folder, no row sent."""
    _plan(samples(rows=100, companies=5), "fast", profile="mock", runs=tmp_path / "runs")

    assert not (tmp_path / "runs").exists()
