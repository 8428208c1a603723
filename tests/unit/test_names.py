"""The nearest name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.names import nearest


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("Acount", ["Account", "Item"], "did you mean Account?"),
        ("ACCOUNT", ["Account", "Item"], "did you mean Account?"),
        ("account", ["Account", "Accounts"], "did you mean Account?"),
        ("zzz", ["b", "a"], "known: a, b"),
        ("zzz", [], "none are known"),
    ],
)
def test_the_nearest_name_is_suggested(name: str, known: list[str], words: str) -> None:
    """In its own spelling; without one near, all are listed in order."""
    assert nearest(name, known) == words


@given(st.text(max_size=5), st.lists(st.text(max_size=5), max_size=4))
def test_any_name_gets_words(name: str, known: list[str]) -> None:
    """Whatever was typed."""
    words = nearest(name, iter(known))

    assert words.startswith("none are" if not known else ("did you mean ", "known: "))
