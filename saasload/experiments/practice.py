"""The bundled mock, as the separate program it is: as an application in this process, or as a child.

saasload and mock_server share no code (docs/decisions/0004), and no import here says otherwise: the mock is found at
run time by the dotted names below, as any other program's entry point would be. Only this room knows them.
"""

import contextlib
import select
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import orjson

from saasload.errors import TargetError, UsageError
from saasload.transport import App

PROGRAM = "mock_server"
"""What `python -m` runs."""
APP_FACTORY = "mock_server.app:create_app"
"""(scenario, *, epoch0_s) -> ASGI application that takes its time from the running loop."""
SCENARIO_READER = "mock_server.scenario:load_scenario"
"""(name or path) -> scenario, with `limits`, `seed` and `model_copy(update=…)`."""
SCENARIO_ERROR = "mock_server.scenario:ScenarioError"
"""What the reader raises, with one line."""

START_S = 20.0


def read_scenario(name: str) -> Any:
    """Read a scenario by name or from a file; UsageError with one line, and the nearest name, where that fails."""
    error_kind: type[Exception] = _find(SCENARIO_ERROR)
    try:
        return _find(SCENARIO_READER)(name)
    except error_kind as error:
        message = f"--scenario {error}"
        raise UsageError(message) from error


def has_limits(scenario: Any) -> bool:
    """Say whether calls may be refused for being too many."""
    return scenario.limits is not None


def make_app(name: str, *, seed: int | None, epoch_s: float) -> App:
    """Make a fresh mock in this process; with a `seed` its chance differs from the scenario's own."""
    scenario = read_scenario(name)
    if seed is not None:
        scenario = scenario.model_copy(update={"seed": seed})
    app: App = _find(APP_FACTORY)(scenario, epoch0_s=epoch_s)
    return app


@contextlib.contextmanager
def mock_child(name: str, *, seed: int | None, time_scale: float) -> Iterator[str]:
    """Run a fresh mock as a child on a free loopback port; give its address."""
    command = [sys.executable, "-m", PROGRAM, "--port", "0", "--announce", "--die-with-stdin",
               "--scenario", name, "--time-scale", str(time_scale)]  # fmt: skip
    if seed is not None:
        command += ["--seed", str(seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        try:
            yield _announced(child)
        finally:
            child.terminate()
            try:
                child.wait(5.0)
            except subprocess.TimeoutExpired:
                child.kill()


def _announced(child: "subprocess.Popen[bytes]") -> str:
    line = b""
    if child.stdout is not None and select.select([child.stdout], [], [], START_S)[0]:
        line = child.stdout.readline()
    try:
        return str(orjson.loads(line)["url"])
    except (ValueError, KeyError) as error:
        message = "the mock server did not start; run `saasload mock` to see why"
        raise TargetError(message) from error


def _find(dotted: str) -> Any:
    module, _, name = dotted.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        message = f"the bundled mock server cannot be found ({dotted}): {error}; use --clock real --to TARGET"
        raise UsageError(message) from error
