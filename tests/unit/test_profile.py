"""Profiles as checked data."""

from pathlib import Path

import pytest

from saasload.errors import ConfigError
from saasload.profile import PlatformProfile, config_folder, load_profile, profile_names

GOOD = """
name = "own"
[companies]
path = "/companies"
[entities.Account]
modes = ["insert"]
key = "Code"
[entities.Account.insert]
path = "/{company}/Accounts"
[entities.Account.fields]
Code = { max_length = 18 }
"""


def load_text(folder: Path, text: str) -> PlatformProfile:
    """Load a profile of this text."""
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return load_profile(str(path))


def message_for(folder: Path, text: str) -> str:
    """Load a profile that cannot be; its message is one line."""
    with pytest.raises(ConfigError) as raised:
        load_text(folder, text)
    message = str(raised.value)
    assert "\n" not in message
    assert "own.toml: " in message
    return message


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_that_is_shipped_loads(name: str) -> None:
    """Each under its own name, each entity with a way to travel."""
    profile = load_profile(name)

    assert profile.name == name
    assert profile.entities
    for entity in profile.entities.values():
        assert all(getattr(entity, mode) is not None for mode in entity.modes)


def test_a_profile_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    """Defaults are filled in."""
    profile = load_text(tmp_path, GOOD)

    assert profile.entity("Account").fields["Code"].max_length == 18
    assert profile.answers.not_executed == (429, 503)
    assert profile.limits == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "own"', "", "name: field required"),
        ('name = "own"', 'name = "own"\nnme = 1', "nme: extra inputs are not permitted"),
        ('key = "Code"', 'key = "Cod"', "entities.Account: key Cod is not one of the fields"),
        ('["insert"]', '["insert", "xml"]', "entities.Account: mode xml is listed in modes but has no [xml] table"),
        ('["insert"]', "[]", "entities.Account.modes: "),
        ('["insert"]', '["post"]', "entities.Account.modes.0: input should be 'insert', 'batch' or 'xml'"),
        (
            "max_length = 18",
            "max_length = 0",
            "entities.Account.fields.Code.max_length: input should be greater than 0",
        ),
        ("max_length = 18", 'type = "number"', "entities.Account.fields.Code.type: input should be 'text'"),
        ("[companies]", "keepalive_s = 0\n[companies]", "keepalive_s: input should be greater than 0"),
        ("[companies]", '[[limits]]\nscope = "app"\ncalls = 0\nperiod_s = 60\n[companies]', "limits.0.calls: "),
        ("[companies]", '[[limits]]\nscope = "all"\ncalls = 1\nperiod_s = 60\n[companies]', "limits.0.scope: "),
        (
            "[companies]",
            '[answers]\nbusiness_errors = [{text="ab", reason="x"}]\n[companies]',
            "answers.business_errors.0.text: ",
        ),
        ('name = "own"', "name = own", "not valid TOML: "),
    ],
)
def test_a_wrong_profile_is_told_by_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    """One line for a person."""
    assert message in message_for(tmp_path, GOOD.replace(old, new))


def test_the_number_of_other_mistakes_is_told(tmp_path: Path) -> None:
    """The first in full, the rest as a count."""
    assert message_for(tmp_path, GOOD.replace('name = "own"', "a = 1\nb = 2")).endswith("(and 2 more)")


@pytest.mark.parametrize("content", [b"\xff\xfe", b'name = "caf\xe9"'])
def test_a_file_that_is_not_utf8_is_told(tmp_path: Path, content: bytes) -> None:
    """It is no TOML."""
    path = tmp_path / "own.toml"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match=r"own\.toml: not valid TOML"):
        load_profile(str(path))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With the reason of the system."""
    with pytest.raises(ConfigError, match=r"^profile .*own\.toml: no such file$"):
        load_profile(str(tmp_path / "own.toml"))


def test_an_unknown_profile_gets_the_nearest_name() -> None:
    """Or the list of those there are."""
    with pytest.raises(ConfigError, match=r"^profile mokc: not known; did you mean mock\?$"):
        load_profile("mokc")
    with pytest.raises(ConfigError, match=r"^profile zzz: not known; known: .*mock"):
        load_profile("zzz")


def test_an_unknown_entity_gets_the_nearest_name() -> None:
    """The profile is named too."""
    with pytest.raises(ConfigError, match=r"^entity Acount: not in profile mock; did you mean Account\?$"):
        load_profile("mock").entity("Acount")


def test_a_profile_extends_another_key_by_key(tmp_path: Path) -> None:
    """Tables are merged, anything else is replaced."""
    (tmp_path / "base.toml").write_text(GOOD + "Name = { required = true }\n", encoding="utf-8")
    profile = load_text(
        tmp_path, 'extends = "base"\nname = "child"\n[entities.Account.fields]\nCode = { max_length = 5 }\n'
    )

    fields = profile.entity("Account").fields
    assert profile.name == "child"
    assert profile.companies.path == "/companies"
    assert (fields["Code"].max_length, fields["Name"].required) == (5, True)


def test_lists_are_replaced_not_joined() -> None:
    """A profile with its limits off has none."""
    assert load_profile("mock").limits
    assert load_profile("mock-unlimited").limits == ()


@pytest.mark.parametrize("base", ["nobody", "own"])
def test_extending_nothing_or_itself_is_told(tmp_path: Path, base: str) -> None:
    """With the name that is wrong."""
    assert f"extends {base}, which is " in message_for(tmp_path, f'extends = "{base}"')


def test_a_mistake_in_a_base_is_told_by_the_file_that_was_asked_for(tmp_path: Path) -> None:
    """Which is the one that somebody has just written."""
    (tmp_path / "base.toml").write_text(GOOD, encoding="utf-8")

    assert "own.toml: keepalive_s: " in message_for(tmp_path, 'extends = "base"\nkeepalive_s = -1')


def test_checked_data_does_not_change() -> None:
    """A profile is the same for all who hold it."""
    with pytest.raises(ValueError, match="frozen"):
        setattr(load_profile("mock"), "name", "other")  # noqa: B010 - what mypy would not let by


def test_configuration_is_found() -> None:
    """Beside the package or above it."""
    assert (config_folder() / "platforms" / "mock.toml").is_file()


def test_a_token_against_forgery_is_asked_for_as_is_usual_or_as_is_said(tmp_path: Path) -> None:
    """Only its address has no default; a header's name is one."""
    assert load_text(tmp_path, GOOD).csrf is None
    usual = load_text(tmp_path, GOOD + '[csrf]\npath = "/{company}/"\n').csrf
    assert usual is not None
    assert (usual.header, usual.fetch, usual.required, usual.refused) == ("x-csrf-token", "Fetch", "Required", (403,))
    assert "csrf.path" in message_for(tmp_path, GOOD + "[csrf]\n")
    assert "csrf.header" in message_for(tmp_path, GOOD + '[csrf]\npath = "/"\nheader = "a b"\n')
