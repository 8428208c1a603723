"""The adaptive limit, the order of companies and the fall-back to another mode, in virtual time."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mock_server.scenario import parse_scenario
from saasload.testing import Simulation

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
