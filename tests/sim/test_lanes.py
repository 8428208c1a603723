"""How companies share the wire, in virtual time."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mock_server.scenario import parse_scenario
from saasload.testing import Simulation

UNLIMITED = {"profile": "mock-unlimited"}


def _ends_s(folder: Path) -> dict[str, float]:
    """Say when each company's last answer was in, in seconds of its load."""
    calls = pq.read_table(folder / "calls.parquet")
    begins = [moment.timestamp() for moment in calls.column("time").to_pylist()]
    first, ends = min(begins), {}
    for begin, ms, company in zip(
        begins, calls.column("ms").to_pylist(), calls.column("company").to_pylist(), strict=True
    ):
        ends[company] = max(ends.get(company, 0.0), begin - first + ms / 1000.0)
    return ends


def test_one_slow_company_of_ten_delays_no_other(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """Nine companies end when they would without the slow one, within 2 %."""
    source = samples(rows=1000, companies=10)
    fast = "slots = 20\ninsert = { call_s = 0.1 }\n"
    alike = parse_scenario(f"companies = 10\n[latency]\n{fast}", source="alike", name="alike")
    slow = parse_scenario(
        f"companies = 10\n[company.1001]\nslower = 10.0\n[latency]\n{fast}", source="slow", name="slow"
    )

    without = _ends_s(simulate(source, alike, mode="insert", parallel=10, **UNLIMITED).folder)
    with_it = _ends_s(simulate(source, slow, mode="insert", parallel=10, **UNLIMITED).folder)

    assert with_it["1001"] > 5 * without["1001"]
    assert all(with_it[company] <= without[company] * 1.02 for company in without if company != "1001")


def test_a_company_has_one_call_on_the_wire_at_a_time(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """With far more places than companies, each company's calls still follow each other."""
    load = simulate(samples(rows=200, companies=4), "seeds", mode="insert", parallel=100, **UNLIMITED)

    calls = pq.read_table(load.folder / "calls.parquet")
    for company in pc.unique(calls.column("company").combine_chunks().dictionary_decode()).to_pylist():
        own = calls.filter(pc.equal(calls.column("company"), company)).sort_by("time").to_pylist()
        for before, after in pairwise(own):
            assert after["time"].timestamp() >= before["time"].timestamp() + before["ms"] / 1000.0 - 0.002


@pytest.mark.parametrize("order", ["sorted", "shuffled", "dealt"])
def test_the_order_of_the_file_does_not_matter(
    order: str, simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """A file sorted by company takes as long as a dealt one: the spool serves companies, not the file."""
    source = samples(rows=2000, companies=20, order=order)
    load = simulate(source, "shared-slots", mode="insert", parallel=10, **UNLIMITED)

    assert load.report.accepted == 2000
    assert load.report.duration_s == pytest.approx(2000 * 0.0105 / 8, rel=0.05)


def test_the_same_load_gives_the_same_figures_again(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """Virtual time has no noise: two runs of one seed agree to the millisecond, call by call."""
    source = samples(rows=2000, companies=20)

    first = simulate(source, "default", mode="batch", run="first")
    second = simulate(source, "default", mode="batch", run="second")

    assert first.report.duration_s == second.report.duration_s
    assert pq.read_table(first.folder / "calls.parquet") == pq.read_table(second.folder / "calls.parquet")


def test_the_longest_company_starts_first(simulate: Callable[..., Simulation], samples: Callable[..., Path]) -> None:
    """With skewed companies the load ends within 5 % of what the largest company or the slots make it."""
    source = samples(rows=5000, companies=50, skew=1.2)
    load = simulate(source, "shared-slots", mode="insert", parallel=8, **UNLIMITED)

    rows = pc.value_counts(pq.read_table(source).column("company")).field("counts").to_pylist()
    bound_s = max(*rows, sum(rows) / 8) * 0.0105
    assert load.report.duration_s <= bound_s * 1.05


def test_the_default_limits_are_never_broken(simulate: Callable[..., Simulation], samples: Callable[..., Path]) -> None:
    """A minute limit of 60 delays 150 single POSTs a company, and the target refuses none."""
    load = simulate(samples(rows=1500, companies=10), "default", mode="insert")

    assert (load.report.refused, load.report.accepted, load.report.exit_code) == (0, 1500, 0)
    assert load.report.duration_s > 60


def test_a_day_limit_ends_the_run_and_the_rest_is_unsent(
    simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """What a day limit leaves is unsent, not lost: exit code 3, one sentence, and a file with the rows."""
    profile = Path(__file__).parent / "profiles" / "day-of-20.toml"
    scenario = parse_scenario("companies = 2\n[limits]\ncalls_per_day = 20\n", source="day", name="day")

    load = simulate(samples(rows=100, companies=2), scenario, mode="insert", profile=str(profile), wait_for_day="no")

    assert (load.report.accepted, load.report.unsent, load.report.refused, load.report.exit_code) == (40, 60, 0, 3)
    assert "may send again in" in load.report.stopped
    assert pq.read_metadata(load.folder / "unsent.parquet").num_rows == 60


@pytest.mark.parametrize("mode", ["insert", "batch", "xml"])
def test_a_company_with_more_places_than_calls_left_ends(
    mode: str, simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """Five calls at once in a company: while the last ones are on the wire, its lane has nothing to send."""
    alike = parse_scenario(
        "companies = 2\n[latency]\nper_company = 5\ninsert = { call_s = 0.1 }\n", source="a", name="a"
    )
    rows = {} if mode == "insert" else {"rows_per_call": 4}

    done = simulate(
        samples(rows=40, companies=2), alike, mode=mode, parallel=10, per_company=5, **rows, **UNLIMITED
    )  # fmt: skip

    assert (done.report.exit_code, done.report.accepted) == (0, 40)
