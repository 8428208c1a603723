"""OpenTelemetry spans: one a run, and in it one a call, at the times the call really took."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from saasload.clock import Clock
from saasload.exchange import Recorder
from saasload.load import Observer
from saasload.model import Outcomes, Trip
from saasload.prepare import Prepared
from saasload.run.report import ExitCode, Report

NOT_EXECUTED = "not_executed"
MIXED = "mixed"
LOOK_UP = "look-up"
_NS = 1_000_000_000

Attributes = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class _Anchor:
    """One instant by two clocks: nanoseconds since 1970, and the load's seconds."""

    ns: int
    at: float
    scale: float

    def wall_ns(self, at: float) -> int:
        """Tell when a reading of the load's clock was."""
        return self.ns + int((at - self.at) / self.scale * _NS)


class Spans(Observer):
    """Writes spans of a run; of rows they have numbers only, and of addresses the host."""

    def __init__(self, tracer: Tracer) -> None:
        """Take what makes spans."""
        self._tracer = tracer
        self._run: Span | None = None
        self._last_ns = 0

    def recording(self, recorder: Recorder, prepared: Prepared, clock: Clock) -> Recorder:
        """Look over the recorder's shoulder."""
        anchor = _Anchor(time.time_ns(), clock.now(), clock.scale)
        if self._run is None:
            self._run = self._tracer.start_span("saasload run", start_time=anchor.ns)
        return _Listening(recorder, self, prepared.mode, anchor)

    def ended(self, report: Report) -> None:
        """End the run's span with what came of it."""
        if self._run is None:
            return
        self._run.set_attributes(_of_run(report))
        if report.exit_code >= ExitCode.USAGE:
            self._run.set_status(Status(StatusCode.ERROR))
        self._end()

    def close(self) -> None:
        """End the span of a run that broke off without a report."""
        if self._run is not None:
            self._run.set_status(Status(StatusCode.ERROR))
            self._end()

    def call(self, trip: Trip, outcomes: Outcomes | None, mode: str, anchor: _Anchor) -> None:
        """Write a call's span."""
        if self._run is None:
            return
        ended = anchor.wall_ns(trip.started + trip.lasted)
        self._last_ns = max(self._last_ns, ended)
        span = self._tracer.start_span(
            "saasload call",
            context=set_span_in_context(self._run),
            kind=SpanKind.CLIENT,
            attributes=_of_call(trip, outcomes, mode),
            start_time=anchor.wall_ns(trip.started),
        )
        if trip.status == 0 or trip.status >= 400:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)

    def _end(self) -> None:
        if self._run is not None:
            self._run.end(max(time.time_ns(), self._last_ns))
        self._run = None


class _Listening:
    """A recorder that passes everything on, and tells of calls that are settled."""

    def __init__(self, recorder: Recorder, spans: Spans, mode: str, anchor: _Anchor) -> None:
        self.refused_here = recorder.refused_here
        self.sending = recorder.sending
        self.flush = recorder.flush
        self.closed = recorder.closed
        self._settled = recorder.settled
        self._spans = spans
        self._mode = mode
        self._anchor = anchor

    def settled(self, number: int, trip: Trip, outcomes: Outcomes | None) -> None:
        self._settled(number, trip, outcomes)
        self._spans.call(trip, outcomes, LOOK_UP if trip.call.question else self._mode, self._anchor)


def _of_call(trip: Trip, outcomes: Outcomes | None, mode: str) -> Attributes:
    call = trip.call
    found: dict[str, str | int | float] = {
        "saasload.company": call.company,
        "saasload.mode": mode,
        "saasload.rows.sent": len(call.rows),
        "saasload.bytes.sent": call.size,
        "saasload.attempt": call.attempt,
    }
    if trip.status:
        found["http.response.status_code"] = trip.status
    counts = Counter(() if outcomes is None else outcomes.statuses)
    found |= {f"saasload.rows.{status.name.lower()}": count for status, count in counts.items()}
    only = next(iter(counts)).name.lower() if len(counts) == 1 else MIXED
    return {**found, "saasload.outcome": only if counts else NOT_EXECUTED}


def _of_run(report: Report) -> Attributes:
    target = urlsplit(report.target)
    counts = ("read", "created", "updated", "unchanged", "rejected", "in_doubt", "unsent")
    place: dict[str, str | int] = {"server.address": target.hostname or report.target}
    if target.port is not None:
        place["server.port"] = target.port
    return {
        "saasload.run": report.run,
        "saasload.entity": report.entity,
        "saasload.mode": report.mode,
        "saasload.parallel": report.parallel,
        "saasload.calls": report.calls,
        "saasload.exit_code": int(report.exit_code),
        **{f"saasload.rows.{name}": getattr(report, name) for name in counts},
        **place,
    }
