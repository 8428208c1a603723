"""Rules: why a row is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from mock_server.rows import (
    BOOLEANS,
    BYTES,
    CHILDREN,
    DATES,
    DOUBLES,
    GUIDS,
    INTEGERS,
    KNOWN,
    TEXT_CAPS,
    Fields,
    epoch_ms,
)

Language = Literal["en", "nl"]

STREAM_ERROR = "Error processing request stream."

_TEXTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": {
            "mandatory": "Mandatory: {field}",
            "exists": "Data already exists: {field}",
            "long": "Too long: {field} (maximum {cap})",
            "not-found": "Not found: {field}",
            "division": "Forbidden",
        },
        "nl": {
            "mandatory": "Verplicht: {field}",
            "exists": "Gegeven bestaat reeds: {field}",
            "long": "Te lang: {field} (maximaal {cap})",
            "not-found": "Niet gevonden: {field}",
            "division": "Verboden",
        },
    }
)


_KINDS: Mapping[str, str] = MappingProxyType({
    name: kind
    for kind, names in {
        "Edm.Guid": GUIDS, "Edm.Boolean": BOOLEANS, "Edm.Byte": BYTES, "Edm.Double": DOUBLES, "Edm.Int32": INTEGERS,
        "Edm.DateTime": DATES, "Collection": CHILDREN,
    }.items()
    for name in names
})  # fmt: skip
_CLASSES: Mapping[str, tuple[type, ...]] = MappingProxyType({
    "Edm.Boolean": (bool,), "Edm.Byte": (int,), "Edm.Double": (int, float), "Edm.Int32": (int,), "Collection": (list,),
})  # fmt: skip
_CAPS = dict(TEXT_CAPS)
_USUAL = frozenset((name, one) for name, kind in _KINDS.items() for one in _CLASSES.get(kind, ()))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a row is not booked, with the status REST answers."""

    status: int
    text: str
    language: str = "en"


class Rules:
    """Checks rows, and words what is wrong with them."""

    __slots__ = ("_language", "_mandatory_status", "_texts")

    def __init__(self, *, language: Language, mandatory_status: int) -> None:
        """Choose the words and the status of a missing field."""
        self._texts = _TEXTS[language]
        self._language = language
        self._mandatory_status = mandatory_status

    def missing(self, field: str) -> Refusal:
        """Refuse for want of a field."""
        return Refusal(self._mandatory_status, self._texts["mandatory"].format(field=field), self._language)

    def exists(self, field: str) -> Refusal:
        """Refuse a key that is taken; the platform answers 500 here."""
        return Refusal(500, self._texts["exists"].format(field=field), self._language)

    def not_found(self, field: str) -> Refusal:
        """Refuse a reference to nothing."""
        return Refusal(400, self._texts["not-found"].format(field=field), self._language)

    def new(self, row: Fields) -> Refusal | None:
        """Check a row that is to be created."""
        name = row.get("Name")
        if name is None or name == "" or (isinstance(name, str) and not name.strip()):
            return self.missing("Name")
        return self.changes(row)

    def changes(self, row: Fields) -> Refusal | None:
        """Check the fields that are there: names, types and lengths."""
        caps, usual = _CAPS, _USUAL
        for name, value in row.items():
            if value.__class__ is str:
                if len(value) <= caps.get(name, -1):
                    continue
            elif (name, value.__class__) in usual:
                continue
            refusal = self._unusual(name, value)
            if refusal is not None:
                return refusal
        return None

    def too_long(self, field: str, cap: int) -> Refusal:
        """Refuse a text that does not fit."""
        return Refusal(400, self._texts["long"].format(field=field, cap=cap), self._language)

    def _unusual(self, name: str, value: object) -> Refusal | None:
        if name not in KNOWN:
            return Refusal(
                400, f"{STREAM_ERROR} The property name '{name[:60]}' specified for type 'Account' is not valid."
            )
        if value is None:
            return None
        if name in TEXT_CAPS:
            if not isinstance(value, str):
                return _wrong_type(name, "Edm.String")
            return self.too_long(name, TEXT_CAPS[name])
        kind = _KINDS[name]
        return None if _fits(kind, value) else _wrong_type(name, kind)


def _fits(kind: str, value: object) -> bool:
    if not isinstance(value, str):
        return False  # what fits without being text is usual
    match kind:
        case "Edm.DateTime":
            return _is_date(value)
        case "Edm.Double":
            return _is_decimal(value)
        case _:
            return kind == "Edm.Guid"


@lru_cache(maxsize=4096)
def _is_date(text: str) -> bool:
    return epoch_ms(text) is not None


def _is_decimal(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _wrong_type(name: str, kind: str) -> Refusal:
    text = f"{STREAM_ERROR} The value of property '{name[:60]}' cannot be read as '{kind}'."
    return Refusal(400, text)
