"""Write a scenario that plays like the target of finished runs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from saasload.errors import RunFolderError, UsageError
from saasload.experiments.calls import Calls, read_calls
from saasload.experiments.infer import Cost, Target, infer
from saasload.experiments.practice import read_scenario

FIRST_COMPANY = 1001
LEAST_CALLS = 20
MODES = ("insert", "batch", "xml")


@dataclass(frozen=True, slots=True)
class Calibration:
    """A target as inferred, and the scenario that was written of it."""

    target: Target
    runs: tuple[str, ...]
    calls: int
    text: str
    path: Path


def calibrate(folders: Sequence[Path], out: Path) -> Calibration:
    """Fit a scenario to the runs in these folders and write it; UsageError where they cannot tell."""
    _same_target(folders)
    runs = [_usable(folder) for folder in folders]
    target = infer(runs)
    names = tuple(folder.name for folder in folders)
    companies = sorted({company for run in runs for company in run.company.tolist()})
    calls = sum(int(run.answered.sum()) for run in runs)
    text = scenario_text(target, runs=names, companies=companies, calls=calls)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"-o {out}: cannot be written: {os.strerror(error.errno or 0).lower()}"
        raise RunFolderError(message) from error
    read_scenario(str(out))  # what we write, the mock must take
    return Calibration(target, names, calls, text, out)


def lines(found: Calibration) -> list[str]:
    """Say in lines what was found."""
    target = found.target
    words = [
        f"{found.path}: fitted to {found.calls:,} calls of {', '.join(found.runs)}",
        f"slots: {'' if target.saturated else 'at least '}{target.slots}; jitter {target.error:.1%}",
    ]
    for mode, cost in target.costs.items():
        known = "" if cost.split else " (all calls of one size: the two cannot be told apart)"
        words.append(f"{mode}: {cost.call_s:.4g} s a call and {cost.row_s:.4g} s a row{known}")
    if target.busy_coef or target.wait_coef:
        words.append(
            f"crowding: {target.busy_coef:.4g} a call in service, {target.wait_coef:.4g} a doubling of the queue"
        )
    words += [f"company {company}: {factor:.2f} times slower" for company, factor in target.slower.items()]
    if target.calls_per_minute is not None:
        words.append(f"limit: {target.calls_per_minute} calls a minute and company")
    return words


def find_run(runs: Path, name: str) -> Path:
    """Find a run's folder by its path or by its name in the runs folder."""
    for folder in (Path(name), runs / name):
        if folder.is_dir():
            return folder
    known = sorted(path.name for path in runs.glob("*") if path.is_dir()) if runs.is_dir() else []
    newest = f"the newest is {known[-1]}" if known else "there are none yet"
    message = f"{name}: no such run in {runs}; {newest}"
    raise UsageError(message)


def _usable(folder: Path) -> Calls:
    everything = read_calls(folder)
    strange = sorted(set(everything.mode.tolist()) - set(MODES))
    # whether rows in doubt are there is asked by reads, which stand outside queue and slots
    calls = everything.where(np.isin(everything.mode, MODES))
    if strange and not len(calls):
        message = f"{folder}: the mock does not play {', '.join(strange)}; it knows {', '.join(MODES)}"
        raise UsageError(message)
    good = int(calls.answered.sum())
    if good < LEAST_CALLS:
        message = f"{folder}: {good} calls were accepted there; a scenario needs {LEAST_CALLS} or more to be fitted to"
        raise UsageError(message)
    return calls


def _same_target(folders: Sequence[Path]) -> None:
    targets: dict[str, str] = {}
    for folder in folders:
        try:
            report = orjson.loads((folder / "report.json").read_bytes())
        except (OSError, ValueError):
            continue
        targets.setdefault(str(report.get("target", "")) if isinstance(report, dict) else "", folder.name)
    if len(targets) > 1:
        (one, first), (other, second) = list(targets.items())[:2]
        message = f"{first} went to {one} and {second} to {other}: one scenario is one target, give runs of one only"
        raise UsageError(message)


def scenario_text(target: Target, *, runs: Sequence[str], companies: Sequence[str], calls: int) -> str:
    """Write a scenario as TOML, with what is not known said in comments.

    Companies keep their numbers where these are whole and follow each other; else they are numbered anew.
    """
    first, numbers = _numbers(companies)
    lines = [
        f"# Fitted by saasload calibrate to {calls:,} calls of {', '.join(runs)}.",
        f"# Service times are {target.error:.1%} off the model in the mean; that is the jitter below.",
        f"description = {_quoted(f'fitted to {runs[0]}')}",
        f"companies = {len(companies)}",
        f"first_company = {first}",
        "",
    ]
    if target.calls_per_minute is not None:
        lines += [
            "# Calls that went through in the minutes that refused one.",
            "[limits]",
            f"calls_per_minute = {target.calls_per_minute}",
            "",
        ]
    lines.append("[latency]")
    if not target.saturated:
        lines.append(f"# No call ever waited: there are {target.slots} slots at least. Send more in parallel to know.")
    lines += [f"slots = {target.slots}", "per_company = 1"]
    lines += [
        f"busy_coef = {_number(target.busy_coef)}",
        f"wait_coef = {_number(target.wait_coef)}",
        f"jitter_sigma = {_number(target.error)}",
    ]
    for mode in MODES:
        if mode in target.costs:
            lines += _cost_lines(mode, target.costs[mode])
    for company, factor in target.slower.items():
        lines += ["", f"[company.{numbers[company]}]"]
        if str(numbers[company]) != company:
            lines[-1] += f"  # {company}"
        lines.append(f"slower = {_number(factor)}")
    return "\n".join(lines) + "\n"


def _cost_lines(mode: str, cost: Cost) -> list[str]:
    lines = []
    if not cost.split:
        lines.append(
            f"# All {mode} calls were of one size: what a call costs and what a row costs cannot be told apart."
        )
    return [*lines, f"{mode} = {{ call_s = {_number(cost.call_s)}, row_s = {_number(cost.row_s)} }}"]


def _numbers(companies: Sequence[str]) -> tuple[int, dict[str, int]]:
    if all(company.isdecimal() for company in companies):
        whole = sorted(int(company) for company in companies)
        if whole[0] >= 1 and whole[-1] - whole[0] + 1 == len(whole):
            return whole[0], {str(number): number for number in whole}
    return FIRST_COMPANY, {company: FIRST_COMPANY + place for place, company in enumerate(companies)}


def _number(value: float) -> str:
    """Write a float with four significant digits."""
    return repr(float(f"{value:.4g}"))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
