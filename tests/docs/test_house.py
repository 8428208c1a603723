"""Rules of the house that no linter knows."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import saasload

from .reading import CODE, ROOT, code_files, module_name, parsed, read, table, tracked

MAX_LINES, MAX_FUNCTION, MAX_PARAMETERS = 400, 50, 6

# A difference between platforms is a field of the profile: no platform, and no maker of one, occurs in the code.
PLATFORMS = re.compile(
    r"\b(?:SAP|Sage|Dynamics|Workday|Zoho|AFAS|Exact|eExact|Oracle|NAV|BC365)\b"
    r"|(?i:\b(?:exact ?online|exactonline|business ?central|dynamics ?365|microsoft|xero|quick ?books|sales ?force"
    r"|invantive|odoo|net ?suite|twinfield|fresh ?books|visma|datev|moneybird|snelstart|intuit)\b)"
)
# What looks like one and is none: a word at the start of a sentence, and OData's own namespaces.
NO_NAMES = re.compile(
    r"\bExact (?:bytes|numbers|decimals|sizes|counts|text|arithmetic|answers|widths?)\b|\bschemas\.microsoft\.com/ado/"
)

# Written in two pieces so that this file does not contain what it looks for.
PLACES = re.compile(
    "|".join(
        [
            r"(?<![\w.*/-])/" + r"root/",
            r"(?<![\w.*/-])/" + r"work/",
            r"(?<![\w.*/-])/" + r"home/\w+/",
            r"(?<![\w.*/-])/" + r"Users/\w+/",
            r"/tm" + r"p/v\d\b",
            r"\bpy" + r"pi\.(?:org|python\.org)\b",
            r"\bpython" + r"hosted\.org\b",
            r"\bregistry\.npm" + r"js\.org\b",
            r"\bregistry\.yarn" + r"pkg\.com\b",
            r"\bproxy\.gol" + r"ang\.org\b",
        ]
    )
)

# Words that the glossary gives up for a noun of ours, where they are somebody else's noun.
DISTRIBUTIONS = {"opentelemetry": "opentelemetry-api"}
"""Packages whose distribution has another name."""

THEIRS = {
    "HTTP's own words": {
        "client", "Client", "open_client", "client_cert", "client_key", "method", "status", "statuses", "http_status",
        "message", "message_of", "HttpPart", "http_parts", "part", "parts", "all_parts", "usual_parts", "part_path",
        "content_type",
    },
    "the XML upload's answer is a list of Messages": {"Message", "MessageReader"},
    "a CSV record, which may be several lines and need not be a row": {"Record", "record", "records", "first_record"},
    "Arrow's and a schema's types": {"type", "plain_type"},
    "an outcome's word is the row's status": {"RowStatus"},
    "a configuration file that is wrong, whichever": {"ConfigError", "config_folder"},
    "what an experiment or a calculation found": {"result", "CurveResult"},
    "a logarithm": {"log"},
    "wsgiref's name for it": {"log_message"},
    "processes that share the virtual runs": {"workers"},
    "Arrow's word for a slice of a batch": {"chunk_rows"},
    "what a window or a call is in, not where it is kept": {"WindowState", "state"},
}  # fmt: skip


def test_the_public_names_are_what_can_be_imported() -> None:
    """`__all__`, the rooms they live in, and what a type checker is told are one list."""
    told = {
        alias.name: node.module.removeprefix("saasload.")
        for node in ast.walk(parsed(ROOT / "saasload/__init__.py"))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("saasload.")
        for alias in node.names
    }

    assert saasload.__all__ == sorted(saasload._HOMES)
    assert told == saasload._HOMES
    for name, home in saasload._HOMES.items():
        found = getattr(saasload, name)
        assert found is getattr(import_module(f"saasload.{home}"), name)
        assert found.__doc__, name


def test_a_name_that_is_not_public_is_not_there() -> None:
    """An attribute error as of any module."""
    with pytest.raises(AttributeError, match="module 'saasload' has no attribute 'nope'"):
        getattr(saasload, "nope")  # noqa: B009 the name is wrong on purpose


def test_no_platform_occurs_in_the_code() -> None:
    """Nor in its comments, pages and data."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in code_files(*CODE, endings=(".py", ".toml", ".html", ".js", ".ts", ".tsx", ".css"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PLATFORMS.search(NO_NAMES.sub("", line))
    ]

    assert found == []


