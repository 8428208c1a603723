"""Metrics are read from the load's own counts, and two systems are told the same."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from saasload.load import Observer
from saasload.telemetry.instruments import observe
from saasload.telemetry.prometheus import registry_of
from saasload.telemetry.sight import METRICS, Sight

from .conftest import StillDriver, prepared, still_load

PAGE = Path(__file__).parents[3] / "docs" / "telemetry.md"
Found = dict[tuple[str, tuple[tuple[str, str], ...]], float]

EXPECTED: Found = {
    ("saasload_rows_settled_total", (("outcome", "created"),)): 50,
    ("saasload_rows_settled_total", (("outcome", "updated"),)): 0,
    ("saasload_rows_settled_total", (("outcome", "unchanged"),)): 0,
    ("saasload_rows_settled_total", (("outcome", "rejected"),)): 7,
    ("saasload_rows", ()): 100,
    ("saasload_rows_in_doubt", ()): 3,
    ("saasload_rows_unsent", ()): 40,
    ("saasload_calls_total", ()): 9,
    ("saasload_retries_total", ()): 4,
    ("saasload_calls_refused_total", ()): 2,
    ("saasload_calls_in_flight", ()): 3,
    ("saasload_parallel_limit", ()): 8,
    ("saasload_companies", ()): 4,
    ("saasload_companies_done", ()): 1,
    ("saasload_companies_waiting", (("limit", "minute"),)): 2,
    ("saasload_companies_waiting", (("limit", "back-off"),)): 1,
    ("saasload_longest_wait_seconds", (("limit", "minute"),)): 2.0,
    ("saasload_longest_wait_seconds", (("limit", "back-off"),)): 0.0,
    ("saasload_run_info", (("entity", "Account"), ("mode", "insert"))): 1,
}


def fetched(sight: Sight) -> Found:
    """Fetch all metrics as Prometheus reads them."""
    text = generate_latest(registry_of(sight)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exported(sight: Sight) -> Found:
    """Collect all metrics as OpenTelemetry exports them."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    observe(provider.get_meter("test"), sight)
    data = reader.get_metrics_data()
    found = {
        (metric.name, tuple(sorted((name, str(value)) for name, value in (point.attributes or {}).items()))): point
        for resource in (data.resource_metrics if data is not None else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    provider.shutdown()
    return {key: getattr(point, "value") for key, point in found.items()}  # noqa: B009 not all kinds of points have one


def test_prometheus_reads_what_the_load_has_counted(looking: Callable[..., Any]) -> None:
    """Each number, by the names and units Prometheus asks for; waits are in our seconds."""
    assert looking(fetched) == EXPECTED


def test_opentelemetry_is_told_the_same(looking: Callable[..., Any]) -> None:
    """By the same names without suffixes."""
    found = looking(exported)

    assert sorted(found.values()) == sorted(EXPECTED.values())
    assert {name for name, _ in found} == {f"saasload.{metric.name}" for metric in METRICS}
    assert found["saasload.rows_settled", (("outcome", "rejected"),)] == 7


def test_the_page_lists_every_metric() -> None:
    """With its type and its labels."""
    rows = [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `saasload_")
    ]
    kinds = {"info": "gauge"}

    assert [row[0] for row in rows] == list(dict.fromkeys(name for name, _ in EXPECTED))
    assert [row[1] for row in rows] == [kinds.get(metric.kind, metric.kind) for metric in METRICS]
    assert [row[2] for row in rows] == [", ".join(metric.labels) for metric in METRICS]


def test_before_a_load_begins_there_is_nothing() -> None:
    """No zeros that mean nothing."""
    assert fetched(Sight()) == exported(Sight()) == {}


def test_after_its_end_nothing_waits_and_the_counts_stay() -> None:
    """A fetch between the end of the run and that of the process gives the final numbers."""

    async def main() -> Sight:
        sight = Sight()
        sight.begun(still_load(), prepared())
        sight.ended(SimpleNamespace())  # type: ignore[arg-type]
        return sight

    found = fetched(anyio.run(main))

    assert found["saasload_calls_total", ()] == 9
    assert not [name for name, _ in found if name in {"saasload_companies_waiting", "saasload_longest_wait_seconds"}]


def test_counters_do_not_go_back_when_a_run_falls_back_to_another_mode(looking: Callable[..., Any]) -> None:
    """The driver of the second mode begins to count anew; the metric does not."""
    second = StillDriver(exchange=SimpleNamespace(retries=1, refused=0))

    found = looking(fetched, still_load(), still_load(driver=second))

    assert (found["saasload_retries_total", ()], found["saasload_calls_refused_total", ()]) == (5, 2)


def test_what_changed_under_the_look_is_looked_at_again(looking: Callable[..., Any]) -> None:
    """And where it never stands still, the metric is left out, not the answer."""
    calm, restless = still_load(), still_load(driver=StillDriver(failures=1000))
    calm.driver.failures = 2

    assert looking(fetched, calm) == EXPECTED
    names = {name for name, _ in looking(fetched, restless)}
    assert names == {name for name, _ in EXPECTED} - {"saasload_companies_waiting", "saasload_longest_wait_seconds"}


def test_a_look_from_the_loops_own_thread_does_not_lock_up() -> None:
    """Whoever flushes from there would otherwise wait for himself."""

    async def main() -> Found:
        sight = Sight()
        sight.begun(still_load(), prepared())
        assert threading.current_thread() is threading.main_thread()
        return fetched(sight)

    assert anyio.run(main) == EXPECTED


def test_metrics_leave_the_recorder_as_it_is() -> None:
    """So the driver's way is the same with and without them."""
    recorder, anything = object(), SimpleNamespace()

    for observer in (Observer(), Sight()):
        assert observer.recording(recorder, anything, anything) is recorder  # type: ignore[arg-type]
