"""The throughput chart as a PNG, for documents that take no SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saasload.experiments.curve import ModeCurve

COLOURS = ("#2f62c9", "#c2571a", "#15845c")


def write_png(path: Path, curves: Sequence[ModeCurve], *, title: str) -> None:
    """Draw means with intervals, both fits, and the N to use."""
    # the object interface: pyplot would keep the figure, and look for a display
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415 the same

    figure = Figure(figsize=(9.2, 4.6), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    for place, curve in enumerate(curves):
        _draw(axes, curve, COLOURS[place % len(COLOURS)])
    levels = sorted({level.parallel for curve in curves for level in curve.levels})
    axes.set_xscale("log", base=2)
    axes.set_xticks(levels, [str(level) for level in levels], fontsize=8)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("calls in parallel")
    axes.set_ylabel("rows an hour")
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    # no date and no version of the library: the same result is the same file
    figure.savefig(path, metadata={"Software": None})


def _draw(axes: Any, curve: ModeCurve, colour: str) -> None:
    advice = curve.advice
    parallel = np.array([level.parallel for level in curve.levels], dtype=np.float64)
    means = np.array([level.steady.value for level in curve.levels])
    below = means - np.array([level.steady.low for level in curve.levels])
    above = np.array([level.steady.high for level in curve.levels]) - means
    axes.errorbar(
        parallel, means, yerr=[np.maximum(below, 0.0), np.maximum(above, 0.0)], fmt="o", ms=5, color=colour, capsize=2,
        label=f"{curve.mode}: use {advice.recommended}",
    )  # fmt: skip
    places = np.geomspace(parallel[0], parallel[-1], 240)
    best, other = advice.fits.best.curve, advice.fits.other.curve
    axes.plot(places, [best.at(float(place)) for place in places], color=colour, lw=1.6)
    axes.plot(places, [other.at(float(place)) for place in places], color=colour, lw=1.1, ls=":", alpha=0.7)
    axes.axvspan(
        advice.ninety.value, max(advice.peak.value, advice.ninety.value * 1.01), color=colour, alpha=0.07, lw=0
    )
    axes.plot([advice.recommended], [best.at(advice.recommended)], "o", ms=11, mfc="none", color=colour)
