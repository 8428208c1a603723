"""Infer what a target is like from the calls of a finished run: costs, places, crowding, slow companies, limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

from saasload.experiments.calls import Calls
from saasload.experiments.fit import Floats, aicc
from saasload.experiments.serving import LEAST_S, Served, in_known_order, most_at_once, serve

ROUNDS = 6
"""Costs and company factors are fitted in turns; they settle within three."""
SLOWER = 1.15
"""A company within 15 % of the others is one of them."""
SURE = 4.0
"""Standard errors by which a company must differ, or a crowding term must show."""
CLEARLY = 10.0
"""A term is kept if it makes AICc smaller by so much: the other model has then no support (Burnham and Anderson)."""
MOST_CALLS = 40_000
MINUTE_S = 60.0
WAITED_S = 0.003
"""A wait below the resolution of a run's file is none."""

Seen = tuple[Calls, Served]


@dataclass(frozen=True, slots=True)
class Cost:
    """Service time of a mode: `call_s + row_s * rows`. `split` tells whether the run had calls of different sizes."""

    call_s: float
    row_s: float
    calls: int
    split: bool


@dataclass(frozen=True, slots=True)
class Target:
    """A target as its calls show it.

    `saturated` tells whether calls ever waited; if not, `slots` is only the least there must be. `slower` holds the
    companies that differ. `error` is the spread of service times around the model, as a share.
    """

    costs: Mapping[str, Cost]
    slots: int
    saturated: bool
    busy_coef: float
    wait_coef: float
    error: float
    slower: Mapping[str, float]
    calls_per_minute: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Costs and factors for one number of places, and how probable they make what was seen."""

    costs: dict[str, Cost]
    factors: dict[str, float]
    alone: Floats
    sigma: float
    likelihood: float


def infer(runs: Sequence[Calls]) -> Target:
    """Infer a target from the calls of one or more runs; each must have calls that were accepted."""
    done = [run.where(run.answered) for run in runs]
    most = max(most_at_once(run) for run in done)
    tried = {places: _fit_places(_known(done, places)) for places in range(1, most + 1)}
    # equal likelihoods mean that the further places were never needed
    slots = max(tried, key=lambda places: (round(tried[places].likelihood, 6), -places))
    seen = _known(done, slots)
    busy_coef, wait_coef, costs, sigma = _crowd(seen, tried[slots])
    return Target(
        costs=costs,
        slots=slots,
        saturated=any(bool((one.begin - run.begin > WAITED_S).any()) for run, one in seen),
        busy_coef=busy_coef,
        wait_coef=wait_coef,
        error=sigma,
        slower={name: factor for name, factor in sorted(tried[slots].factors.items()) if factor != 1.0},
        calls_per_minute=_limit(runs),
    )


def _known(runs: Sequence[Calls], places: int) -> list[Seen]:
    """Serve each run's calls, and keep those of which we know when they were taken."""
    seen = []
    for run in runs:
        known = in_known_order(run)
        seen.append((run.where(known), serve(run, places).where(known)))
    return seen


def _fit_places(seen: Sequence[Seen]) -> _Fit:
    runs = [run for run, _ in seen]
    lasted = np.concatenate([one.lasted for _, one in seen])
    late = lasted <= 0.0
    if late.mean() > 0.01:  # answered before their turn: there are more places than that
        return _Fit({}, {}, lasted, 1.0, -math.inf)
    lasted = np.maximum(lasted, LEAST_S)
    mode, rows, company = _joined(runs)
    names, member = np.unique(company, return_inverse=True)
    factors = np.ones(len(names))
    alone = lasted
    for turn in range(ROUNDS):
        costs, alone = _costs(lasted / factors[member], mode, rows)
        factors = _factors(lasted / alone, member, len(names), keep="all" if turn < ROUNDS - 2 else "clear")
    costs, alone = _costs(lasted / factors[member], mode, rows)
    alone = alone * factors[member]
    logs = np.log(lasted / alone)
    sigma = max(float(np.std(logs)), 1e-3)
    likelihood = -len(logs) * math.log(sigma) - float(np.sum(np.log(lasted)))
    return _Fit(costs, dict(zip(names.tolist(), factors.tolist(), strict=True)), alone, sigma, likelihood)


def _joined(runs: Sequence[Calls]) -> tuple[NDArray[np.str_], Floats, NDArray[np.str_]]:
    return (
        np.concatenate([run.mode for run in runs]),
        np.concatenate([run.rows for run in runs]).astype(np.float64),
        np.concatenate([run.company for run in runs]),
    )


def _costs(lasted: Floats, mode: NDArray[np.str_], rows: Floats) -> tuple[dict[str, Cost], Floats]:
    """Fit `call_s + row_s * rows` to each mode by least squares of relative errors; none is below 0."""
    costs, alone = {}, np.empty_like(lasted)
    for name in np.unique(mode).tolist():
        own = mode == name
        costs[name] = cost = _cost(lasted[own], rows[own])
        alone[own] = cost.call_s + cost.row_s * rows[own]
    return costs, np.maximum(alone, LEAST_S)


