"""Each command explains itself, costs nothing to ask, and stands in the README."""

import re
import shlex
import subprocess
import sys

import pytest

from mock_server.__main__ import _parser as mock_parser

from .reading import ROOT, blocks, code_in, commands, documents, group, read, saasload_lines, table

HEAVY = ("pyarrow", "aiohttp", "uvicorn", "duckdb", "httpx", "matplotlib", "ssl")
ASK = """
import io, sys
from saasload.cli.app import main
sys.stdout = io.StringIO()
code = main(sys.argv[1:])
sys.__stdout__.write(",".join(sorted({name.split(".")[0] for name in sys.modules} & set(HEAVY))))
sys.exit(code)
""".replace("HEAVY", repr(HEAVY))
# Programs whose options are not ours: what follows them on a line, or between backticks, is theirs.
OTHERS = re.compile(
    r"\b(?:pip|nox|git|pytest|mypy|ruff|uv|npm|curl|docker|python3? -m (?!saasload)\w+)\b.*?(?=`|&&|\n)"
)


def test_every_command_shows_an_example() -> None:
    """In the help text, as a line of its own that begins with the command."""
    without = [
        name
        for name, command in commands().items()
        if not re.search(rf"^\s*Example: saasload {name}\b", command.help or "", flags=re.MULTILINE)
    ]

    assert without == []


def test_every_option_has_a_help_text() -> None:
    """An option without words is an option nobody can use."""
    without = [
        f"{name} {parameter.opts[0]}"
        for name, command in commands().items()
        for parameter in command.params
        if not getattr(parameter, "help", None)
    ]

    assert without == []


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_example_is_understood(name: str) -> None:
    """The real parser takes the example that the help shows."""
    example = next(line for line in commands()[name].help.splitlines() if line.strip().startswith("Example:"))

    parse(example.split("Example: saasload ", 1)[1])


def test_the_readme_lists_the_commands() -> None:
    """All of them, and no others, in the table of commands."""
    listed = {words.split()[1] for row in table(read("README.md"), "command") for words in code_in(row[0])}

    assert listed == set(commands())


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_options_in_documents_exist(path: "object") -> None:
    """Each --option that a document names is one of some command's, or the mock server's."""
    text = OTHERS.sub("", getattr(path, "read_text")(encoding="utf-8"))  # noqa: B009 parametrize passes it untyped

    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))

    assert named - known_options() == set()


def known_options() -> set[str]:
    """Collect the options of all commands and of the mock server."""
    parameters = [*group().params, *(parameter for command in commands().values() for parameter in command.params)]
    ours = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    return {*ours, *mock_parser()._option_string_actions, "--help"}


def parse(line: str) -> None:
    """Parse a command line as the program would, without running it."""
    words = shlex.split(line)
    top = group()
    with top.make_context("saasload", list(words)) as context:
        name, command, rest = top.resolve_command(context, list(words))
        with command.make_context(name, rest, parent=context):
            pass
    if words[0] == "mock":
        mock_parser().parse_args([word for word in words[1:] if word != "--"])


@pytest.mark.parametrize(("document", "line"), saasload_lines())
def test_command_lines_in_documents_are_understood(document: str, line: str) -> None:
    """The real parser takes each command, option and value."""
    parse(line)


def test_the_parser_tells_a_wrong_option() -> None:
    """What the tests above rely on."""
    with pytest.raises(Exception, match="--paralel"):
        parse("push customers.parquet --paralel 3")


@pytest.mark.parametrize("name", ["", *sorted(set(commands()) - {"mock"})])  # mock's help is another program's
def test_help_is_quick(name: str) -> None:
    """It runs, says something, and imports neither Arrow nor an HTTP engine."""
    command = [sys.executable, "-c", ASK, *([name] if name else []), "--help"]

    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_the_readme_has_console_blocks() -> None:
    """So that the tests over them are not empty."""
    assert len(blocks(read("README.md"), "console")) >= 3
    assert len(saasload_lines()) >= 6
