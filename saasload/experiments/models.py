"""The two shapes a throughput curve may have, and what each says of its peak."""

import math
from dataclasses import dataclass
from typing import Protocol

NINETY = 0.9


@dataclass(frozen=True, slots=True)
class Peak:
    """Where a fitted curve is highest among 1 … `limit`, and where it has got to 90 % of that.

    `knee` is where growth along the first straight line would meet the height of the peak.
    """

    parallel: float
    rate: float
    ninety: float
    knee: float


class Curve(Protocol):
    """A fitted throughput curve."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    def at(self, parallel: float) -> float:
        """Throughput at a degree of parallelism."""

    def peak(self, limit: float) -> Peak:
        """Say where it is highest, without looking beyond `limit`, the largest level that was tried."""

    def parameters(self) -> dict[str, float]:
        """Name its parameters."""


@dataclass(frozen=True, slots=True)
class Usl:
    """The Universal Scalability Law: X(N) = g N / (1 + a (N - 1) + b N (N - 1)).

    N. J. Gunther, Guerrilla Capacity Planning (2007), ch. 4 to 6. `gamma` is the throughput of one, `alpha` the
    share that queues for something common, `beta` the price of keeping each pair in step. Beyond
    N = sqrt((1 - alpha) / beta) more is less.

    >>> Usl(gamma=2.0, alpha=0.0, beta=0.0).at(8)
    16.0
    """

    gamma: float
    alpha: float
    beta: float

    @property
    def name(self) -> str:
        """Its name in reports."""
        return "usl"

    def at(self, parallel: float) -> float:
        """Throughput at a degree of parallelism."""
        others = parallel - 1.0
        return self.gamma * parallel / (1.0 + self.alpha * others + self.beta * parallel * others)

    def peak(self, limit: float) -> Peak:
        """Say where it is highest within 1 … limit."""
        if self.alpha >= 1.0:  # one alone is fastest
            top = 1.0
        else:
            top = max(1.0, min(limit, math.sqrt((1.0 - self.alpha) / self.beta) if self.beta > 0.0 else limit))
        rate = self.at(top)
        return Peak(top, rate, self._first(NINETY * rate, top), rate / self.gamma)

    def _first(self, rate: float, top: float) -> float:
        """Return the smallest N of at least 1 that gives `rate`: a root of the curve made a quadratic."""
        square = self.beta * rate
        linear = (self.alpha - self.beta) * rate - self.gamma
        constant = (1.0 - self.alpha) * rate
        inside = linear * linear - 4.0 * square * constant
        # the small root, in the form that does not lose its digits when beta is nearly 0
        below = -linear + math.sqrt(max(0.0, inside))
        return min(top, max(1.0, 2.0 * constant / below if below > 0.0 else top))

    def parameters(self) -> dict[str, float]:
        """Name its parameters."""
        return {"gamma": self.gamma, "alpha": self.alpha, "beta": self.beta}


@dataclass(frozen=True, slots=True)
class LinearFlat:
    """A straight line up to a ceiling: X(N) = min(slope N, ceiling).

    What a server with a fixed number of places does: it is ceiling / slope places wide, and not USL-shaped.

    >>> LinearFlat(slope=2.0, ceiling=16.0).peak(100.0).parallel
    8.0
    """

    slope: float
    ceiling: float

    @property
    def name(self) -> str:
        """Its name in reports."""
        return "linear-flat"

    def at(self, parallel: float) -> float:
        """Throughput at a degree of parallelism."""
        return min(self.slope * parallel, self.ceiling)

    def peak(self, limit: float) -> Peak:
        """Say where the line meets the ceiling, or where the levels end below it."""
        top = max(1.0, min(limit, self.ceiling / self.slope))
        rate = self.at(top)
        return Peak(top, rate, min(top, max(1.0, NINETY * rate / self.slope)), max(1.0, rate / self.slope))

    def parameters(self) -> dict[str, float]:
        """Name its parameters; `places` is how many calls the ceiling holds."""
        return {"slope": self.slope, "ceiling": self.ceiling, "places": self.ceiling / self.slope}
