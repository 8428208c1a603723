"""The environment turns OpenTelemetry on, and nothing it gets wrong ends a load."""

import logging
import os
import sys
import threading

import pytest

from saasload.errors import UsageError
from saasload.telemetry import environment, open_telemetry
from saasload.telemetry.environment import exporter_for, open_otel
from saasload.telemetry.sight import Sight

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "none"),
        (ENDPOINT, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:9"}, "none"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": " Console "}, "console"),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, "none"),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": ""}, "otlp"),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, "none"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, "none"),
    ],
)
def test_an_endpoint_or_an_exporter_turns_traces_on(environ: dict[str, str], expected: str) -> None:
    """As the specification of the variables says."""
    assert exporter_for("traces", environ, lambda _line: None) == expected


def test_an_exporter_we_do_not_have_is_said_once() -> None:
    """And its signal is off."""
    lines: list[str] = []

    assert exporter_for("metrics", {**ENDPOINT, "OTEL_METRICS_EXPORTER": "prometheus"}, lines.append) == "none"
    assert lines == [
        "OTEL_METRICS_EXPORTER: no such exporter here, so no metrics are sent; use otlp, console or none",
    ]


def test_without_the_extra_there_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the load goes on."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    lines: list[str] = []

    with open_otel(ENDPOINT, Sight(), lines.append) as observers:
        assert observers == []
    assert lines == ["the environment asks for OpenTelemetry, which is not installed; pip install 'saasload[otel]'"]


def test_a_variable_that_cannot_be_is_a_line_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a key that was put into the wrong one."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "mock-token")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "mock-token")
    lines: list[str] = []

    with open_otel({"OTEL_TRACES_EXPORTER": "otlp"}, Sight(), lines.append):
        pass
    assert len(lines) == 1
    assert "mock-token" not in lines[0]


def test_what_exporters_log_becomes_one_line() -> None:
    """They repeat themselves, and name addresses."""
    lines: list[str] = []
    logger = logging.getLogger("opentelemetry.exporter.test")

    with open_otel({"OTEL_TRACES_EXPORTER": "console"}, Sight(), lines.append):
        logger.warning("Failed to export to %s", "http://user:mock-token@collector")
        logger.error("Failed again")
    assert lines == ["OpenTelemetry: not all of it reaches the collector; the load goes on"]
    assert logging.getLogger("opentelemetry").handlers == []


def test_a_collector_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load is over; its report must not wait."""
    monkeypatch.setattr(environment, "CLOSE_S", 0.01)
    release, left = threading.Event(), []

    def close() -> None:
        release.wait(30)
        left.append(True)

    with environment._closing() as closing:
        closing += [close, close]
    assert left == []
    release.set()


def test_off_means_that_nothing_is_imported_or_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a port and without variables there is no server, no exporter, and the recorder is the book."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for module in ("prometheus_client", "opentelemetry"):
        monkeypatch.setitem(sys.modules, module, None)
    recorder = object()

    with open_telemetry(None, pytest.fail) as observer:
        assert observer.recording(recorder, None, None) is recorder  # type: ignore[arg-type]


def test_without_the_extra_a_metrics_port_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.delitem(sys.modules, "saasload.telemetry.prometheus", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with (
        pytest.raises(UsageError, match=r"^--metrics-port: not installed; pip install 'saasload\[metrics\]'$"),
        open_telemetry(0, pytest.fail),
    ):
        pass
