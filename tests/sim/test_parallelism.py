"""The adaptive limit, the order of companies and the fall-back to another mode, in virtual time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from mock_server.app import create_app
from mock_server.scenario import load_scenario, parse_scenario
from saasload import testing
from saasload.job import make_job
from saasload.run.report import Report
from saasload.testing import EPOCH_S, Simulation

UNLIMITED = {"profile": "mock-unlimited"}
BEST = {"seeds": 8, "knee-4": 4, "knee-24": 24, "slows-down": 8, "one-slow-company": 8}
"""The best fixed number by scenario: `python -m bench.concurrency` tries twelve."""


@pytest.mark.parametrize("scenario", BEST)
def test_auto_ends_close_to_the_best_fixed_number(
    scenario: str, simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """Without being told, within 5 % of the best fixed number; and it ends near the knee."""
    source = samples(rows=5000, companies=100)
    given = {"mode": "xml", "rows_per_call": 5, **UNLIMITED}

    best = simulate(source, scenario, parallel=BEST[scenario], **given).report
    found = simulate(source, scenario, parallel="auto", **given).report

    assert found.accepted == 5000
    assert found.duration_s <= best.duration_s * 1.05
    assert found.parallel <= 2 * BEST[scenario]
    assert all(change.reason for change in found.limit_changes)


def test_auto_is_said_and_its_changes_are_in_the_report(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """The report tells what the limit came to, and each change with its time and reason."""
    report = simulate(samples(rows=5000, companies=100), "knee-4", mode="batch", rows_per_call=25, **UNLIMITED).report

    assert report.parallel_found
    assert report.limit_changes
    assert all(
        first.at <= second.at for first, second in zip(report.limit_changes, report.limit_changes[1:], strict=False)
    )


def test_a_skewed_load_ends_near_its_lower_bound(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """Zipf 1.2 over 100 companies: within 5 % of what the largest company, or all places at work, take."""
    source = samples(rows=4000, companies=100, skew=1.2)

    report = simulate(source, "shared-slots", mode="insert", **UNLIMITED).report

    rows = pc.value_counts(pq.read_table(source).column("company")).field("counts").to_pylist()
    assert report.duration_s <= max(*rows, sum(rows) / 8) * 0.0105 * 1.05


@pytest.mark.parametrize("order", ["fifo", "fair"])
def test_other_orders_load_everything_too(
    order: str, simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """In turn, or one company after another."""
    report = simulate(samples(rows=1000, companies=10, skew=1.0), "shared-slots", order=order, **UNLIMITED).report

    assert (report.accepted, report.exit_code) == (1000, 0)


def test_a_target_without_batch_gets_single_posts(
    simulate: Callable[..., Simulation], samples: Callable[..., Path], tmp_path: Path
) -> None:
    """Without --mode the next mode takes over, says so, and no row that was stored is sent again."""
    profile = tmp_path / "batch-first.toml"
    profile.write_text(
        'extends = "mock-unlimited"\nname = "batch-first"\n[entities.Account]\nmodes = ["batch", "insert"]\n'
    )
    source = samples(rows=500, companies=5)

    fell_back = simulate(source, "no-batch", profile=str(profile)).report
    insisted = simulate(source, "no-batch", profile=str(profile), mode="batch").report

    assert (fell_back.mode, fell_back.accepted, fell_back.exit_code) == ("insert", 500, 0)
    assert (insisted.accepted, insisted.unsent, insisted.exit_code) == (0, 500, 3)
    assert "use another --mode" in insisted.stopped


def test_a_company_that_asks_for_a_wait_gets_none_before_it_is_over(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """2 % of 429 with Retry-After: no call leaves for that company in the wait, others go on, no row is lost."""
    faults = '[[faults]]\nkind = "status"\nstatus = 429\nretry_after_s = 1\nevery = 50\n'
    latency = "[latency]\nslots = 8\ninsert = { call_s = 0.1 }\n"
    scenario = parse_scenario(latency + faults, source="waits", name="waits")
    quiet = parse_scenario(latency, source="quiet", name="quiet")
    source = samples(rows=3000, companies=100)

    undisturbed = simulate(source, quiet, mode="insert", parallel=10, **UNLIMITED)
    load = simulate(source, scenario, mode="insert", parallel=10, **UNLIMITED)

    calls = pq.read_table(load.folder / "calls.parquet").to_pylist()
    assert load.report.accepted == 3000
    assert load.report.refused > 50
    for refused in (call for call in calls if call["status"] == 429):
        until = refused["time"].timestamp() + refused["ms"] / 1000.0 + 1.0
        early = [
            call
            for call in calls
            if call["company"] == refused["company"]
            and refused["time"] < call["time"]
            and call["time"].timestamp() < until - 0.01
        ]
        assert not early
    assert load.report.duration_s <= undisturbed.report.duration_s * 1.1


class Stating:
    """A mock that states, in a header of every reply, how many calls it takes at once."""

    def __init__(self, scenario: str, stated: str) -> None:
        """Wrap the mock of a scenario."""
        self._app = create_app(load_scenario(scenario), epoch0_s=EPOCH_S)
        self._stated = stated.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer as the mock does, with one header more."""

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-places", self._stated)]}
            await send(message)

        await self._app(scope, receive, sending)


