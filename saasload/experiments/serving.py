"""Tell waiting from service: what a target with a number of places did with the calls it was sent."""

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saasload.experiments.calls import Calls
from saasload.experiments.fit import Floats

LEAST_S = 0.0005
"""Half the resolution of a run's file: no service is shorter for us."""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """Calls in service: when each began, and how many it met there (itself included) and in the queue."""

    begin: Floats
    lasted: Floats
    busy: Floats
    waiting: Floats

    def where(self, mask: NDArray[np.bool_]) -> "Served":
        """Keep some."""
        return Served(self.begin[mask], self.lasted[mask], self.busy[mask], self.waiting[mask])


def most_at_once(calls: Calls) -> int:
    """Return how many calls were on the wire at once at most."""
    steps = np.concatenate([np.ones(len(calls)), -np.ones(len(calls))])
    # a call follows the answer it waited for, though its start is cut to the millisecond before it
    order = np.lexsort((steps, np.concatenate([calls.begin, calls.end - 4 * LEAST_S])))
    return int(np.cumsum(steps[order]).max())


def in_known_order(calls: Calls) -> NDArray[np.bool_]:
    """Say which calls came alone: of those that came in one millisecond nobody knows the order they queued in.

    Where most came together all are taken, in the order they were answered.
    """
    gap = np.diff(calls.begin) > 2 * LEAST_S
    alone = np.concatenate([[True], gap]) & np.concatenate([gap, [True]])
    return alone if alone.mean() >= 0.5 else np.ones(len(calls), dtype=np.bool_)


def serve(calls: Calls, places: int) -> Served:
    """Find when each call was taken into service, if there are `places`, first come, first served.

    A call is taken when it arrives or, with all places busy, when the first of them frees: at the `places`-th largest
    of the ends before it. Calls of one company follow each other, however many were sent at once.
    """
    arrivals = _one_at_a_time(calls)
    begin = np.empty(len(calls))
    ends: list[float] = []
    for place, (arrived, ended) in enumerate(zip(arrivals.tolist(), calls.end.tolist(), strict=True)):
        begin[place] = arrived if len(ends) < places else max(arrived, ends[0])
        if len(ends) < places:
            heapq.heappush(ends, ended)
        else:
            heapq.heappushpop(ends, ended)
    taken, left, came = np.sort(begin), np.sort(calls.end), np.sort(arrivals)
    inside = np.searchsorted(taken, begin + LEAST_S, "right") - np.searchsorted(left, begin + LEAST_S, "right")
    queued = np.searchsorted(came, begin, "right") - np.searchsorted(taken, begin + LEAST_S, "right")
    return Served(begin, calls.end - begin, np.maximum(1.0, inside), np.maximum(0.0, queued).astype(np.float64))


def _one_at_a_time(calls: Calls) -> Floats:
    """Move the arrival of a call behind the end of the one before it in the same company."""
    arrivals = calls.begin.copy()
    last: dict[str, float] = {}
    for place, (company, ended) in enumerate(zip(calls.company.tolist(), calls.end.tolist(), strict=True)):
        arrivals[place] = max(arrivals[place], last.get(company, 0.0))
        last[company] = ended
    return arrivals
