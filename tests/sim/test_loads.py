"""Loads in virtual time with the range each figure must fall in: a file a load, in `loads/`."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from saasload.testing import Simulation

LOADS = sorted((Path(__file__).parent / "loads").glob("*.toml"))


@pytest.mark.parametrize("path", LOADS, ids=lambda path: path.stem)
def test_a_load_stays_in_its_ranges(
    path: Path, simulate: Callable[..., Simulation], samples: Callable[..., Path]
) -> None:
    """Each figure that a load's file expects is in its range, and the rows add up."""
    load = tomllib.loads(path.read_text(encoding="utf-8"))

    report = simulate(samples(**load["sample"]), load["scenario"], **load["job"]).report

    outside = {
        name: getattr(report, name)
        for name, (low, high) in load["expect"].items()
        if not low <= getattr(report, name) <= high
    }
    assert not outside
    assert report.read == report.accepted + report.rejected + report.in_doubt + report.unsent == load["sample"]["rows"]