def _hinted(source: Path, folder: Path, *, stated: str = "", **arguments: Any) -> Report:
    profile = folder / "hinted.toml"
    profile.write_text('extends = "mock-unlimited"\nname = "hinted"\nparallel_hint = 7\nparallel_header = "X-Places"\n')
    job = make_job(
        source=source, runs=folder / "runs", seed=1, mode="insert",
        to="http://127.0.0.1", token=SecretStr("mock-token"),
        profile=str(profile), **arguments,
    )  # fmt: skip
    return testing.simulate(job, Stating("knee-4", stated)).report


def test_an_adaptive_load_starts_at_the_best_hint(samples: Callable[..., Path], tmp_path: Path) -> None:
    """The number that the target states, else what the last load into it found, else the profile's."""
    source = samples(rows=600, companies=40)

    by_profile = _hinted(source, tmp_path, run="1")
    by_last_run = _hinted(source, tmp_path, run="2")
    by_target = _hinted(source, tmp_path, run="3", stated="17")
    nonsense = _hinted(source, tmp_path, run="4", stated="-3")

    assert by_profile.limit_changes[0].before == 7
    assert by_last_run.limit_changes[0].before == by_profile.parallel != 7
    assert by_target.limit_changes[0].before == 17
    assert nonsense.limit_changes[0].before == by_target.parallel


def test_a_fixed_or_a_short_load_is_no_hint(samples: Callable[..., Path], tmp_path: Path) -> None:
    """Only what an adaptive load had the time to find is worth starting from."""
    _hinted(samples(rows=600, companies=40), tmp_path, run="1", parallel=3)
    _hinted(samples(rows=10, companies=10), tmp_path, run="2")

    after = _hinted(samples(rows=600, companies=40), tmp_path, run="3")

    assert after.limit_changes[0].before == 7


def test_a_target_that_dies_leaves_what_was_found_in_the_report(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """The limit is cut while everything fails; the report still says how many calls the target was found to take."""
    latency = "[latency]\nslots = 8\ninsert = { call_s = 0.1 }\n"
    dies = latency + '[[faults]]\nkind = "status"\nstatus = 504\nat_s = 8.0\nfor_s = 9e6\n'
    scenario = parse_scenario(dies, source="dies", name="dies")

    report = simulate(samples(rows=1000, companies=100), scenario, mode="insert", **UNLIMITED).report

    assert report.exit_code != 0
    assert report.limit_changes[-1].after < report.parallel
    assert report.parallel >= 6
