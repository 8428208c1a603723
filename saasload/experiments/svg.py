"""Charts as inline SVG: coloured by the page's own variables, so that they follow light and dark."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from saasload.experiments.curve import Level, ModeCurve

WIDTH, HEIGHT = 920, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 22, 54
STEPS = 240


@dataclass(frozen=True, slots=True)
class Frame:
    """Where data land: parallelism by its logarithm, the figure itself from 0 to `top`."""

    levels: tuple[int, ...]
    top: float

    def x(self, parallel: float) -> float:
        """Place a degree of parallelism."""
        low, high = math.log2(self.levels[0]), math.log2(self.levels[-1])
        share = (math.log2(max(parallel, 1e-9)) - low) / ((high - low) or 1.0)
        return LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Place a figure."""
        return HEIGHT - BOTTOM - min(1.0, max(0.0, value / self.top)) * (HEIGHT - TOP - BOTTOM)


def nice_top(value: float) -> float:
    """Return a round number a little above a figure.

    >>> nice_top(204_933.0), nice_top(0.31)
    (250000.0, 0.4)
    """
    power = 10.0 ** math.floor(math.log10(max(value, 1e-9)))
    step = next(step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value * 1.02 or step == 10)
    return float(f"{step * power:.6g}")


def throughput_chart(curves: Sequence[ModeCurve]) -> str:
    """Draw rows an hour over parallelism: means with intervals, both fits, and the N to use."""
    levels = tuple(sorted({level.parallel for curve in curves for level in curve.levels}))
    frame = Frame(levels, nice_top(max(level.steady.high for curve in curves for level in curve.levels)))
    parts = [_axes(frame, "rows an hour", lambda value: f"{value:,.0f}")]
    for place, curve in enumerate(curves):
        parts.append(_curve(frame, curve, place))
    return _wrap("Throughput by degree of parallelism", parts)


def response_chart(curve: ModeCurve, place: int) -> str:
    """Draw one mode's response times over parallelism: p50, p95, p99, and p99 from the schedule."""
    levels = tuple(level.parallel for level in curve.levels)
    worst = max(max(level.response.p99, level.from_due.p99) for level in curve.levels)
    frame = Frame(levels, nice_top(worst))
    lines: tuple[tuple[str, Callable[[Level], float]], ...] = (
        ("p50", lambda level: level.response.p50),
        ("p95", lambda level: level.response.p95),
        ("p99", lambda level: level.response.p99),
        ("p99 due", lambda level: level.from_due.p99),
    )
    parts = [_axes(frame, "seconds a call", lambda value: f"{value:,.3g}")]
    for number, (name, read) in enumerate(lines):
        points = [(frame.x(level.parallel), frame.y(read(level))) for level in curve.levels]
        words = [f"{name} with {level.parallel} parallel: {read(level):,.3g} s" for level in curve.levels]
        parts.append(_line(points, f"s{place} r{number}"))
        parts += [_dot(point, word, f"d{place}", 2.6) for point, word in zip(points, words, strict=True)]
    return _wrap(f"Response times of {curve.mode}", parts)


def _curve(frame: Frame, curve: ModeCurve, place: int) -> str:
    advice = curve.advice
    parts = [_model(frame, advice.fits.other.curve.at, f"s{place} other")]
    parts.append(_model(frame, advice.fits.best.curve.at, f"s{place} best"))
    left, right = frame.x(advice.ninety.value), frame.x(advice.peak.value)
    width, height = max(1.5, right - left), HEIGHT - TOP - BOTTOM
    word = f"{curve.mode}: from 90 % of the peak to the peak"
    band = f'x="{left:.1f}" y="{TOP}" width="{width:.1f}" height="{height}"'
    parts.insert(0, f'<rect class="band b{place}" {band}><title>{word}</title></rect>')
    for level in curve.levels:
        x = frame.x(level.parallel)
        low, high = frame.y(level.steady.low), frame.y(level.steady.high)
        word = (
            f"{curve.mode}, {level.parallel} parallel: {level.steady.value:,.0f} rows an hour "
            f"({level.steady.low:,.0f} to {level.steady.high:,.0f})"
        )
        parts.append(f'<line class="s{place} bar" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
        parts.append(_dot((x, frame.y(level.steady.value)), word, f"d{place}", 4.2))
    x, y = frame.x(advice.recommended), frame.y(advice.fits.best.curve.at(advice.recommended))
    parts.append(f'<circle class="s{place} pick" cx="{x:.1f}" cy="{y:.1f}" r="9"><title>{curve.mode}: use '
                 f"{advice.recommended}</title></circle>")  # fmt: skip
    at = f'x="{LEFT + 30}" y="{TOP + 24 + 20 * place}"'
    parts.append(f'<text class="t{place} label" {at}>{curve.mode}: use {advice.recommended}</text>')
    parts.append(f'<circle class="d{place}" cx="{LEFT + 18}" cy="{TOP + 20 + 20 * place}" r="4.2"/>')
    return "".join(parts)


def _model(frame: Frame, at: Callable[[float], float], kind: str) -> str:
    low, high = math.log2(frame.levels[0]), math.log2(frame.levels[-1])
    places = [2 ** (low + (high - low) * step / STEPS) for step in range(STEPS + 1)]
    return _line([(frame.x(place), frame.y(at(place))) for place in places], kind)


def _axes(frame: Frame, unit: str, word: Callable[[float], str]) -> str:
    parts = []
    for step in range(6):
        value = frame.top * step / 5
        y = frame.y(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{word(value)}</text>')
    last = -math.inf
    for level in frame.levels:
        x = frame.x(level)
        if x - last >= 22:
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{level}</text>'
            )
            last = x
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="unit" x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">calls in parallel</text>')
    parts.append(f'<text class="unit" x="{LEFT - 66}" y="{TOP - 8}">{unit}</text>')
    return "".join(parts)


def _line(points: Sequence[tuple[float, float]], kind: str) -> str:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="line {kind}" d="{path}"/>'


def _dot(point: tuple[float, float], word: str, kind: str, radius: float) -> str:
    return f'<circle class="{kind}" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="{radius}"><title>{word}</title></circle>'


def _wrap(name: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{"".join(parts)}</svg>'
