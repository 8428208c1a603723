"""Tell beforehand what a load will take: calls, bytes, time, and which limit binds whom. Nothing is sent."""

import heapq
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import orjson

from saasload.model import Company, Outcomes
from saasload.policy.budget import Budget
from saasload.policy.parallelism import Parallelism
from saasload.policy.schedule import Schedule
from saasload.policy.window import NEVER
from saasload.prepare import Prepared
from saasload.profile import Limit, Pace
from saasload.rows import SpooledRows
from saasload.source.spool import Spool

PARALLEL_TRIED = (1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 64, 100)
GOOD_ENOUGH = 1.02
"""The smallest parallelism within 2 % of the shortest time is the one to use: more only queues at the target."""

SAMPLE_ROWS = 2_000
MOST_CALLS = 300_000
"""Calls that are played one by one; beyond, a call in the play stands for several."""

UNKNOWN_PACE = Pace(call_s=0.25, row_s=0.02)


@dataclass(frozen=True, slots=True)
class Forecast:
    """One mode's load: `binding` counts companies by the limit they wait for, `late` names those not done today.

    Durations are in seconds of the target's time; `pace_known` tells whether the profile or a run gave the pace.
    """

    mode: str
    parallel: int
    calls: int
    bytes: int
    duration_s: float
    binding: Mapping[str, int]
    late: Mapping[str, float]
    fixed_by: str
    pace_known: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A forecast a mode, and the one to take."""

    source: str
    rows: int
    refused: Mapping[str, int]
    companies: int
    forecasts: tuple[Forecast, ...]
    recommended_mode: str
    recommended_parallel: int
    reason: str
    deadline_met: bool | None = None

    def to_json(self) -> bytes:
        """Write it as one JSON object."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)


def make_plan(
    prepared: Sequence[Prepared], spool: Spool, wall: float, paces: Mapping[str, Pace], deadline_s: float | None
) -> Plan:
    """Forecast every mode, at the job's parallelism or the best one, and recommend the shortest."""
    forecasts = []
    for one in prepared:
        pace = paces.get(one.mode)
        wanted = one.job.parallel
        number = recommended_parallel(one, spool, wall, pace)[0] if wanted == "auto" else wanted
        forecasts.append(forecast(one, spool, number, wall, pace))
    best = min(forecasts, key=lambda found: found.duration_s)
    refused = {reason: part.rows for reason, part in spool.index.refused.items()}
    companies = sum(bool(part.rows) for part in spool.index.companies.values())
    return Plan(
        source=prepared[0].job.source.name,
        rows=spool.index.rows,
        refused=refused,
        companies=companies,
        forecasts=tuple(forecasts),
        recommended_mode=best.mode,
        recommended_parallel=best.parallel,
        reason=_reason(best, forecasts),
        deadline_met=None if deadline_s is None else best.duration_s <= deadline_s,
    )


def _reason(best: Forecast, forecasts: Sequence[Forecast]) -> str:
    if not best.calls:
        return "there is nothing to send"
    others = [found for found in forecasts if found is not best and found.duration_s > 0]
    why = f"{best.calls:,} calls of {best.mode} take least time"
    if others:
        worst = max(others, key=lambda found: found.duration_s)
        why += f", {worst.duration_s / max(best.duration_s, 1e-9):.1f} times less than {worst.mode}"
    if best.fixed_by:
        why += f"; company {best.fixed_by} alone fixes the end"
    return why + f"; more than {best.parallel} at once only queue at the target"


def forecast(prepared: Prepared, spool: Spool, parallel: int, wall: float, pace: Pace | None = None) -> Forecast:
    """Play a load through the schedule and the budget that will run it, with calls that only take time.

    `wall` is the target's time of day in epoch seconds, from which day limits count.
    """
    known = pace or getattr(prepared.entity, prepared.mode).pace
    rows = {Company(company): part.rows for company, part in spool.index.companies.items() if part.rows}
    row_bytes, overhead = _bytes_a_row(prepared, spool)
    per_call = _rows_a_call(prepared, row_bytes)
    played = _play(prepared, rows, per_call, parallel, known or UNKNOWN_PACE, wall)
    calls = sum(math.ceil(count / per_call) for count in rows.values())
    total = sum(rows.values())
    day_left = 86400.0 - wall % 86400.0
    late = {company: end for company, end in played.ends.items() if end > day_left}
    return Forecast(
        prepared.mode,
        parallel,
        calls,
        round(total * row_bytes) + calls * overhead,
        played.duration_s,
        played.binding,
        {str(company): end for company, end in sorted(late.items(), key=lambda item: -item[1])},
        _fixed_by(rows, played, parallel),
        known is not None,
    )


def recommended_parallel(prepared: Prepared, spool: Spool, wall: float, pace: Pace | None = None) -> tuple[int, float]:
    """Find the smallest parallelism that is about as fast as any; return it with its duration."""
    found = [(number, forecast(prepared, spool, number, wall, pace).duration_s) for number in PARALLEL_TRIED]
    best = min(duration for _, duration in found)
    return next((number, duration) for number, duration in found if duration <= best * GOOD_ENOUGH)


