"""What other programs are told while a load runs is what its report says at the end."""

import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from saasload.engine import Surroundings, push_sync
from saasload.job import make_job
from saasload.telemetry.prometheus import serve_metrics
from saasload.telemetry.sight import METRICS, Sight

Found = dict[tuple[str, str], float]
Start = Callable[..., Any]

PRIVATE = "Geheim"
TOKEN = "mock-token"  # noqa: S105 the mock's own, which opens nothing else
OUTCOMES = ("created", "updated", "unchanged", "rejected")
SLOW = """
extends = "mock"
name = "slow"
title = "ten calls of a company at once, and fifteen in all"
limit_headers = []

[[limits]]
name = "short"
scope = "company"
kind = "sliding"
calls = 10
period_s = 0.5

[[limits]]
name = "long"
scope = "company"
kind = "sliding"
calls = 15
period_s = 3000.0
"""


def customers(folder: Path) -> str:
    """Write 120 customers of three companies; one comes twice."""
    rows = [f"{1001 + row % 3},{row // 3:03},{PRIVATE}{row}" for row in range(120)]
    (folder / "rows.csv").write_text("\n".join(["company,Code,Name", *rows, rows[0]]) + "\n")
    return "rows.csv"


def fetch(url: str) -> Found:
    """Fetch metrics, by name and the value of their label."""
    text = httpx.get(url, trust_env=False).raise_for_status().text
    return {
        (sample.name, sample.labels.get("outcome") or sample.labels.get("limit") or ""): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def reported(report: dict[str, Any]) -> Found:
    """Put a report's numbers under the metrics' names."""
    settled = {("saasload_rows_settled_total", name): report[name] for name in OUTCOMES}
    plain = {
        "saasload_rows": "read",
        "saasload_rows_in_doubt": "in_doubt",
        "saasload_rows_unsent": "unsent",
        "saasload_calls_total": "calls",
        "saasload_retries_total": "retries",
        "saasload_calls_refused_total": "refused",
        "saasload_parallel_limit": "parallel",
        "saasload_companies": "companies",
    }
    return {**settled, **{(metric, ""): report[name] for metric, name in plain.items()}}


def test_numbers_move_while_it_runs_and_are_the_reports_at_the_end(tmp_path: Path, server: str, start: Start) -> None:
    """Three companies wait for a short limit, then for a long one; there nothing moves, and the load is stopped."""
    source = customers(tmp_path)
    (tmp_path / "slow.toml").write_text(SLOW)
    pushed = start(
        "push", source, "--to", server, "--profile", "slow.toml", "--mode", "insert", "--partition-by", "company",
        "--metrics-port", "0", "--json",
    )  # fmt: skip
    url = pushed.metrics_url()
    calls: list[float] = []
    while (found := fetch(url)).get(("saasload_companies_waiting", "long")) != 3:
        calls.append(found.get(("saasload_calls_total", ""), 0.0))
    wait_s, found = found["saasload_longest_wait_seconds", "long"], fetch(url)
    pushed.process.send_signal(signal.SIGINT)
    code, report, _ = pushed.end()

    assert code == 130
    assert report["accepted"] == 45
    assert {key: found[key] for key in reported(report)} == reported(report)
    assert calls == sorted(calls)
    assert 30.0 in calls
    assert 0.0 < wait_s <= 3000.0


def test_between_the_runs_end_and_the_processs_they_are_final(tmp_path: Path, server: str) -> None:
    """Rejected rows and done companies included."""
    job = make_job(
        to=server, source=tmp_path / customers(tmp_path), profile="mock-unlimited", mode="batch", runs=tmp_path / "runs"
    )
    sight = Sight()
    lines: list[str] = []
    with serve_metrics(0, sight, lines.append) as url:
        assert fetch(url) == {}
        report = push_sync(job, Surroundings(observer=sight))
        found = fetch(url)

    assert lines == [f"metrics at {url}"]
    assert (report.accepted, report.rejected) == (120, 1)
    numbers = {name: getattr(report, name) for name in report.__slots__}
    assert {key: found[key] for key in reported(numbers)} == reported(numbers)
    assert (found["saasload_companies_done", ""], found["saasload_calls_in_flight", ""]) == (3.0, 0.0)
    with pytest.raises(httpx.ConnectError):
        fetch(url)


def test_a_port_in_use_ends_it_before_anything_is_sent(tmp_path: Path, server: str, start: Start) -> None:
    """With a line that names the option."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = start("push", customers(tmp_path), "--to", server, "--metrics-port", port).end()

    assert (code, err) == (2, f"saasload: --metrics-port {port}: address already in use\n")
    companies = httpx.get(f"{server}/_mock/audit", params={"key": "Code"}).json()["companies"].values()
    assert sum(company["rows"] for company in companies) == 0
    assert not (tmp_path / ".saasload").exists()


def test_a_collector_gets_spans_and_metrics_and_no_secrets(
    tmp_path: Path, server: str, start: Start, collector: Any
) -> None:
    """Nor does whoever fetches metrics: no token, no row, no key of one, no words of the target about it."""
    pushed = start(
        "push", customers(tmp_path), "--to", server, "--profile", "mock-unlimited", "--mode", "insert",
        "--metrics-port", "0", "--json",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, SAASLOAD_TOKEN=TOKEN,
    )  # fmt: skip
    text = httpx.get(pushed.metrics_url()).text
    code, report, _ = pushed.end()
    traces = [body for path, body in collector.taken if path == "/v1/traces"]
    metrics = [body for path, body in collector.taken if path == "/v1/metrics"]
    spans = [
        span
        for body in traces
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    last = ExportMetricsServiceRequest.FromString(metrics[-1]).resource_metrics[0].scope_metrics[0].metrics
    told = {metric.name: metric for metric in last}

    assert code == 1
    assert sorted({span.name for span in spans}) == ["saasload call", "saasload run"]
    assert len(spans) == report["calls"] + 1
    assert len({span.trace_id for span in spans}) == 1
    assert set(told) == {f"saasload.{metric.name}" for metric in METRICS} - {
        "saasload.companies_waiting", "saasload.longest_wait",
    }  # fmt: skip
    assert told["saasload.calls"].sum.data_points[0].as_int == report["calls"]
    everything = b"".join([text.encode(), *traces, *metrics])
    assert [word for word in (TOKEN, PRIVATE, "exists", "bestaat", "/api/", "?$") if word.encode() in everything] == []


def test_a_collector_that_refuses_costs_a_line_and_no_row(
    tmp_path: Path, server: str, start: Start, collector: Any
) -> None:
    """The load ends as it would have."""
    collector.status = 400
    code, report, err = start(
        "push", customers(tmp_path), "--to", server, "--profile", "mock-unlimited", "--json",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
    ).end()  # fmt: skip

    assert (code, report["accepted"]) == (0, 121)
    assert err.count("OpenTelemetry: not all of it reaches the collector; the load goes on\n") == 1
    assert "Traceback" not in err
    assert collector.url not in err
