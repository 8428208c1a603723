"""Mistakes that no single key shows: faults in each other's way, and scenarios in which no load ends."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mock_server.scenario.spec import FaultSpec, Scenario, SlowdownSpec

_IN_PLACE = frozenset({"drop-before", "status", "html-200", "empty", "late-commit"})
"""Faults in place of the work: where one of them hits each call, nothing is ever booked and answered."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong, and at which key."""

    place: tuple[int | str, ...]
    text: str


def find_mistake(scenario: Scenario) -> Mistake | None:
    """Return the first mistake, None where there is none."""
    return next(_mistakes(scenario), None)


def find_overlap(faults: Iterable[tuple[int, FaultSpec]], new: FaultSpec) -> str:
    """Say which of the faults a new one is in the way of, empty where it is of none."""
    for place, one in faults:
        reason = _overlap(one, new)
        if reason:
            return f"overlaps fault {place}: {reason}"
    return ""


def _mistakes(scenario: Scenario) -> Iterator[Mistake]:
    limits = scenario.limits
    if limits is not None and limits.other_calls_per_minute >= limits.calls_per_minute:
        yield Mistake(
            ("limits", "other_calls_per_minute"),
            f"{limits.other_calls_per_minute} of {limits.calls_per_minute} calls a minute: no load can ever finish",
        )
    for place, fault in enumerate(scenario.faults):
        yield from _in_fault(place, fault)
        for before, one in enumerate(scenario.faults[:place]):
            reason = _overlap(one, fault) if one.on and fault.on else ""
            if reason:
                yield Mistake(("faults", place), f"overlaps faults.{before}: {reason}")
    for place, later in enumerate(scenario.slowdowns):
        for before, slowdown in enumerate(scenario.slowdowns[:place]):
            if _same(slowdown.company, later.company) and _times_meet(slowdown, later):
                yield Mistake(("slowdowns", place), f"overlaps slowdowns.{before} in time")


def _in_fault(place: int, fault: FaultSpec) -> Iterator[Mistake]:
    for_ever = fault.on and fault.last is None and fault.for_s is None
    if for_ever and fault.kind in _IN_PLACE and _always(fault):
        yield Mistake(("faults", place), "hits each call for ever: no load can ever finish (say last or for_s)")
    if fault.kind.startswith("xml-") and fault.endpoint not in {None, "xml"}:
        yield Mistake(("faults", place, "endpoint"), f"{fault.kind} can only hit xml")
    if fault.last is not None and fault.last < fault.first:
        yield Mistake(("faults", place, "last"), f"{fault.last} is below first ({fault.first}): it never hits")


def _overlap(one: FaultSpec, other: FaultSpec) -> str:
    """Say on which call two faults would both strike for certain; only one of them can."""
    if one.probability or other.probability or not _times_meet(one, other):
        return ""
    if not (_same(one.company, other.company) and _same(_endpoint(one), _endpoint(other))):
        return ""
    first, last = max(one.first, other.first), min(one.last or math.inf, other.last or math.inf)
    if (one.company, _endpoint(one)) != (other.company, _endpoint(other)):
        # they count different calls: only what hits each call is certain
        certain = _always(one) and _always(other) and one.last is None and other.last is None
        return "both hit each call" if certain else ""
    step = math.lcm(one.every or 1, other.every or 1)
    number = -(-first // step) * step
    return f"both hit call {number}" if number <= last else ""


def _endpoint(fault: FaultSpec) -> str | None:
    return "xml" if fault.kind.startswith("xml-") else fault.endpoint


def _always(fault: FaultSpec) -> bool:
    return fault.probability == 1.0 or (not fault.probability and fault.every in {0, 1})


def _same(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def _times_meet(one: FaultSpec | SlowdownSpec, other: FaultSpec | SlowdownSpec) -> bool:
    ends = [spec.at_s + (math.inf if spec.for_s is None else spec.for_s) for spec in (one, other)]
    return max(one.at_s, other.at_s) < min(ends)
