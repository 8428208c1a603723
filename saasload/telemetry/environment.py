"""OpenTelemetry as the environment asks for it: its own variables decide what is sent, and where to."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from saasload.load import Observer
from saasload.telemetry.sight import Sight

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter

CLOSE_S = 3.0
"""How long a run's end may wait for a collector."""
_KNOWN = ("otlp", "console", "none")

Say = Callable[[str], None]
Signal = Literal["traces", "metrics"]


def exporter_for(signal: Signal, environ: Mapping[str, str], say: Say) -> str:
    """Say where a signal goes: otlp, console or none. Without a word on it, an endpoint is what turns it on."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "none"
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    stated = environ.get(variable, "").strip().lower()
    if not stated:
        return "otlp" if any(environ.get(name) for name in endpoints) else "none"
    if stated not in _KNOWN:
        say(f"{variable}: no such exporter here, so no {signal} are sent; use {', '.join(_KNOWN[:-1])} or none")
        return "none"
    return stated


@contextlib.contextmanager
def open_otel(environ: Mapping[str, str], sight: Sight, say: Say) -> Iterator[list[Observer]]:
    """Give the observers that the environment asks for, and send what is left at the end.

    A collector that is not there costs a line and no row.
    """
    traces, metrics = (exporter_for(signal, environ, say) for signal in ("traces", "metrics"))
    if traces == metrics == "none":
        yield []
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(_one_line(say))
        closing = stack.enter_context(_closing())
        found: list[Observer] = []
        try:
            resource = _resource(environ)
            if metrics != "none":
                closing.append(_open_metrics(_metric_exporter(metrics), resource, sight))
            if traces != "none":
                spans, close = _open_traces(_span_exporter(traces), resource)
                closing.append(close)
                found.append(spans)
        except ImportError:
            say("the environment asks for OpenTelemetry, which is not installed; pip install 'saasload[otel]'")
        except ValueError:
            # What it says may quote a variable, and some of those hold keys.
            say("OpenTelemetry: a variable OTEL_… has a value it cannot have, so not all is sent")
        yield found


def _resource(environ: Mapping[str, str]) -> "Resource":
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 an extra

    return Resource.create({} if environ.get("OTEL_SERVICE_NAME") else {"service.name": "saasload"})


def _open_traces(exporter: "SpanExporter", resource: "Resource") -> tuple[Observer, Callable[[], None]]:
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 an extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 the same

    from saasload.telemetry.spans import Spans  # noqa: PLC0415 the same

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    spans = Spans(provider.get_tracer("saasload"))

    def close() -> None:
        spans.close()
        provider.shutdown()

    return spans, close


def _open_metrics(exporter: "MetricExporter", resource: "Resource", sight: Sight) -> Callable[[], None]:
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 an extra
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 the same

    from saasload.telemetry.instruments import observe  # noqa: PLC0415 the same

    provider = MeterProvider([PeriodicExportingMetricReader(exporter)], resource, shutdown_on_exit=False)
    observe(provider.get_meter("saasload"), sight)
    return provider.shutdown


def _span_exporter(name: str) -> "SpanExporter":
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415 an extra

        return ConsoleSpanExporter(out=sys.stderr)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 the same

    return OTLPSpanExporter()


def _metric_exporter(name: str) -> "MetricExporter":
    if name == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter  # noqa: PLC0415 an extra

        return ConsoleMetricExporter(out=sys.stderr)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415 the same

    return OTLPMetricExporter()


@contextlib.contextmanager
def _closing() -> Iterator[list[Callable[[], None]]]:
    """Close side by side what was appended; a collector that does not answer is not waited for longer than that."""
    closers: list[Callable[[], None]] = []
    try:
        yield closers
    finally:
        threads = [threading.Thread(target=close, daemon=True) for close in closers]
        for thread in threads:
            thread.start()
        until = time.monotonic() + CLOSE_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))


@contextlib.contextmanager
def _one_line(say: Say) -> Iterator[None]:
    """Say once that sending fails, instead of all that the exporters log: that repeats itself, and names addresses."""
    logger = logging.getLogger("opentelemetry")
    handler = _Once(say)
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


class _Once(logging.Handler):
    def __init__(self, say: Say) -> None:
        super().__init__(logging.WARNING)
        self._say = say
        self._said = False

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        """Say it the first time."""
        if not self._said:
            self._said = True
            self._say("OpenTelemetry: not all of it reaches the collector; the load goes on")
