"""Limits over hours and days, in virtual time: what waits, for how long, and that nothing is refused."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mock_server.app import create_app
from mock_server.scenario import parse_scenario
from saasload.clock import Clock
from saasload.contact import Surroundings
from saasload.engine import Resume, push, resume
from saasload.job import make_job
from saasload.run.report import Report
from saasload.testing import EPOCH_S, Simulation, run_virtual

PROFILES = Path(__file__).parent / "profiles"
DAY_S = 86_400.0
DAY = "companies = 2\n[limits]\ncalls_per_day = 20\n[latency]\ninsert = { call_s = 0.1 }\n"
Simulate = Callable[..., Simulation]


def _calls(load: Simulation) -> list[dict[str, Any]]:
    """List a load's calls, with `begin` and `end` in epoch seconds."""
    calls = pq.read_table(load.folder / "calls.parquet").to_pylist()
    for call in calls:
        call["begin"] = call["time"].timestamp()
        call["end"] = call["begin"] + call["ms"] / 1000.0
    return sorted(calls, key=lambda call: call["begin"])


def test_a_load_waits_for_the_next_day_and_ends_without_a_refusal(
    simulate: Simulate, samples: Callable[..., Path]
) -> None:
    """50 rows a company at 20 a day: two midnights are waited for, and the third day is not used up."""
    scenario = parse_scenario(DAY, source="day", name="day")

    load = simulate(
        samples(rows=100, companies=2), scenario, mode="insert", profile=str(PROFILES / "day-of-20.toml"),
        wait_for_day="yes",
    )  # fmt: skip

    assert (load.report.accepted, load.report.refused, load.report.exit_code) == (100, 0, 0)
    days = [int(call["begin"] // DAY_S) for call in _calls(load)]
    assert [days.count(day) for day in sorted(set(days))] == [40, 40, 20]
    third_day_begins = (EPOCH_S // DAY_S + 2) * DAY_S
    assert load.report.duration_s == pytest.approx(third_day_begins - EPOCH_S, abs=60.0)


def test_a_load_that_does_not_wait_for_the_day_names_the_companies_and_goes_on_later(
    samples: Callable[..., Path], tmp_path: Path
) -> None:
    """Exit code 3, with until when each company waits; a resume on the next day, and on the one after, ends it."""
    job = make_job(
        source=samples(rows=100, companies=2), runs=tmp_path / "runs", seed=1, mode="insert",
        profile=str(PROFILES / "day-of-20.toml"), wait_for_day="no",
    )  # fmt: skip
    reports: list[Report] = []

    for day in range(3):
        # The mock's time starts anew with each loop, so its app does, and nothing of the day before is held there.
        epoch_s = EPOCH_S + day * DAY_S
        app = create_app(parse_scenario(DAY, source="day", name="day"), epoch0_s=epoch_s)
        around = Surroundings(app=app, clock=Clock.virtual(epoch_s=epoch_s))
        main = partial(resume, job.runs, None, Resume(), around) if day else partial(push, job, around)
        reports.append(run_virtual(main, seed=1))

    assert [report.exit_code for report in reports] == [3, 3, 0]
    assert [report.accepted for report in reports] == [40, 80, 100]
    assert sum(report.refused for report in reports) == 0
    assert list(reports[0].waiting) == ["1001", "1002"]
    assert reports[0].waiting["1001"] == "2026-09-22 00:00 UTC (day limit)"
    assert "longer than the 3,600 s this run waits" in reports[0].stopped
    assert not reports[2].waiting


def test_a_company_at_its_day_limit_stops_no_other(simulate: Simulate, samples: Callable[..., Path]) -> None:
    """One company may do 20 a day, the other as many as it likes: that one is done before the first midnight."""
    own = "companies = 2\n[limits]\ncalls_per_day = 1000\n[company.1001]\ncalls_per_day = 20\n"
    scenario = parse_scenario(own, source="own", name="own")

    load = simulate(samples(rows=100, companies=2), scenario, mode="insert", profile="mock", wait_for_day="no")

    assert (load.report.accepted, load.report.unsent, load.report.exit_code) == (70, 30, 3)
    assert list(load.report.waiting) == ["1001"]
    # What a company's own limit is, only its replies tell; these do.
    assert load.report.refused == 0


def test_an_error_budget_trips_before_the_platform_blocks(simulate: Simulate, tmp_path: Path) -> None:
    """25 bad rows at 10 errors an hour: 9 an hour are sent, the good rows between them too, and no block is met."""
    source = tmp_path / "rows.parquet"
    postcodes = ["x" * 30 if number % 2 else "1234 AB" for number in range(50)]
    names = [f"Name {number}" for number in range(50)]
    columns = {"company": ["1001"] * 50, "Code": names, "Name": names, "Postcode": postcodes}
    pq.write_table(pa.table(columns), source)
    text = "companies = 1\n[limits]\nerrors_per_hour = 10\n[latency]\ninsert = { call_s = 0.1 }\n"

    blind_profile = tmp_path / "blind.toml"
    blind_profile.write_text('extends = "mock"\nname = "blind"\n[entities.Account.fields.Postcode]\nmax_length = 100\n')

    scenario = parse_scenario(text, source="errors", name="errors")
    guarding = str(PROFILES / "errors-of-10.toml")
    guarded = simulate(source, scenario, mode="insert", profile=guarding, run="guarded")
    blind = simulate(source, scenario, mode="insert", profile=str(blind_profile), run="blind")

    assert (guarded.report.accepted, guarded.report.rejected, guarded.report.refused) == (25, 25, 0)
    assert (guarded.report.unsent, guarded.report.exit_code) == (0, 1)
    errors = [call["end"] for call in _calls(guarded) if call["status"] >= 400]
    assert len(errors) == 25
    assert all(later - earlier > 3600.0 for earlier, later in zip(errors, errors[9:], strict=False))
    assert blind.report.refused > 0, "the scenario blocks whoever does not count errors"


def test_no_herd_at_a_reset(simulate: Simulate, samples: Callable[..., Path]) -> None:
    """20 companies that wait for one minute to begin come back spread over a second, and none too early."""
    text = "companies = 20\n[limits]\ncalls_per_minute = 5\n[latency]\nslots = 100\ninsert = { call_s = 0.1 }\n"
    scenario = parse_scenario(text, source="herd", name="herd")
    profile = PROFILES / "minute-of-5.toml"

    load = simulate(samples(rows=200, companies=20), scenario, mode="insert", parallel=100, profile=str(profile))

    assert (load.report.accepted, load.report.refused) == (200, 0)
    begins = [call["begin"] for call in _calls(load)]
    reset = (begins[0] // 60 + 1) * 60.0
    firsts = sorted(min(c["begin"] for c in _calls(load) if c["company"] == company and c["begin"] >= reset)
                    for company in {call["company"] for call in _calls(load)})  # fmt: skip
    assert len(firsts) == 20
    assert firsts[-1] - firsts[0] > 0.6
    assert max(sum(at <= other < at + 0.1 for other in firsts) for at in firsts) <= 8


@pytest.mark.parametrize(("ordering", "overlap"), [("strict", False), ("any", True)])
def test_strict_ordering_keeps_one_call_in_flight_whatever_is_asked_for(
    ordering: str, overlap: bool, simulate: Simulate, samples: Callable[..., Path], tmp_path: Path
) -> None:
    """With --per-company 5 a company's calls follow each other where the entity is strict, and overlap where not."""
    profile = tmp_path / "ordered.toml"
    profile.write_text(f'extends = "mock-unlimited"\nname = "ordered"\n[entities.Account]\nordering = "{ordering}"\n')
    text = "companies = 2\n[latency]\nslots = 20\nper_company = 10\ninsert = { call_s = 0.1 }\n"
    scenario = parse_scenario(text, source="ordered", name="ordered")

    load = simulate(
        samples(rows=40, companies=2), scenario, mode="insert", profile=str(profile), parallel=20, per_company=5
    )

    assert load.report.accepted == 40
    own = [call for call in _calls(load) if call["company"] == "1001"]
    assert any(later["begin"] < earlier["end"] - 0.002 for earlier, later in pairwise(own)) is overlap


JITTER = """
companies = 10
[limits]
calls_per_minute = 60
[latency]
slots = 100
per_company = 10
jitter_sigma = {sigma}
insert = {{ call_s = {call_s} }}
"""


@pytest.mark.parametrize(("call_s", "sigma"), [(0.1, 0.0), (0.5, 0.5), (1.5, 0.3)])
def test_a_stated_limit_is_used_up_and_never_broken(
    call_s: float, sigma: float, simulate: Simulate, samples: Callable[..., Path]
) -> None:
    """Four minutes of 60 calls a company, with replies after 0.1 to 2 s: none refused, within 3 % of the ceiling."""
    scenario = parse_scenario(JITTER.format(call_s=call_s, sigma=sigma), source="jitter", name="jitter")

    load = simulate(samples(rows=2400, companies=10), scenario, mode="insert", parallel=40, per_company=4)

    assert (load.report.refused, load.report.accepted) == (0, 2400)
    minutes = pc.value_counts(pa.array([int(call["begin"] // 60) for call in _calls(load)])).to_pylist()
    # The first minute begins with the load, and the last ends with it.
    whole = [counted["counts"] for counted in sorted(minutes, key=lambda one: int(one["values"]))][1:-1]
    assert sum(whole) >= 0.97 * 600 * len(whole)
    assert max(whole) <= 600
