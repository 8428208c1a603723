"""The README, done: its commands run as they stand there, and its tables tell what is there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saasload.cli import main
from saasload.run.report import ExitCode
from saasload.sample import write_sample

from .reading import ROOT, blocks, code_in, read, saasload_lines, table, tracked

README = read("README.md")
FIRST, SECOND = (block.strip() for block in blocks(README, "console")[:2])
FRESH = "SAASLOAD_README"


def test_the_first_two_blocks_are_one_plain_line_each() -> None:
    """To be copied as they are: no prompt, no continuation, no placeholder."""
    for line in (FIRST, SECOND):
        assert "\n" not in line
        assert not re.search(r"^[$>#%]|\\$|…|\.\.\.|<", line)
        assert line.startswith("python3 -m venv .venv && ")


def test_the_first_command_loads_and_the_second_checks() -> None:
    """That order is what the text around them promises."""
    assert ".venv/bin/saasload push customers.parquet" in FIRST
    assert SECOND.endswith(".venv/bin/nox")


def test_ci_runs_the_second_command_word_for_word() -> None:
    """What contributors run is what the server runs."""
    assert SECOND in read(".ci/run").splitlines()
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_contributing_names_the_same_command() -> None:
    """One command, not two that drift apart."""
    assert blocks(read("CONTRIBUTING.md"), "console")[0].strip() == SECOND


@pytest.mark.timeout(900)
@pytest.mark.skipif(not (os.environ.get(FRESH) or os.environ.get("CI")), reason=f"a minute: set {FRESH}=1")
def test_the_first_command_works_on_a_fresh_copy(tmp_path: Path) -> None:
    """Word for word, in a new folder with a new virtual environment: every row is accepted."""
    skip_when_offline(tmp_path)
    fresh = tmp_path / "fresh"
    for path in tracked():
        target = fresh / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)

    ran = subprocess.run(
        ["bash", "-c", FIRST],  # noqa: S607 the bash on the path
        cwd=fresh, env=outside_of_this_environment(), capture_output=True, text=True,
        timeout=800, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert "10,000 read = 10,000 accepted + 0 rejected + 0 in doubt + 0 unsent" in ran.stderr
    (folder,) = (fresh / ".saasload/runs").iterdir()
    assert orjson.loads((folder / "report.json").read_bytes())["accepted"] == 10_000


def test_nox_needs_no_activated_environment() -> None:
    """The README calls nox by its path: the sessions run in its environment, whatever `python` the shell finds."""
    command = [sys.executable, "-m", "nox", "-s", "imports"]

    ran = subprocess.run(
        command, cwd=ROOT, env=outside_of_this_environment(), capture_output=True, text=True, timeout=100, check=False
    )

    assert ran.returncode == 0, ran.stderr


def skip_when_offline(folder: Path) -> None:
    """Skip where pip finds no index: that says nothing about the README."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder / "probe"), "hatchling"]
    probe = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if probe.returncode:
        reason = f"offline: pip cannot download: {probe.stderr.strip().splitlines()[-1:]}"
        pytest.skip(reason)


def outside_of_this_environment() -> dict[str, str]:
    """Give the environment of a new shell: nothing of the virtual environment that runs the tests."""
    venv_bin = str(Path(sys.prefix) / "bin")
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if part != venv_bin)
    dropped = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTEST_CURRENT_TEST"}
    return {**{name: value for name, value in os.environ.items() if name not in dropped}, "PATH": path}


LOCAL = [
    line
    for document, line in saasload_lines()
    if document == "README.md" and line.startswith("push ") and not {"--to", "--profile"} & set(line.split())
]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with the sample file that the README's commands load, made small."""
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path / "customers.parquet", rows=200, companies=100)
    return tmp_path


@pytest.mark.parametrize("line", sorted({*LOCAL}))
def test_commands_without_a_target_run(line: str, workplace: Path) -> None:
    """Each load in the README that needs no account comes out, on a small file."""
    code = main(shlex.split(line))

    assert code == 0
    (folder,) = (workplace / ".saasload/runs").iterdir()
    assert orjson.loads((folder / "report.json").read_bytes())["accepted"] == 200


def test_the_python_block_runs(workplace: Path) -> None:
    """As it stands, in a program of its own."""
    (block,) = blocks(README, "python")
    (workplace / "program.py").write_text(block)

    ran = subprocess.run(
        [sys.executable, "-W", "error", "program.py"], cwd=workplace, capture_output=True, text=True, timeout=100,
        check=False,
    )  # fmt: skip

    assert (ran.returncode, ran.stdout) == (0, "200 0 0 0\n"), ran.stderr


def test_the_settings_block_is_understood(tmp_path: Path) -> None:
    """The saasload.toml that the README shows is one that saasload reads."""
    from saasload.settings import find_target, load_settings  # noqa: PLC0415 only here

    (block,) = blocks(README, "toml")
    (tmp_path / "saasload.toml").write_text(block)

    settings = load_settings(tmp_path)

    assert settings.default_target is not None
    assert find_target(settings, settings.default_target) is not None


def test_the_table_of_files_is_what_a_run_leaves(workplace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run with accepted and rejected rows leaves these files in its folder, and no others."""
    (workplace / "rows.csv").write_text("company,Code,Name\n1001,1,A\n1001,2,\n")

    code = main(["push", "rows.csv", "--quiet"])

    assert (code, capfd.readouterr().err) == (1, "")
    (folder,) = (workplace / ".saasload/runs").iterdir()
    listed = {name for row in table(README, "file") for name in code_in(row[0])}
    assert {path.name for path in folder.iterdir()} == listed


def test_rejected_rows_can_be_corrected_and_pushed_again(workplace: Path) -> None:
    """What the table of files promises: the columns that tell why are not taken for fields."""
    (workplace / "rows.csv").write_text("company,Code,Name\n1001,1,A\n1001,1,B\n")
    push = ["push", "--mode", "insert", "--quiet"]
    main([*push, "rows.csv", "--run", "first"])
    rejected = pq.read_table(workplace / ".saasload/runs/first/rejected.parquet")
    corrected = rejected.set_column(rejected.schema.get_field_index("Code"), "Code", pa.array(["2"]))
    pq.write_table(corrected, workplace / "corrected.parquet")

    again = main([*push, "corrected.parquet", "--run", "again"])

    report = orjson.loads((workplace / ".saasload/runs/again/report.json").read_bytes())
    assert (again, report["accepted"], report["reasons"]) == (0, 1, {})


def test_the_table_of_exit_codes_is_the_enum() -> None:
    """Each code once, in order."""
    listed = [int(code) for row in table(README, "exit code") for code in row[0].split(",")]

    assert listed == [int(code) for code in ExitCode]
