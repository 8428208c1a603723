"""Metrics: all counters in the text format of Prometheus."""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from mock_server.world import BUCKETS_S, World

_BY_COMPANY = (
    ("mock_calls_total", "counter", "calls", "Calls answered, refused or dropped"),
    ("mock_rows_total", "counter", "rows", "Rows in calls that were understood"),
    ("mock_errors_total", "counter", "errors", "Calls answered with a status from 400 on, 429 aside"),
    ("mock_refused_total", "counter", "refused", "Calls answered with 429"),
    ("mock_early_total", "counter", "early", "Calls that came before a Retry-After was over"),
    ("mock_dropped_total", "counter", "dropped", "Calls whose connection ended without an answer"),
    ("mock_in_flight", "gauge", "in_flight", "Calls that are being answered"),
)


def metrics(world: World) -> str:
    """Return everything that is counted."""
    lines: list[str] = []
    tallies = sorted(world.tallies.items())
    for name, kind, attribute, says in _BY_COMPANY:
        values = ((f'company="{company}"', getattr(tally, attribute)) for company, tally in tallies)
        lines += _family(name, kind, says, values)
    booked = ((f'company="{book.company}",entity="{book.entity.set}"', book.live) for book in world.ledger.every())
    lines += _family("mock_booked_rows", "gauge", "Rows in the books", booked)
    faults = ((f'place="{place}",kind="{live.spec.kind}"', live.hits) for place, live in enumerate(world.faults.live))
    lines += _family("mock_fault_hits_total", "counter", "Calls that a fault hit", faults)
    slots = world.latency.slots
    lines += _family("mock_slots_busy", "gauge", "Calls in a shared slot", [("", slots.inside)])
    lines += _family("mock_slots_waiting", "gauge", "Calls that wait for a shared slot", [("", len(slots.queue))])
    lines += _family("mock_time_scale", "gauge", "Mock seconds in a real one", [("", world.clock.scale)])
    lines += _family("mock_internal_errors_total", "counter", "Mistakes of the mock's own",
                     [("", world.internal_errors)])  # fmt: skip
    lines += _durations(world)
    return "\n".join([*lines, ""])


def _family(name: str, kind: str, says: str, values: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {says}."
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        yield f"{name}{{{labels}}} {value:g}" if labels else f"{name} {value:g}"


def _durations(world: World) -> Iterator[str]:
    name = "mock_call_seconds"
    yield f"# HELP {name} How long calls took, in mock seconds."
    yield f"# TYPE {name} histogram"
    for endpoint, durations in sorted(world.durations.items()):
        label = f'endpoint="{endpoint}"'
        for bound, number in zip((*BUCKETS_S, "+Inf"), accumulate(durations.buckets), strict=True):
            yield f'{name}_bucket{{{label},le="{bound}"}} {number}'
        yield f"{name}_sum{{{label}}} {durations.total_s:.6f}"
        yield f"{name}_count{{{label}}} {sum(durations.buckets)}"