def test_the_tree_names_no_machine_and_no_registry() -> None:
    """A path of the machine it was written on, or an address packages came from, works nowhere else."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in tracked()
        for number, line in enumerate(path.read_bytes().decode("utf-8", errors="replace").splitlines(), 1)
        if (match := PLACES.search(line))
    ]

    assert found == []


def test_names_keep_to_the_glossary() -> None:
    """A word the glossary gives up names no public function, class, field or parameter, save what is `THEIRS`."""
    rows = table(read("docs/glossary.md"), "word")
    ours = {word for row in rows for word in re.split(r", | / ", row[0])}
    given_up = {word for row in rows for word in row[2].split(", ") if word} - ours
    allowed = set().union(*THEIRS.values())

    found = {
        f"{module_name(path)}:{line}: {name}"
        for path in code_files("saasload")
        for name, line in public_names(parsed(path))
        if name not in allowed and words(name) & given_up
    }

    assert found == set()


def test_the_exceptions_to_the_glossary_are_needed() -> None:
    """An exception for a name that is gone goes too."""
    names = {name for path in code_files("saasload") for name, _ in public_names(parsed(path))}

    assert set().union(*THEIRS.values()) - names == set()


def public_names(module: ast.Module) -> Iterator[tuple[str, int]]:
    """List the names a caller meets: functions and their parameters, classes and their fields."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_") and node.name != "__init__":
                continue
            yield node.name, node.lineno
            for argument in parameters(node):
                yield argument, node.lineno
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node.lineno
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield field.target.id, field.lineno


def words(name: str) -> set[str]:
    """Split a name into its words, and each plural into its singular as well.

    Both `fooBars` and `foo_bars` give foo, bar and bars.
    """
    found = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    return found | {word.removesuffix("es") for word in found} | {word.removesuffix("s") for word in found}


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Name what a function is called with."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [argument.arg for argument in given if argument.arg not in {"self", "cls"}]


@pytest.mark.parametrize("path", code_files(*CODE), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path: Path) -> None:
    """A command's parameters are its options, so of a command only the body counts."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES

    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        command = is_command(path, node)
        first = node.body[0].lineno if command else node.lineno
        assert (node.end_lineno or first) - first < MAX_FUNCTION, f"{node.name} is too long"
        assert command or len(parameters(node)) <= MAX_PARAMETERS, f"{node.name} has too many parameters"


def is_command(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell a command by its place and its example."""
    return path.parent.name == "cli" and "Example: " in (ast.get_docstring(node) or "")


@pytest.mark.parametrize("path", code_files(*CODE), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_says_what_it_is_for(path: Path) -> None:
    """In the first line of its docstring, as a sentence or a heading that ends."""
    first = (ast.get_docstring(parsed(path)) or "").partition("\n")[0]

    assert first.endswith((".", "?", ":", "!")), first


@pytest.mark.parametrize(
    ("folders", "extras"),
    [(("saasload", "mock_server"), None), (("tests", "noxfile.py"), ("dev",))],
    ids=["packages", "tests"],
)
def test_every_import_is_declared(folders: tuple[str, ...], extras: tuple[str, ...] | None) -> None:
    """The packages import what some install of them brings; the tests what `pip install '.[dev]'` brings."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    optional = project["optional-dependencies"]
    declared = {distribution(line) for line in project["dependencies"]}
    for extra in optional if extras is None else extras:
        declared |= everything_in(extra, optional)

    imported = {
        name: str(path.relative_to(ROOT))
        for path in code_files(*folders)
        for name in imports(parsed(path))
        if name not in sys.stdlib_module_names and name not in {"saasload", "mock_server", "tests", "bench"}
    }

    assert {
        name: path for name, path in imported.items() if DISTRIBUTIONS.get(name, name.replace("_", "-")) not in declared
    } == {}


def everything_in(extra: str, optional: dict[str, list[str]]) -> set[str]:
    """List what an extra brings, with the extras of ours that it names."""
    found = set()
    for line in optional[extra]:
        if line.startswith("saasload["):
            for other in re.split(r"[\[\],]", line)[1:-1]:
                found |= everything_in(other.strip(), optional)
        else:
            found.add(distribution(line))
    return found


def distribution(line: str) -> str:
    """Take the name out of a requirement."""
    return re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0].lower().replace("_", "-")


def imports(module: ast.Module) -> Iterator[str]:
    """List the packages a module imports, anywhere in it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
