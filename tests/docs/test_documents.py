"""Documents agree with the tree, and with each other."""

import re
import tomllib
from pathlib import Path

import pytest

from mock_server.scenario import load_scenario, scenario_names
from saasload.profile import CsrfSpec, load_profile, profile_names

from .reading import ROOT, blocks, code_in, documents, read, table, tracked

LAYERS = next(
    contract
    for contract in tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
)["layers"]
CONFIGS = [path for path in tracked() if path.parts[len(ROOT.parts)] == "configs" and path.suffix == ".toml"]


def rooms(layer: str) -> set[str]:
    """List the rooms on one floor of the contract."""
    return {room.strip(" ()") for room in re.split(r"[|:]", layer)}


def test_the_table_of_layers_is_the_contract() -> None:
    """The same floors in the same order, counted down to 0, with the same rooms."""
    rows = table(read("docs/architecture.md"), "layer")

    assert [set(code_in(row[1])) for row in rows] == [rooms(layer) for layer in LAYERS]
    assert [int(row[0]) for row in rows] == list(reversed(range(len(LAYERS))))


def test_every_room_has_a_purpose_in_the_table() -> None:
    """One purpose a room, between dots."""
    for _, names, purposes in table(read("docs/architecture.md"), "layer"):
        assert len(purposes.split(" · ")) == len(code_in(names)), names


def test_every_module_is_a_room() -> None:
    """A module that stands in no contract may import what it likes."""
    found = {path.stem if path.is_file() else path.name for path in (ROOT / "saasload").iterdir() if is_module(path)}

    assert found == {room for layer in LAYERS for room in rooms(layer)}


def is_module(path: Path) -> bool:
    """Tell a room from what else lies in a package."""
    if path.is_dir():
        return (path / "__init__.py").exists()
    return path.suffix == ".py" and path.stem not in {"__init__", "__main__"}


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Relative links in a document name files of the tree, and headings that are there."""
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        found = (path.parent / name).resolve() if name else path
        assert found.exists(), f"{path.name}: {target}"
        if heading:
            assert heading in anchors(found), f"{path.name}: {target}"


def anchors(path: Path) -> set[str]:
    """Name a document's headings as links do."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_paths_in_contributing_exist() -> None:
    """A recipe that names a file which is not there helps nobody."""
    paths = [
        word
        for name in ("CONTRIBUTING.md", "docs/architecture.md", "README.md")
        for word in code_in(read(name))
        if re.fullmatch(r"(?:saasload|mock_server|configs|tests|docs|bench)/[\w./-]*", word)
    ]

    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_decisions_are_numbered_without_gaps() -> None:
    """From 0001 on, each beginning with its own number."""
    found = sorted((ROOT / "docs/decisions").glob("*.md"))

    assert [path.name[:4] for path in found] == [f"{number:04}" for number in range(1, len(found) + 1)]
    for path in found:
        assert path.read_text(encoding="utf-8").startswith(f"# {path.name[:4]} "), path.name


@pytest.mark.parametrize("name", profile_names())
def test_shipped_profiles_load(name: str) -> None:
    """Each bears the name of its file, and says in words what it is for."""
    profile = load_profile(name)

    assert profile.name == name
    assert profile.title


@pytest.mark.parametrize("name", scenario_names())
def test_shipped_scenarios_load(name: str) -> None:
    """Each bears the name of its file, and says in words what it plays."""
    scenario = load_scenario(name)

    assert scenario.name == name
    assert scenario.description


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_configuration_files_are_described(path: Path) -> None:
    """The first line says what the file is, as a comment or as its description."""
    first = path.read_text(encoding="utf-8").splitlines()[0]

    assert re.match(r'# \S|description = "\S', first), first


def test_the_profile_with_a_token_against_forgery_says_what_is_usual(tmp_path: Path) -> None:
    """The block that docs/profiles.md shows is a profile, and its values are the defaults."""
    (block,) = blocks(read("docs/profiles.md"), "toml")
    (tmp_path / "own.toml").write_text(block)

    csrf = load_profile(str(tmp_path / "own.toml")).csrf

    assert csrf == CsrfSpec(path="/api/v1/{company}/crm/")
