"""Jitter: by which factor a call takes longer or shorter than another of the same size."""

import math
import random

from mock_server.scenario import JitterSpec, LatencySpec, SpreadSpec

P99 = 2.3263478740408408
"""Standard deviations between the median and the 99th percentile of a normal distribution."""


def jitter(spec: LatencySpec, rng: random.Random) -> float:
    """Draw the factor of one call."""
    if spec.jitter is not None:
        return _draw(spec.jitter, rng)
    sigma = spec.jitter_sigma
    return math.exp(rng.gauss(0.0, sigma) - sigma * sigma / 2) if sigma else 1.0


def company_factor(spread: SpreadSpec | None, *, company: int, seed: int) -> float:
    """Return how much slower a company is than the median one, drawn from a stream of its own."""
    if spread is None:
        return 1.0
    rng = random.Random(f"{seed}:pace:{company}")  # noqa: S311 - a simulation
    return _log_normal(spread.median, spread.p99, rng)


def _draw(spec: JitterSpec, rng: random.Random) -> float:
    match spec.kind:
        case "constant":
            factor = 1.0
        case "uniform":
            factor = rng.uniform(spec.low, spec.high)
        case "log-normal":
            factor = _log_normal(spec.median, spec.p99, rng)
        case "pareto":
            factor = spec.low * rng.paretovariate(spec.alpha)
    return min(factor, spec.cap)


def _log_normal(median: float, p99: float, rng: random.Random) -> float:
    return median * math.exp(rng.gauss(0.0, math.log(p99 / median) / P99))
