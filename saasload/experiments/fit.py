"""Fit throughput curves by least squares of relative errors, and compare them by AICc.

Errors are relative (differences of logarithms): a throughput scatters by per cents, at any height.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

from saasload.errors import UsageError
from saasload.experiments.models import Curve, LinearFlat, Usl

Floats = NDArray[np.float64]

LEAST_LEVELS = 4
"""Three parameters and one level to contradict them; six or more are advised (pkg.go.dev/github.com/codahale/usl)."""

_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Fitted:
    """A curve, how far it is off (root mean square, as a share), and its AICc; the smaller AICc wins."""

    curve: Curve
    error: float
    aicc: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both models on one set of measurements."""

    usl: Fitted
    flat: Fitted

    @property
    def best(self) -> Fitted:
        """The model with the smaller AICc."""
        return min(self.usl, self.flat, key=lambda fitted: fitted.aicc)

    @property
    def other(self) -> Fitted:
        """The model with the larger AICc."""
        return max(self.flat, self.usl, key=lambda fitted: fitted.aicc)

    @property
    def weight(self) -> float:
        """Akaike weight of the best: how probable it is that it is the better of the two (Burnham and Anderson)."""
        return 1.0 / (1.0 + math.exp(-max(0.0, self.other.aicc - self.best.aicc) / 2.0))


def compare(parallel: Floats, rates: Floats) -> Comparison:
    """Fit both models to measured throughputs; each pair is one run."""
    check_levels(parallel)
    usl = fit_usl(parallel, rates)
    flat = fit_flat(parallel, rates)
    return Comparison(_judge(usl, parallel, rates, free=3), _judge(flat, parallel, rates, free=2))


def check_levels(parallel: Floats) -> None:
    """Refuse to fit what cannot be told apart."""
    levels = len(np.unique(parallel))
    if levels < LEAST_LEVELS:
        message = (
            f"--parallel: {levels} different levels; a curve needs {LEAST_LEVELS} or more, 1 and some beyond the knee"
        )
        raise UsageError(message)


def fit_usl(parallel: Floats, rates: Floats) -> Usl:
    """Fit the Universal Scalability Law.

    N / X is linear in its coefficients, which gives a start that needs no guess (Gunther's own way); a few steps of
    least squares on the logarithms follow.
    """
    start = usl_at_once(parallel, rates)
    top = float(np.max(parallel))

    def errors(values: Floats) -> Floats:
        gamma, alpha, beta = np.exp(values[0]), values[1], values[2]
        others = parallel - 1.0
        model = gamma * parallel / (1.0 + alpha * others + beta * parallel * others)
        return np.asarray(np.log(model / rates), dtype=np.float64)

    found = least_squares(
        errors,
        [math.log(start.gamma), max(start.alpha, 1e-9), max(start.beta, 1e-9)],
        bounds=([-np.inf, 0.0, 0.0], [np.inf, np.inf, np.inf]),
        x_scale=[1.0, 1.0 / top, 1.0 / top**2],
    )
    gamma, alpha, beta = (float(value) for value in found.x)
    return Usl(math.exp(gamma), alpha, beta)


def usl_at_once(parallel: Floats, rates: Floats) -> Usl:
    """Fit the law in one step: N / X = (1 + a (N - 1) + b N (N - 1)) / g, none of them below 0, errors relative."""
    seconds = parallel / rates
    others = parallel - 1.0
    terms = np.column_stack([np.ones_like(parallel), others, parallel * others]) / seconds[:, None]
    scale = np.linalg.norm(terms, axis=0)
    scale[scale == 0.0] = 1.0
    found: Any = nnls(terms / scale, np.ones_like(parallel))[0] / scale
    base = max(float(found[0]), _TINY)
    return Usl(1.0 / base, float(found[1]) / base, float(found[2]) / base)


def fit_flat(parallel: Floats, rates: Floats) -> LinearFlat:
    """Fit a line and a ceiling: for each place where they may meet the best pair is known, and the best place wins."""
    log_rates = np.log(rates)
    log_slopes = log_rates - np.log(parallel)
    levels = np.unique(parallel)
    best, least = LinearFlat(1.0, 1.0), math.inf
    for last in levels:
        rising = parallel <= last
        slope = float(np.exp(np.mean(log_slopes[rising])))
        ceiling = float(np.exp(np.mean(log_rates[~rising]))) if not rising.all() else slope * float(last)
        curve = LinearFlat(slope, ceiling)
        squares = float(np.sum((np.log(np.minimum(slope * parallel, ceiling)) - log_rates) ** 2))
        if squares < least:
            best, least = curve, squares
    return best


def aicc(squares: float, *, points: int, free: int) -> float:
    """Return Akaike's criterion for least squares, corrected for few points; the error's variance is a parameter too.

    K. P. Burnham and D. R. Anderson, Model Selection and Multimodel Inference (2002), sections 2.2 and 2.4.

    >>> round(aicc(1.0, points=10, free=2), 2)
    -13.03
    """
    count = free + 1
    if points <= count + 1:
        return math.inf
    return points * math.log(max(squares, _TINY) / points) + 2 * count + 2 * count * (count + 1) / (points - count - 1)


def _judge(curve: Curve, parallel: Floats, rates: Floats, *, free: int) -> Fitted:
    model = np.array([curve.at(float(level)) for level in parallel])
    squares = float(np.sum((np.log(model) - np.log(rates)) ** 2))
    return Fitted(curve, math.sqrt(squares / len(rates)), aicc(squares, points=len(rates), free=free))
