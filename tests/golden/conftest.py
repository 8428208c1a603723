"""The option that rewrites what is expected: `pytest tests/golden --accept`, then look at the difference."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--accept`."""
    parser.addoption("--accept", action="store_true", help="rewrite the golden files with what is there now")


@pytest.fixture
def accepting(request: pytest.FixtureRequest) -> bool:
    """Whether what is there now is to be kept as expected."""
    return bool(request.config.getoption("--accept", default=False))


@pytest.fixture
def same_bytes(accepting: bool) -> Callable[[Path, bytes], None]:
    """Compare bytes with a file, or write it."""

    def compare(path: Path, found: bytes) -> None:
        if accepting:
            path.write_bytes(found)
        assert path.is_file(), f"{path} is missing: run with --accept and look at it"
        assert found == path.read_bytes()

    return compare


@pytest.fixture
def same_json(accepting: bool) -> Callable[[Path, Any], None]:
    """Compare plain data with a JSON file, or write it."""

    def compare(path: Path, found: Any) -> None:
        if accepting:
            path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run with --accept and look at it"
        assert found == json.loads(path.read_text(encoding="utf-8"))

    return compare
