"""Targets by name, and what is an address."""

import pytest

from saasload.errors import ConfigError
from saasload.settings import Settings, find_target


@pytest.mark.parametrize("name", ["localhost", "localhost:8000", "127.0.0.1", "[::1]:8000", "books.example:443/v1"])
def test_an_address_without_its_scheme_is_shown_with_one(name: str) -> None:
    """It is what was meant, also where other names are set."""
    settings = Settings.model_validate({"targets": {"prod": {"url": "https://books.example"}}})

    with pytest.raises(ConfigError) as caught:
        find_target(settings, name)

    assert str(caught.value).endswith(f"; did you mean http://{name}?")


@pytest.mark.parametrize("name", ["prdo", "prod-1", "prod.eu"])
def test_a_name_is_compared_with_names(name: str) -> None:
    """No port, so no address."""
    settings = Settings.model_validate({"targets": {"prod": {"url": "https://books.example"}}})

    with pytest.raises(ConfigError, match=r"did you mean prod\?$"):
        find_target(settings, name)
