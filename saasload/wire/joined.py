"""Put columns of texts side by side, row by row: Arrow joins a thousand rows in the time Python takes for ten."""

import functools
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_NULL_IS_EMPTY = pc.JoinOptions(null_handling="replace", null_replacement="")

Part = str | Any
"""A text that is the same in every row, or an array of texts; null adds nothing."""


@functools.lru_cache(maxsize=4096)
def _text(text: str) -> Any:
    return pa.scalar(text, pa.string())


def joined(parts: Iterable[Part], rows: int) -> Any:
    """Join the parts of each row into one text; the array has no nulls."""
    given = _packed(parts)
    if not any(isinstance(part, pa.Array) for part in given):
        given.append(pa.array([""] * rows, pa.string()))
    return pc.binary_join_element_wise(*given, _text(""), options=_NULL_IS_EMPTY)


def where_all(parts: Iterable[Part]) -> Any:
    """Join the parts of each row into one text, null where any of them is."""
    return pc.binary_join_element_wise(*_packed(parts), _text(""))


def bodies(texts: Any) -> list[bytes]:
    """Take the texts out as UTF-8."""
    found: list[bytes] = texts.view(pa.binary()).to_pylist()
    return found


def _packed(parts: Iterable[Part]) -> list[Any]:
    packed: list[Any] = []
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        if text:
            packed.append(_text(text))
            text = ""
        packed.append(part)
    if text:
        packed.append(_text(text))
    return packed
