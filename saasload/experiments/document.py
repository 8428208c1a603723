"""Results as plain data for JSON and CSV: six significant digits and no time of day, so equal runs are equal bytes."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from saasload.experiments.advice import Advice
from saasload.experiments.curve import CurveResult, Level, ModeCurve
from saasload.experiments.fit import Fitted
from saasload.experiments.loads import Ran
from saasload.experiments.measure import RULE
from saasload.experiments.reproduce import Cell, Reproduction

DIGITS = 6
"""The last digits of a double differ between machines, as their mathematical libraries do."""


def to_json(document: Mapping[str, Any]) -> bytes:
    """Write a document."""
    return orjson.dumps(rounded(document), option=orjson.OPT_INDENT_2) + b"\n"


def rounded(value: Any) -> Any:
    """Round every float in a document to six significant digits.

    >>> rounded({"x": [1234567.8, 0.1 + 0.2]})
    {'x': [1234570.0, 0.3]}
    """
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [rounded(item) for item in value]
    return value


def curve_document(result: CurveResult) -> dict[str, Any]:
    """Put a curve's whole result into data."""
    plan = result.plan
    return {
        "experiment": "curve",
        "target": plan.to or f"scenario {plan.scenario}",
        "simulated": result.simulated,
        "clock": plan.clock,
        "time_scale": plan.time_scale if plan.clock == "real" and plan.to is None else 1.0,
        "profile": result.profile,
        "seed": plan.seed,
        "companies": plan.companies,
        "rows_a_company": plan.rows,
        "repeats": plan.repeats,
        "warm_up": RULE,
        "modes": [mode_document(curve) for curve in result.curves],
        "runs": [run_document(run) for run in result.runs],
    }


def mode_document(curve: ModeCurve) -> dict[str, Any]:
    """Put one mode's curve into data."""
    return {
        "mode": curve.mode,
        "rows_per_call": curve.rows_per_call,
        **advice_document(curve.advice),
        "levels": [level_document(level) for level in curve.levels],
    }


def advice_document(advice: Advice) -> dict[str, Any]:
    """Put both fits and the advice into data."""
    fits = advice.fits
    return {
        "recommended_parallel": advice.recommended,
        "why": advice.why,
        "best_model": fits.best.curve.name,
        "best_model_weight": fits.weight,
        "aicc_difference": fits.other.aicc - fits.best.aicc,
        "peak_parallel": asdict(advice.peak),
        "ninety_percent_parallel": asdict(advice.ninety),
        "knee_parallel": asdict(advice.knee),
        "peak_rows_per_hour": asdict(advice.rate),
        "models": {fitted.curve.name: _fitted(fitted) for fitted in (fits.usl, fits.flat)},
    }


def _fitted(fitted: Fitted) -> dict[str, Any]:
    return {**fitted.curve.parameters(), "relative_error": fitted.error, "aicc": fitted.aicc}


def level_document(level: Level) -> dict[str, Any]:
    """Put one level into data."""
    return {
        "parallel": level.parallel,
        "repeats": level.repeats,
        "calls": level.calls,
        "refused_calls": level.refused,
        "rows_per_hour": asdict(level.steady),
        "rows_per_hour_whole_run": level.whole,
        "response_s": asdict(level.response),
        "response_from_schedule_s": asdict(level.from_due),
        "warm_up_cut": level.cut,
        "client": None
        if level.client is None
        else {**asdict(level.client), "is_bottleneck": level.client.is_bottleneck},
    }


def run_document(run: Ran) -> dict[str, Any]:
    """Put one run into data."""
    load = run.load
    return {
        "mode": load.mode, "parallel": load.parallel, "repeat": load.repeat, "seed": load.seed,
        "calls": run.calls, "accepted_rows": run.accepted, "refused_calls": run.refused, "duration_s": run.duration_s,
        "rows_per_hour_whole_run": run.rows_per_hour, "rows_per_hour": run.steady_rows_per_hour,
    }  # fmt: skip


def reproduction_document(result: Reproduction) -> dict[str, Any]:
    """Put the table and its curve into data; a real clock's figures only where it was asked for."""
    document = {
        "experiment": "reproduce",
        "target": f"scenario {result.scenario}",
        "simulated": True,
        "clock": "virtual",
        "seed": result.seed,
        "fits": result.fits,
        "cells": [cell_document(cell) for cell in result.cells],
        "knee_within": {"low": 7.0, "high": 10.0, "fits": result.knee_fits},
        "slower_at_32_and_100_than_at_10": result.slower_beyond,
        "warm_up": RULE,
        "curve": mode_document(result.curve),
    }
    if result.agreement is not None:
        document["real_clock"] = {
            **asdict(result.agreement), "deviation": result.agreement.deviation, "fits": result.agreement.fits
        }  # fmt: skip
    return document


def cell_document(cell: Cell) -> dict[str, Any]:
    """Put one cell of the table into data."""
    test = cell.test
    return {
        "name": test.name, "statement": test.statement, "parallel": test.parallel, "companies": test.companies,
        "rows": test.rows, "calls": cell.calls, "known": cell.known, "published_s": list(test.published_s),
        "published_rows_per_hour": test.published_rows_per_hour, "reproduced_s": list(cell.runs_s),
        "reproduced_mean_s": cell.mean_s, "reproduced_rows_per_hour": cell.rows_per_hour,
        "deviation": cell.deviation, "fits": cell.fits,
    }  # fmt: skip


def levels_csv(curves: Sequence[ModeCurve]) -> str:
    """Write all levels as CSV, a line a mode and level."""
    lines = [{"mode": curve.mode, **_flat(level_document(level))} for curve in curves for level in curve.levels]
    return _csv(lines)


def cells_csv(cells: Sequence[Cell]) -> str:
    """Write the published table as CSV, a line a test."""
    lines = []
    for cell in cells:
        line = cell_document(cell)
        for name in ("published_s", "reproduced_s"):
            line[name] = " ".join(f"{seconds:.1f}" for seconds in line[name])
        lines.append(line)
    return _csv(lines)


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """Join the names of nested figures with a dot; a client without figures has none."""
    flat: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{inner}": item for inner, item in value.items()})
        elif value is not None:
            flat[name] = value
    return flat


def _csv(lines: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rounded(lines))
    return out.getvalue()
