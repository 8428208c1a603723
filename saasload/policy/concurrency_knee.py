"""Where the knee is: how many calls in flight a target serves without queueing them.

A target with K places serves n calls in flight in S seconds each while n <= K, and queues the rest beyond:
by Little's law a round trip then takes S * n / K. In logs that is a hinge, flat and then rising with slope 1:

    ln rtt = s + max(0, ln n - k),    s = ln S, k = ln K

The corner is found by weighted least squares over what was heard at different n. Logs make jitter additive
and the fit scale-free: the unit of time cancels out, and one call of ten times the length is no disaster.
"""

import math
from dataclasses import dataclass
from enum import Enum

MERGE = 1.12
"""Numbers in flight within this ratio share a bin: a fit then costs the same at 10 in flight as at 1,000."""

FAINT = 0.4
"""A bin with less weight than this is dropped: that old it says nothing about the target of today."""

PRIOR_VARIANCE = 0.03
PRIOR_WEIGHT = 6.0
"""Jitter assumed before any was seen (a sigma of 0.17), and the number of replies that this is worth."""

DIRECTION = 0.5
"""How much better than a line that rises all the way a hinge must fit, in variances: little, for to see no flat
part where there is one costs throughput."""

TIE = 1e-6
"""Scatters this close are equal: a corner on a bin fits as well with the bin on either side, and the last bits of a
float must not choose."""


class Shape(Enum):
    """What the round trips look like over the calls in flight."""

    UNKNOWN = "unknown"
    """Too little was tried to tell."""
    FLAT = "flat"
    """No queue: the knee is at the highest number tried, or beyond."""
    RISING = "rising"
    """All queue: the knee is at the lowest number tried, or below."""
    KNEE = "knee"


@dataclass(frozen=True, slots=True)
class Fit:
    """The hinge: log of the service time, log of the knee with its standard error, and the range it rests on."""

    shape: Shape
    service: float
    knee: float
    error: float
    variance: float
    lowest: float
    highest: float

    def level(self, at: float) -> float:
        """Return the log round trip expected with `exp(at)` calls in flight."""
        return self.service + max(0.0, at - self.knee)


@dataclass(slots=True)
class _Bin:
    """Weighted sums of ln n, of the log round trip, and of its square."""

    weight: float = 0.0
    at: float = 0.0
    level: float = 0.0
    square: float = 0.0


class Knee:
    """Log round trips by calls in flight, old ones fading."""

    def __init__(self, ceiling: int) -> None:
        """Know nothing, of up to `ceiling` calls in flight."""
        self._logs = [math.log(max(1, n)) for n in range(ceiling + 1)]
        self._places = [round(log / math.log(MERGE)) if n > 8 else n for n, log in enumerate(self._logs)]
        self._bins: dict[int, _Bin] = {}

    def add(self, in_flight: int, level: float) -> None:
        """Hear one log round trip."""
        place = self._places[in_flight]
        held = self._bins.get(place)
        if held is None:
            held = self._bins[place] = _Bin()
        held.weight += 1.0
        held.at += self._logs[in_flight]
        held.level += level
        held.square += level * level

    def log(self, in_flight: int) -> float:
        """Return ln n, from a table."""
        return self._logs[in_flight]

    def fade(self, share: float) -> None:
        """Let all that was heard weigh less."""
        for place, held in list(self._bins.items()):
            held.weight *= share
            held.at *= share
            held.level *= share
            held.square *= share
            if held.weight < FAINT:
                del self._bins[place]

    def forget(self) -> None:
        """Start again."""
        self._bins.clear()

    def fit(self, evidence: float) -> Fit | None:
        """Find the corner; None where nothing was heard.

        A hinge must explain more than a flat line by `evidence` variances. Two standard errors would be 4, but
        the corner is looked for everywhere.

        One pass over the bins by n: for each split into a flat and a rising part the best hinge is closed form.
        """
        bins = [self._bins[place] for place in sorted(self._bins)]
        if not bins:
            return None
        low, high = _Line(), _Line()
        for held in bins:
            high.add(held, 1.0)
        everything = _Line()
        for held in bins:
            everything.add(held, 0.0)
        flat, rising = everything.scatter(everything.mean), high.scatter(high.mean)
        best, knee, service, error = math.inf, 0.0, 0.0, 1.0
        for place in range(len(bins) - 1):
            low.add(bins[place], 0.0)
            high.take(bins[place], 1.0)
            before, behind = bins[place].at / bins[place].weight, bins[place + 1].at / bins[place + 1].weight
            corner = min(max(low.mean - high.mean, before), behind)
            mean = (low.level + high.level + corner * high.weight) / (low.weight + high.weight)
            scatter = low.scatter(mean) + high.scatter(mean - corner)
            if scatter < (1 - TIE) * best:
                best, knee, service = scatter, corner, mean
                error = 1 / low.weight + 1 / high.weight
        return _judge(bins, everything, (flat, rising, best), (knee, service, error), evidence)


@dataclass(slots=True)
class _Line:
    """Sums over bins of the log round trip less `slope` times ln n: what is left is one constant."""

    weight: float = 0.0
    level: float = 0.0
    square: float = 0.0

    @property
    def mean(self) -> float:
        return self.level / self.weight

    def add(self, held: _Bin, slope: float, sign: float = 1.0) -> None:
        shift = slope * held.at / held.weight
        self.weight += sign * held.weight
        self.level += sign * (held.level - shift * held.weight)
        self.square += sign * (held.square - 2 * shift * held.level + shift * shift * held.weight)

    def take(self, held: _Bin, slope: float) -> None:
        self.add(held, slope, -1.0)

    def scatter(self, about: float) -> float:
        """Return the sum of squares about a constant."""
        return max(0.0, self.square - 2 * about * self.level + about * about * self.weight)


def _judge(
    bins: list[_Bin],
    everything: _Line,
    scatters: tuple[float, float, float],
    hinge: tuple[float, float, float],
    evidence: float,
) -> Fit:
    """Take the hinge where it explains clearly more than either straight line, else the better of the two."""
    flat, rising, bent = scatters
    knee, service, error = hinge
    least = min(flat, rising, bent)
    variance = (least + PRIOR_WEIGHT * PRIOR_VARIANCE) / (everything.weight + PRIOR_WEIGHT)
    lowest, highest = bins[0].at / bins[0].weight, bins[-1].at / bins[-1].weight
    need = evidence * variance
    if bent + need < flat and bent + DIRECTION * variance < rising:
        shape = Shape.KNEE
    elif abs(flat - rising) < need:
        shape = Shape.UNKNOWN
    elif flat < rising:
        shape, knee, service = Shape.FLAT, highest, everything.mean
    else:
        shape, knee = Shape.RISING, lowest
        service = everything.mean - sum(held.at for held in bins) / everything.weight + lowest
    if shape is Shape.UNKNOWN and len(bins) == 1:
        knee, service = highest, everything.mean
    if shape is not Shape.KNEE:
        error = 1 / everything.weight
    return Fit(shape, service, knee, math.sqrt(variance * error), variance, lowest, highest)
