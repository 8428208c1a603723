"""The metrics, read from a load's own counts when somebody asks; nothing is counted twice, or for this."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import anyio.lowlevel

from saasload.load import Live, Observer
from saasload.model import RowStatus
from saasload.prepare import Prepared
from saasload.run.report import Report

SETTLED = (RowStatus.CREATED, RowStatus.UPDATED, RowStatus.UNCHANGED, RowStatus.REJECTED)
"""Outcomes that are for good: counters. A row in doubt may still become something else."""
BACK_OFF = "back-off"
"""What a company waits for where it is no limit: it was refused, or its rows in doubt are not looked up yet."""
_TRIES = 5

Value = TypeVar("Value")
Samples = Sequence[tuple[Mapping[str, str], float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, named without prefix and suffix; `unit` is as OpenTelemetry writes it."""

    name: str
    kind: Literal["counter", "gauge", "info"]
    unit: str
    words: str
    labels: tuple[str, ...]
    read: Callable[["Sight"], Samples]


class Sight(Observer):
    """Looks at the load under way; a run that falls back to another mode is one load after another."""

    def __init__(self) -> None:
        """Begin with no load to look at."""
        self.live: Live | None = None
        self.mode = ""
        self.entity = ""
        self._loop: anyio.lowlevel.EventLoopToken | None = None
        self._thread = 0
        self._retries_before = 0
        self._refused_before = 0

    def begun(self, live: Live, prepared: Prepared) -> None:
        """Turn to a load; what the one before has counted for itself is kept."""
        if self.live is not None:
            self._retries_before += self.live.driver.exchange.retries
            self._refused_before += self.live.driver.exchange.refused
        self.mode, self.entity = prepared.mode, prepared.job.entity
        self._loop, self._thread = anyio.lowlevel.current_token(), threading.get_ident()
        self.live = live

    def ended(self, report: Report) -> None:  # noqa: ARG002
        """Keep the counts to be read; nothing waits any more."""
        self._loop = None

    def read(self, metric: Metric) -> Samples:
        """Read a metric; empty before the first load begins.

        Other threads ask, while the load goes on: what has changed between two looks is looked at again.
        """
        return [] if self.live is None else _steady(lambda: metric.read(self), [])

    def _seen(self) -> Live:
        assert self.live is not None  # noqa: S101 for the type checker: `read` sees to it
        return self.live

    def settled(self) -> Samples:
        """Count rows by the outcome they have for good."""
        counts = self._seen().counts()
        return [({"outcome": status.name.lower()}, counts[status]) for status in SETTLED]

    def rows(self) -> Samples:
        """Count the rows of the source."""
        return _one(self._seen().rows)

    def in_doubt(self) -> Samples:
        """Count the rows nobody knows the outcome of, for now."""
        return _one(self._seen().counts()[RowStatus.IN_DOUBT])

    def unsent(self) -> Samples:
        """Count the rows without an outcome."""
        live = self._seen()
        return _one(live.rows - live.counts().total())

    def calls(self) -> Samples:
        """Count the calls."""
        return _one(self._seen().book.calls)

    def retries(self) -> Samples:
        """Count the calls that were queued again."""
        return _one(self._retries_before + self._seen().driver.exchange.retries)

    def refused(self) -> Samples:
        """Count the calls that the target asked to come back with."""
        return _one(self._refused_before + self._seen().driver.exchange.refused)

    def in_flight(self) -> Samples:
        """Count the calls on the wire, and those that ask the budget for leave."""
        return _one(self._seen().driver.in_flight)

    def parallel(self) -> Samples:
        """Say how many may be there."""
        return _one(self._seen().parallelism.limit)

    def companies(self) -> Samples:
        """Count the companies that rows go to."""
        return _one(self._seen().companies)

    def done(self) -> Samples:
        """Count the companies whose rows all have an outcome."""
        return _one(self._seen().companies_done())

    def waiting(self) -> Samples:
        """Count the companies that wait, by what they wait for."""
        return [({"limit": limit}, len(waits)) for limit, waits in self._waits().items()]

    def longest_wait(self) -> Samples:
        """Say how long the last of them waits, in seconds of ours."""
        return [({"limit": limit}, max(waits)) for limit, waits in self._waits().items()]

    def info(self) -> Samples:
        """Say what kind of load it is."""
        return [({"mode": self.mode, "entity": self.entity}, 1)]

    def _waits(self) -> dict[str, list[float]]:
        import anyio.from_thread  # noqa: PLC0415 only where somebody asks

        live, loop = self._seen(), self._loop
        found: dict[str, list[float]] = {}
        if loop is None:
            return found
        # How long a wait still is can only be told by the loop's clock, and that only in the loop's thread.
        here = threading.get_ident() == self._thread
        waits = live.driver.waits() if here else anyio.from_thread.run_sync(live.driver.waits, token=loop)
        for seconds, _, limit in waits:
            found.setdefault(limit or BACK_OFF, []).append(max(0.0, seconds / live.time_scale))
        return found


METRICS = (
    Metric("rows_settled", "counter", "{row}", "Rows with an outcome for good", ("outcome",), Sight.settled),
    Metric("rows", "gauge", "{row}", "Rows read from the source", (), Sight.rows),
    Metric("rows_in_doubt", "gauge", "{row}", "Rows whose answer was lost, for now", (), Sight.in_doubt),
    Metric("rows_unsent", "gauge", "{row}", "Rows without an outcome, on the wire or not", (), Sight.unsent),
    Metric("calls", "counter", "{call}", "Calls with an end, look-ups included", (), Sight.calls),
    Metric("retries", "counter", "{call}", "Calls queued again by this process", (), Sight.retries),
    Metric("calls_refused", "counter", "{call}", "Calls of this process refused by a limit", (), Sight.refused),
    Metric("calls_in_flight", "gauge", "{call}", "Calls on the wire or about to leave", (), Sight.in_flight),
    Metric("parallel_limit", "gauge", "{call}", "Calls that may be on the wire at once", (), Sight.parallel),
    Metric("companies", "gauge", "{company}", "Companies that rows go to", (), Sight.companies),
    Metric("companies_done", "gauge", "{company}", "Companies whose rows all have an outcome", (), Sight.done),
    Metric("companies_waiting", "gauge", "{company}", "Companies that wait, by limit", ("limit",), Sight.waiting),
    Metric("longest_wait", "gauge", "s", "Longest wait of a company now, by limit", ("limit",), Sight.longest_wait),
    Metric("run", "info", "", "What kind of load it is", ("mode", "entity"), Sight.info),
)


def _one(value: float) -> Samples:
    return [({}, value)]


def _steady(read: Callable[[], Value], otherwise: Value) -> Value:
    for _ in range(_TRIES):
        try:
            return read()
        except (LookupError, RuntimeError):
            continue  # a company went on, or a table grew, between two looks at it
    return otherwise
