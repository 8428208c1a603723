"""Spans tell when calls went, how large they were and what came of them; not what was in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from saasload.model import Call, Company, Fragments, Note, Outcomes, RowStatus, Trip, all_rows
from saasload.run.report import ExitCode
from saasload.telemetry.spans import Spans

from .conftest import prepared

PRIVATE = "Geheim B.V."
AT = 1000.0
COUNTS = {"read": 10, "created": 6, "updated": 0, "unchanged": 1, "rejected": 1, "in_doubt": 1, "unsent": 1}


@dataclass
class Notebook:
    """A recorder that keeps what it is told."""

    seen: list[tuple[int, Trip, Outcomes | None]]

    def settled(self, number: int, trip: Trip, outcomes: Outcomes | None) -> None:
        """Keep it."""
        self.seen.append((number, trip, outcomes))

    sending = refused_here = flush = closed = None


class Scene:
    """Spans over a recorder, at a clock that reads 1000 s and runs 60 times faster than ours."""

    def __init__(self) -> None:
        """Begin a run."""
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.spans = Spans(provider.get_tracer("test"))
        self.notebook = Notebook([])
        self.clock: Any = SimpleNamespace(now=lambda: AT, scale=60.0)
        self.recorder = self.spans.recording(self.notebook, prepared("batch"), self.clock)  # type: ignore[arg-type]

    def call(self, trip: Trip, outcomes: Outcomes | None) -> ReadableSpan:
        """Settle a call; give its span."""
        self.recorder.settled(1, trip, outcomes)
        return self.finished[-1]

    @property
    def finished(self) -> Sequence[ReadableSpan]:
        """The spans so far."""
        return self.exporter.get_finished_spans()


@pytest.fixture
def scene() -> Scene:
    """Give a run that has begun."""
    return Scene()


def a_trip(status: int = 200, *, question: bool = False, attempt: int = 2) -> Trip:
    """Make a call of three rows that left after 6 s of target time and took 3 s."""
    fragments = Fragments([1, 2, 3], [PRIVATE.encode()] * 3, ["k1", "k2", "k3"])
    call = Call(Company("1001"), fragments, size=321, attempt=attempt, question=question)
    return Trip(call, AT + 6.0, 3.0, status, f"{PRIVATE} already exists")


def a_report(exit_code: int = 0, target: str = "https://user:mock-token@erp.example:8443/api?key=mock-token") -> Any:
    """Make a report, as far as telemetry looks."""
    facts = {"run": "r1", "entity": "Account", "mode": "batch", "parallel": 8, "calls": 4, "stopped": PRIVATE}
    return SimpleNamespace(target=target, exit_code=exit_code, **facts, **COUNTS)


def test_a_call_has_a_span_inside_the_runs(scene: Scene) -> None:
    """At the times it took by our clock, and with its size and its end."""
    span = scene.call(a_trip(), all_rows([1, 2, 3], RowStatus.CREATED))
    scene.spans.ended(a_report())
    run = scene.finished[-1]

    assert (span.name, run.name, run.parent) == ("saasload call", "saasload run", None)
    assert span.parent is not None
    assert run.context is not None
    assert span.parent.span_id == run.context.span_id
    assert run.start_time is not None
    assert span.start_time == run.start_time + 100_000_000
    assert span.end_time == run.start_time + 150_000_000
    assert dict(span.attributes or {}) == {
        "saasload.company": "1001",
        "saasload.mode": "batch",
        "saasload.rows.sent": 3,
        "saasload.bytes.sent": 321,
        "saasload.attempt": 2,
        "http.response.status_code": 200,
        "saasload.rows.created": 3,
        "saasload.outcome": "created",
    }
    assert span.status.is_unset


def test_a_call_that_ends_after_the_run_by_our_clock_still_ends_inside_it(scene: Scene) -> None:
    """Two clocks drift; a trace has to nest."""
    span = scene.call(a_trip(), None)
    scene.spans.ended(a_report())

    assert scene.finished[-1].end_time == span.end_time


@pytest.mark.parametrize(
    ("status", "outcomes", "word", "is_error"),
    [
        (429, None, "not_executed", True),
        (0, all_rows([1, 2, 3], RowStatus.IN_DOUBT, Note("lost", PRIVATE)), "in_doubt", True),
        (
            200,
            Outcomes([1, 2, 3], [RowStatus.CREATED, RowStatus.REJECTED, RowStatus.CREATED], ["", "", ""]),
            "mixed",
            False,
        ),
    ],
)
def test_a_call_says_what_came_of_it(
    status: int, outcomes: Outcomes | None, word: str, is_error: bool, scene: Scene
) -> None:
    """One word for all rows where there is one."""
    span = scene.call(a_trip(status), outcomes)

    attributes = dict(span.attributes or {})
    assert attributes["saasload.outcome"] == word
    assert ("http.response.status_code" in attributes) is (status != 0)
    assert (not span.status.is_unset) is is_error
    assert scene.notebook.seen[0][2] is outcomes


def test_a_question_is_told_from_a_call_with_rows(scene: Scene) -> None:
    """By its mode."""
    span = scene.call(a_trip(question=True), all_rows([1, 2, 3], RowStatus.CREATED))

    assert (span.attributes or {})["saasload.mode"] == "look-up"


def test_a_run_that_falls_back_is_one_span(scene: Scene) -> None:
    """Calls of the second mode hang under the same run, with their own mode."""
    first = scene.call(a_trip(), None)
    again: Any = scene.spans.recording(scene.notebook, prepared("insert"), scene.clock)  # type: ignore[arg-type]
    again.settled(2, a_trip(), None)
    second = scene.finished[-1]

    assert first.parent == second.parent
    assert (second.attributes or {})["saasload.mode"] == "insert"


@pytest.mark.parametrize(("code", "is_error"), [(0, False), (1, False), (3, True), (ExitCode.INTERRUPTED, True)])
def test_the_runs_span_sums_up(code: int, is_error: bool, scene: Scene) -> None:
    """With the host, never the address with what is in it; rejected rows alone are no error of the run."""
    scene.spans.ended(a_report(code))
    run = scene.finished[-1]

    assert dict(run.attributes or {}) == {
        "saasload.run": "r1",
        "saasload.entity": "Account",
        "saasload.mode": "batch",
        "saasload.parallel": 8,
        "saasload.calls": 4,
        "saasload.exit_code": int(code),
        "server.address": "erp.example",
        "server.port": 8443,
        **{f"saasload.rows.{name}": count for name, count in COUNTS.items()},
    }
    assert (not run.status.is_unset) is is_error


def test_a_run_that_breaks_off_has_an_end_too(scene: Scene) -> None:
    """As an error, and once."""
    scene.spans.close()
    scene.spans.close()
    scene.spans.ended(a_report())

    assert [span.status.is_unset for span in scene.finished] == [False]


def test_nothing_that_was_sent_or_said_is_in_a_span(scene: Scene) -> None:
    """No bodies, no keys, no words of the target, no token."""
    scene.call(a_trip(500), all_rows([1, 2, 3], RowStatus.REJECTED, Note("duplicate", PRIVATE)))
    scene.spans.ended(a_report(3))
    written = "".join(span.to_json() for span in scene.finished)

    assert [word for word in (PRIVATE, "mock-token", "k1", "already", "key=") if word in written] == []
