"""Snapshots: what the dashboard shows, one every half second."""

from typing import Any

from mock_server.faults import LiveFault
from mock_server.world import World

_MAX_LOG = 200
_MAX_COMPANIES = 500
_KEPT_TIMES = 200


class Snapshots:
    """Takes them for one listener, who is told of each call once."""

    def __init__(self, world: World) -> None:
        """Begin with the calls that were noted last."""
        self._world = world
        self._told = max(0, world.calls_noted - _MAX_LOG)
        self._times_read = 0
        self._times: dict[int, list[float]] = {}

    def take(self) -> dict[str, Any]:
        """Return the state of things and the calls since the last one."""
        world = self._world
        if world.calls_noted < self._told:  # a reset
            self._told = self._times_read = 0
            self._times.clear()
        self._read_times()
        new = world.last_calls(min(world.calls_noted - self._told, _MAX_LOG))
        self._told = world.calls_noted
        slots, tallies = world.latency.slots, list(world.tallies.values())
        return {
            "scenario": world.scenario.name,
            "description": world.scenario.description,
            "time_scale": world.clock.scale,
            "now_s": round(world.clock.now_s(), 3),
            "wall_s": round(world.clock.wall_s(), 3),
            "in_flight": world.in_flight,
            "in_service": slots.inside,
            "slots": slots.places,
            "waiting": len(slots.queue),
            "booked": sum(book.live for book in world.ledger.every()),
            "calls": world.calls_noted,
            "rows": sum(tally.rows for tally in tallies),
            "refused": sum(tally.refused for tally in tallies),
            "errors": sum(tally.errors for tally in tallies),
            "dropped": sum(tally.dropped for tally in tallies),
            "limits": _limits(world),
            "companies": self._companies(),
            "faults": [_fault(place, live) for place, live in enumerate(world.faults.live)],
            "log": new,
        }

    def _read_times(self) -> None:
        """Add the durations of the calls since the last look, a company's last ones only."""
        world = self._world
        for _, company, _, _, _, took_s in world.last_calls(world.calls_noted - self._times_read):
            times = self._times.setdefault(company, [])
            times.append(took_s)
            if len(times) > 2 * _KEPT_TIMES:
                del times[:_KEPT_TIMES]
        self._times_read = world.calls_noted

    def _companies(self) -> list[dict[str, Any]]:
        world = self._world
        wall_s = world.clock.wall_s()
        booked: dict[int, int] = {}
        for book in world.ledger.every():
            booked[book.company] = booked.get(book.company, 0) + book.live
        shown = []
        for company in list(world.companies.values())[:_MAX_COMPANIES]:
            tally = world.tallies.get(company.code)
            one: dict[str, Any] = {"code": company.code, "name": company.description, "open": company.open,
                                   "booked": booked.get(company.code, 0)}  # fmt: skip
            if tally is not None:
                times = sorted(self._times.get(company.code, [])[-_KEPT_TIMES:])
                one |= {"in_flight": tally.in_flight, "calls": tally.calls, "refused": tally.refused,
                        "errors": tally.errors, "dropped": tally.dropped,
                        "p50": _quantile(times, 0.5), "p95": _quantile(times, 0.95)}  # fmt: skip
            if world.limits is not None:
                one["left_minute"], one["left_day"] = world.limits.left(company.code, wall_s)
            shown.append(one)
        return shown


def _limits(world: World) -> dict[str, int] | None:
    limits = world.scenario.limits
    return None if limits is None else {"minute": limits.calls_per_minute, "day": limits.calls_per_day}


def _fault(place: int, live: LiveFault) -> dict[str, Any]:
    spec = live.spec.model_dump(mode="json", exclude_defaults=True, exclude={"on", "kind"})
    return {"place": place, "kind": live.spec.kind, "on": live.on, "hits": live.hits, "spec": spec}


def _quantile(times: list[float], share: float) -> float | None:
    return round(times[min(int(len(times) * share), len(times) - 1)], 4) if times else None
