"""Scenarios are checked data, and say in one line what is wrong with them."""

from pathlib import Path

import pytest

from mock_server.scenario import Scenario, ScenarioError, load_scenario, parse_scenario, scenario_names


@pytest.mark.parametrize("name", scenario_names())
def test_each_scenario_that_comes_along_loads(name: str) -> None:
    """Every file of the folder is a scenario of its own name, with a description."""
    scenario = load_scenario(name)

    assert scenario.name == name
    assert scenario.description


def test_the_scenarios_that_documents_promise_are_there() -> None:
    """The names that others rely on."""
    promised = {
        "default", "seeds", "fast", "one-slow-company", "knee-4", "knee-24", "slows-down", "exact-limits", "no-batch",
        "half-batch", "lost-answers", "token-rotation", "maintenance", "rough", "shared-slots",
    }  # fmt: skip

    assert promised <= set(scenario_names())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seeed = 3", "x.toml:1: seeed: unknown key, did you mean seed?"),
        ("[latency]\nslotz = 3", "x.toml:2: latency.slotz: unknown key, did you mean slots?"),
        ("[latency.insert]\nrow_ms = 3", "x.toml:2: latency.insert.row_ms: unknown key, did you mean row_s?"),
        ("[company.1001]\nslow = 2.0", "x.toml:2: company.1001.slow: unknown key, did you mean slower?"),
        ('[[faults]]\nkind = "slow"\nevry = 2', "x.toml:3: faults.0.evry: unknown key, did you mean every?"),
        ("companies = 0", "x.toml:1: companies: input should be greater than 0"),
        ("seed = ", "x.toml:1: not TOML: "),
        ("\n[limits]\ncalls_per_minute = 0", "x.toml:3: limits.calls_per_minute: input should be greater than 0"),
        ("[limits]\nother_calls_per_minute = 60", "x.toml:2: limits.other_calls_per_minute: 60 of 60 calls a minute"),
        ('[[faults]]\nkind = "empty"', "x.toml:1: faults.0: hits each call for ever: no load can ever finish"),
        (
            '[[faults]]\nkind = "cut"\n[[faults]]\nkind = "slow"',
            "x.toml:3: faults.1: overlaps faults.0: both hit call 1",
        ),
        (
            '[[faults]]\nkind = "cut"\nevery = 4\n[[faults]]\nkind = "slow"\nevery = 6',
            "x.toml:4: faults.1: overlaps faults.0: both hit call 12",
        ),
        (
            '[[faults]]\nkind = "xml-fatal"\nendpoint = "batch"',
            "x.toml:3: faults.0.endpoint: xml-fatal can only hit xml",
        ),
        ('[[faults]]\nkind = "cut"\nfirst = 3\nlast = 2', "x.toml:4: faults.0.last: 2 is below first (3)"),
        (
            "[[slowdowns]]\nat_s = 1\nfactor = 2\n[[slowdowns]]\nat_s = 5\nfactor = 3",
            "x.toml:4: slowdowns.1: overlaps slowdowns.0 in time",
        ),
        ('[latency]\njitter = { kind = "uniform", low = 2.0 }', "x.toml:2: latency.jitter: high is not below low"),
        ('[latency]\njitter_sigma = 1.0\njitter = { kind = "pareto" }', "x.toml:1: latency: jitter and jitter_sigma"),
        ("[latency.by_company]\np99 = 0.5", "x.toml:1: latency.by_company: p99 is not below median"),
    ],
)
def test_a_wrong_scenario_is_refused_in_one_line(text: str, says: str) -> None:
    """The line has the file, the key and the nearest key."""
    with pytest.raises(ScenarioError) as failure:
        parse_scenario(text, source="x.toml", name="x")

    assert str(failure.value).startswith(says)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    "text",
    [
        '[[faults]]\nkind = "cut"\nlast = 4\n[[faults]]\nkind = "slow"\nfirst = 5',
        '[[faults]]\nkind = "cut"\nfor_s = 4\n[[faults]]\nkind = "slow"\nat_s = 4',
        '[[faults]]\nkind = "cut"\ncompany = 1001\n[[faults]]\nkind = "slow"\ncompany = 1002',
        '[[faults]]\nkind = "cut"\nendpoint = "xml"\n[[faults]]\nkind = "slow"\nendpoint = "batch"',
        '[[faults]]\nkind = "cut"\nprobability = 0.5\n[[faults]]\nkind = "slow"\nprobability = 0.5',
        '[[faults]]\nkind = "cut"\n[[faults]]\nkind = "slow"\non = false',
        '[[faults]]\nkind = "empty"\nlast = 5',
    ],
)
def test_faults_that_are_not_in_each_others_way_are_taken(text: str) -> None:
    """Other calls, another time, another company, another way to travel, chance, or switched off."""
    assert parse_scenario(text, source="x.toml", name="x").faults


def test_an_unknown_name_suggests_the_nearest() -> None:
    """A slip of a finger is answered with the name that was meant."""
    with pytest.raises(ScenarioError, match="fats: no such scenario, did you mean fast"):
        load_scenario("fats")


def test_a_scenario_is_read_from_a_file(tmp_path: Path) -> None:
    """A path works where a name does; the name is the file's."""
    path = tmp_path / "mine.toml"
    path.write_text("companies = 3\n")

    scenario = load_scenario(path)

    assert (scenario.name, scenario.companies) == ("mine", 3)


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(ScenarioError, match=r"gone\.toml: cannot be read: No such file"):
        load_scenario(tmp_path / "gone.toml")


def test_a_scenario_does_not_change() -> None:
    """What travels is frozen."""
    with pytest.raises(ValueError, match="frozen"):
        Scenario().seed = 3
