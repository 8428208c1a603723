"""The examples in docstrings."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from .reading import CODE, ROOT, code_files, module_name

WITH_EXAMPLES = [path for path in code_files(*CODE) if ">>> " in path.read_text(encoding="utf-8")]


def test_there_are_examples() -> None:
    """So that the test over them is not empty."""
    assert len(WITH_EXAMPLES) > 10


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_in_docstrings_hold(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each gives what it says, wherever it is run."""
    monkeypatch.chdir(tmp_path)

    failed, tried = doctest.testmod(import_module(module_name(path)))

    assert tried
    assert not failed
    assert list(tmp_path.iterdir()) == []
