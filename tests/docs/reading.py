"""Read the documents, the tree and the commands: what the tests here compare with each other."""

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from saasload.cli.app import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md")
CODE = ("saasload", "mock_server")


def documents() -> list[Path]:
    """List the Markdown files that users and contributors read."""
    return sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern))


def read(name: str) -> str:
    """Read a file of the tree."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """List the fenced blocks in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def table(text: str, heading: str) -> list[list[str]]:
    """Read the rows of the table whose first heading is the one given."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.replace(" ", "").startswith(f"|{heading}|".replace(" ", "")):
            next(lines)
            return list(_rows(lines))
    raise AssertionError(f"no table begins with the column {heading!r}")


def _rows(lines: Iterator[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip().strip("|").split("|")]


def code_in(cell: str) -> list[str]:
    """List what stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def group() -> Any:
    """Make the command that holds all others."""
    return typer.main.get_command(app)


def commands() -> dict[str, Any]:
    """List the commands by name."""
    found: dict[str, Any] = group().commands
    return found


def saasload_lines() -> list[tuple[str, str]]:
    """List each `saasload …` command in the console blocks of the documents, with its document."""
    found = []
    for path in documents():
        for block in blocks(path.read_text(encoding="utf-8"), "console"):
            for part in re.split(r"&&|\n", block):
                words = shlex.split(part, comments=True)
                if words and Path(words[0]).name == "saasload":
                    found.append((path.name, shlex.join(words[1:])))
    return found


def tracked() -> list[Path]:
    """List the files that belong to the tree, new ones included; without git, those outside hidden folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 the git on the path
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        names = [str(path) for path in found if not any(hidden(part) for part in path.parts)]
    return sorted(path for name in names if (path := ROOT / name).is_file())


def hidden(part: str) -> bool:
    """Tell a folder of some tool, or what Python keeps."""
    return part == "__pycache__" or (part.startswith(".") and part not in {".ci", ".gitignore"})


def code_files(*folders: str, endings: tuple[str, ...] = (".py",)) -> list[Path]:
    """List the tree's files under these folders that have one of these endings."""
    return [
        path for path in tracked() if path.relative_to(ROOT).parts[0] in folders and path.name.endswith(endings)
    ]  # fmt: skip


def parsed(path: Path) -> ast.Module:
    """Parse a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def module_name(path: Path) -> str:
    """Name the module a file of the tree holds."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