@dataclass(frozen=True, slots=True)
class _Played:
    duration_s: float
    ends: Mapping[Company, float]
    binding: Mapping[str, int]


def _play(
    prepared: Prepared, rows: Mapping[Company, int], per_call: int, parallel: int, pace: Pace, wall: float
) -> _Played:
    """Play the load with calls that only take time; the platform serves `slots` of them at once, in turn."""
    total = sum(math.ceil(count / per_call) for count in rows.values())
    lump = max(1, math.ceil(total / MOST_CALLS))
    limits = [_lumped(limit, lump) for limit in prepared.profile.limits]
    left = dict(rows)
    budget = Budget(limits, offset=wall)
    bound = Parallelism(parallel, per_company=prepared.job.per_company, hint=None, rng=random.Random(0))  # noqa: S311
    schedule = Schedule(left, budget, per_company=bound.company_limit, order=prepared.job.order)
    slots = [0.0] * min(prepared.profile.slots or parallel, parallel)
    heapq.heapify(slots)
    back: list[tuple[float, int, Company, int]] = []
    ends: dict[Company, float] = {}
    waited: Counter[Company] = Counter()
    now, number = 0.0, 0
    while True:
        room = bound.limit_for(schedule.total, schedule.longest()) - len(back)
        company = schedule.take(now) if room > 0 else None
        if company is not None:
            count = min(left[company], per_call * lump)
            if not count:
                schedule.give_back(company)
                schedule.close(company)
                continue
            left[company] -= count
            calls = math.ceil(count / per_call)
            end = max(heapq.heappop(slots), now) + calls * pace.call_s + count * pace.row_s
            heapq.heappush(slots, end)
            number += 1
            heapq.heappush(back, (end, number, company, count))
            continue
        if room > 0 and schedule.next_at() < (back[0][0] if back else NEVER):
            until = schedule.next_at()
            for moment, waiting in schedule.waits():
                if moment > until:
                    break
                waited[waiting] += 1
            now = until
            continue
        if not back:
            break
        now, _, company, count = heapq.heappop(back)
        ends[company] = now
        schedule.settled(company, now, count)
    return _Played(now, ends, _binding(limits, rows, per_call * lump, waited))


def _lumped(limit: Limit, lump: int) -> Limit:
    return limit.model_copy(update={"calls": max(1, limit.calls // lump)})


def _binding(
    limits: Sequence[Limit], rows: Mapping[Company, int], per_call: int, waited: Mapping[Company, int]
) -> Mapping[str, int]:
    """Name the limit that makes companies wait: the longest period whose calls they use up."""
    found: Counter[str] = Counter()
    for company in waited:
        calls = math.ceil(rows[company] / per_call)
        binding = [limit for limit in limits if limit.scope == "app" or calls > limit.calls]
        if binding:
            found[limit_words(max(binding, key=lambda limit: limit.period_s))] += 1
    return dict(found)


def limit_words(limit: Limit) -> str:
    """Name a limit.

    >>> limit_words(Limit(scope="company", calls=60, period_s=60.0))
    '60 calls a minute by company'
    """
    periods = {1.0: "a second", 60.0: "a minute", 3600.0: "an hour", 86400.0: "a day"}
    period = periods.get(limit.period_s, f"in {limit.period_s:g} s")
    return f"{limit.calls:,} calls {period} {'by company' if limit.scope == 'company' else 'for the app'}"


def _fixed_by(rows: Mapping[Company, int], played: _Played, parallel: int) -> str:
    """Say which company alone fixes the end, if one does: it runs from the first second to the last."""
    if not rows or parallel == 1:
        return ""
    largest = max(rows, key=lambda company: rows[company])
    others = sorted((end for company, end in played.ends.items() if company != largest), reverse=True)
    alone = played.ends.get(largest, 0.0) - (others[0] if others else 0.0)
    return str(largest) if alone > 0.05 * played.duration_s else ""


def _bytes_a_row(prepared: Prepared, spool: Spool) -> tuple[float, int]:
    """Encode the first rows of some companies; return the mean bytes a row, and what a call weighs beside them."""
    seen = size = 0
    statuses = bytearray(spool.index.rows + 1)
    for company, part in spool.index.companies.items():
        if not part.rows or seen >= SAMPLE_ROWS:
            continue
        for item in SpooledRows(prepared, spool, Company(company), statuses).fresh():
            if isinstance(item, Outcomes):
                continue
            seen += len(item.rows)
            size += item.size - prepared.wire.overhead
            if seen >= SAMPLE_ROWS:
                break
    return (size / seen if seen else 0.0), prepared.wire.overhead


def _rows_a_call(prepared: Prepared, row_bytes: float) -> int:
    wire = prepared.wire
    fit = (wire.max_bytes - wire.overhead) / row_bytes if row_bytes else wire.max_rows
    return max(1, min(wire.max_rows, int(fit)))
