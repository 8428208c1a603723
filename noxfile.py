"""The checks, one command: `nox` runs all of them, `nox -s unit` the quick ones.

`tests` is `unit`, `sim`, `contract` and `docs` in one go: one start-up, and no core idle at the end of each.

They run in the environment nox itself is in: `pip install -e '.[dev]'` is all the setup there is.
"""

import os
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.error_on_missing_interpreters = True
nox.options.sessions = ["lint", "imports", "types", "tests"]

PARALLEL = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "load", "--maxschedchunk", "1")
"""Tests share nothing, so they run on all cores, in their order; one worker more fills the time others wait."""

LONGEST_FIRST = ("tests/docs", "tests/contract", "tests/sim", "tests/unit", "tests/golden")
README = {"SAASLOAD_README": "1"}
"""The README's first command too, in a fresh environment."""


def _python(session: nox.Session, *arguments: str, env: dict[str, str] | None = None) -> None:
    session.run(sys.executable, "-m", *arguments, env=env, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format."""
    _python(session, "ruff", "check", ".")
    _python(session, "ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    _python(session, "mypy")


@nox.session
def imports(session: nox.Session) -> None:
    """The house's floors: imports go down only."""
    session.run(str(Path(sys.executable).with_name("lint-imports")), external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests."""
    _python(session, "pytest", *LONGEST_FIRST, *PARALLEL, *session.posargs, env=README)


@nox.session
def unit(session: nox.Session) -> None:
    """No time, no I/O."""
    _python(session, "pytest", "tests/unit", "tests/golden", *PARALLEL, *session.posargs)


@nox.session
def sim(session: nox.Session) -> None:
    """Virtual time: engine against mock in one process."""
    _python(session, "pytest", "tests/sim", *PARALLEL, *session.posargs)


@nox.session
def contract(session: nox.Session) -> None:
    """Real sockets, files and processes."""
    _python(session, "pytest", "tests/contract", *PARALLEL, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """What documents claim, and the examples in docstrings."""
    _python(session, "pytest", "tests/docs", *PARALLEL, *session.posargs, env=README)
