"""`saasload.toml`: targets by name, so that nobody types an address twice."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from saasload.errors import ConfigError
from saasload.names import nearest
from saasload.profile import Strict

SETTINGS_FILE = "saasload.toml"
_ADDRESS = re.compile(
    r"localhost(/.*)?|\[[0-9a-f:]+\](:\d+)?(/.*)?|[\w.-]+:\d+(/.*)?|(\d+\.){3}\d+(/.*)?", re.IGNORECASE
)
"""What is an address but for its scheme."""


class Target(Strict):
    """One target: its address, its profile, and the environment variable its token is in."""

    url: str
    profile: str = "mock"
    token_env: str | None = None


class Settings(Strict):
    """What `saasload.toml` may say."""

    default_target: str | None = None
    targets: Mapping[str, Target] = {}


def load_settings(folder: Path) -> Settings:
    """Read `saasload.toml` in a folder; without one, nothing is set. Raises ConfigError with the key that is wrong."""
    path = folder / SETTINGS_FILE
    try:
        settings = Settings.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        message = f"{SETTINGS_FILE}: cannot be read: {(error.strerror or str(error)).lower()}"
        raise ConfigError(message) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{SETTINGS_FILE}: not valid TOML: {error}"
        raise ConfigError(message) from error
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = f"{SETTINGS_FILE}: {place}: {first['msg'].lower()}"
        raise ConfigError(message) from error
    if settings.default_target is not None:
        find_target(settings, settings.default_target)
    return settings


def find_target(settings: Settings, name: str) -> Target | None:
    """Find a target by name; an address is its own target, None. Raises ConfigError for a name nobody has set."""
    if "://" in name:
        return None
    if name not in settings.targets:
        known = nearest(name, settings.targets) if settings.targets else f"no targets are set in {SETTINGS_FILE}"
        if _ADDRESS.fullmatch(name):
            known = f"did you mean http://{name}?"
        message = f"target {name}: neither an address (http://…) nor a known name; {known}"
        raise ConfigError(message)
    return settings.targets[name]