def _cost(lasted: Floats, rows: Floats) -> Cost:
    mean = float(lasted.mean())
    if len(np.unique(rows)) == 1:
        size = float(rows[0])
        return Cost(mean, 0.0, len(rows), split=False) if size <= 1 else Cost(0.0, mean / size, len(rows), split=False)
    terms = np.column_stack([np.ones_like(rows), rows])
    expected = np.full_like(lasted, mean)
    found = np.zeros(2)
    for _ in range(4):  # weights are the fit's own: errors are a share of what a call should take
        found = nnls(terms / expected[:, None], lasted / expected)[0]
        expected = np.maximum(terms @ found, LEAST_S)
    return Cost(float(found[0]), float(found[1]), len(rows), split=True)


def _factors(ratio: Floats, member: NDArray[np.intp], count: int, *, keep: str) -> Floats:
    """Say how much slower each company is than the middle one; with keep "clear" only where that is beyond doubt."""
    calls = np.bincount(member, minlength=count)
    factors = np.bincount(member, weights=ratio, minlength=count) / np.maximum(calls, 1)
    factors = factors / float(np.median(factors))
    if keep == "clear":
        inside = ratio / factors[member]
        doubt = SURE * float(np.std(np.log(np.maximum(inside, 1e-9)))) / np.sqrt(np.maximum(calls, 1))
        factors = np.where(np.abs(np.log(factors)) > np.maximum(math.log(SLOWER), doubt), factors, 1.0)
    return np.asarray(factors, dtype=np.float64)


def _crowd(seen: Sequence[Seen], fit: _Fit) -> tuple[float, float, dict[str, Cost], float]:
    """Fit how much others in service and in the queue slow a call down; keep only a term that shows clearly."""
    busy = np.concatenate([one.busy for _, one in seen]) - 1.0
    queue = np.log2(1.0 + np.concatenate([one.waiting for _, one in seen]))
    logs = np.log(np.maximum(np.concatenate([one.lasted for _, one in seen]), LEAST_S) / fit.alone)
    mode = np.concatenate([run.mode for run, _ in seen])
    places = [np.flatnonzero(mode == name) for name in fit.costs]
    step = max(1, len(logs) // MOST_CALLS)
    best = (0.0, 0.0)
    least = aicc(_squares(logs, best, busy, queue, places), points=len(logs), free=len(places))
    for terms in ((0, 1), (1, 0), (1, 1)):
        found = _terms(logs[::step], busy[::step], queue[::step], mode[::step], terms)
        score = aicc(
            _squares(logs, found, busy, queue, places), points=len(logs), free=len(places) + sum(terms)
        )  # fmt: skip
        if score < least - CLEARLY:
            best, least = found, score
    slowed = _slowed(best, busy, queue)
    rest = logs - slowed
    costs, spread = {}, 0.0
    for name, own in zip(fit.costs, places, strict=True):
        # the jitter's mean is 1, and that of its logarithm is not 0
        scale = math.exp(float(rest[own].mean()) + float(np.var(rest[own])) / 2.0)
        cost = fit.costs[name]
        costs[name] = Cost(cost.call_s * scale, cost.row_s * scale, cost.calls, cost.split)
        spread += float(np.var(rest[own])) * len(own)
    return best[0], best[1], costs, math.sqrt(spread / len(logs))


def _slowed(coefs: tuple[float, float], busy: Floats, queue: Floats) -> Floats:
    return np.asarray(np.log1p(coefs[0] * busy) + np.log1p(coefs[1] * queue), dtype=np.float64)


def _squares(
    logs: Floats, coefs: tuple[float, float], busy: Floats, queue: Floats, places: Sequence[NDArray[np.intp]]
) -> float:
    rest = logs - _slowed(coefs, busy, queue)
    return sum(float(np.sum((rest[own] - rest[own].mean()) ** 2)) for own in places)


def _terms(
    logs: Floats, busy: Floats, queue: Floats, mode: NDArray[np.str_], terms: tuple[int, int]
) -> tuple[float, float]:
    """Fit the chosen terms, beside a level of its own for each mode."""
    modes = [mode == name for name in np.unique(mode)]

    def errors(values: Floats) -> Floats:
        rest = logs - _slowed((float(values[0]) * terms[0], float(values[1]) * terms[1]), busy, queue)
        for own in modes:
            rest[own] -= rest[own].mean()
        return rest

    found = least_squares(errors, [0.01, 0.01], bounds=([0.0, 0.0], [np.inf, np.inf])).x
    return float(found[0]) * terms[0], float(found[1]) * terms[1]


def _limit(runs: Sequence[Calls]) -> int | None:
    """Read a minute limit off the refusals: how many calls a company had through in a clock minute that refused one."""
    let_through: list[int] = []
    for run in runs:
        minute = np.floor((run.epoch_s + run.begin) / MINUTE_S).astype(np.int64)
        refused = run.status == 429
        for company, number in {*zip(run.company[refused].tolist(), minute[refused].tolist(), strict=True)}:
            let_through.append(int(((run.company == company) & (minute == number) & ~refused).sum()))
    full = [count for count in let_through if count > 0]
    return int(np.median(full)) if full else None
