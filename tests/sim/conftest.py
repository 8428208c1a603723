"""Run the engine against the mock in one process, on one virtual clock."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mock_server.app import create_app
from mock_server.scenario import Scenario, load_scenario
from saasload import testing
from saasload.job import make_job
from saasload.sample import write_sample

MEMORY = Path("/dev/shm")  # noqa: S108 a mount, not a file of a known name
"""Where Linux keeps files in memory."""


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """Give a folder in memory where there is such a thing: no simulated load is about how fast a disk is."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., testing.Simulation]:
    """Give a function that loads a source into a scenario (by name, or made) in virtual time."""

    def run(source: Path, scenario: str | Scenario, **arguments: Any) -> testing.Simulation:
        made = load_scenario(scenario) if isinstance(scenario, str) else scenario
        app = create_app(made, epoch0_s=testing.EPOCH_S)
        job = make_job(**{"source": source, "runs": tmp_path / "runs", "seed": 1, **arguments})
        return testing.simulate(job, app)

    return run


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Give a function that makes a sample file once for all tests that want the same."""
    folder = tmp_path_factory.mktemp("samples")

    def make(**arguments: Any) -> Path:
        name = "-".join(f"{key}{value}" for key, value in sorted(arguments.items()))
        path = folder / f"{name}.parquet"
        if not path.exists():
            write_sample(path, **arguments)
        return path

    return make
