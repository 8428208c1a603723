"""Rules: why a row is refused."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from mock_server.entities import EDM, Entity
from mock_server.rows import Fields, epoch_ms

Language = Literal["en", "nl"]

STREAM_ERROR = "Error processing request stream."

_TEXTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": {
            "mandatory": "Mandatory: {field}",
            "exists": "Data already exists: {field}",
            "entry-exists": "Already exists - Entry number {field}",
            "long": "Too long: {field} (maximum {cap})",
            "not-found": "Not found: {field}",
            "balance": "Must balance: {field}",
        },
        "nl": {
            "mandatory": "Verplicht: {field}",
            "exists": "Gegeven bestaat reeds: {field}",
            "entry-exists": "Bestaat reeds - Boekstuknummer {field}",
            "long": "Te lang: {field} (maximaal {cap})",
            "not-found": "Niet gevonden: {field}",
            "balance": "Moet in balans zijn: {field}",
        },
    }
)
_RANGES: Mapping[str, range] = MappingProxyType({
    "byte": range(256), "short": range(-(2**15), 2**15), "int": range(-(2**31), 2**31), "long": range(-(2**63), 2**63),
})  # fmt: skip


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
        """Choose the words, and the status of a broken rule: a missing field, an entry out of balance."""
        self._texts = _TEXTS[language]
        self._language = language
        self._mandatory_status = mandatory_status

    def missing(self, field: str) -> Refusal:
        """Refuse for want of a field."""
        return Refusal(self._mandatory_status, self._texts["mandatory"].format(field=field), self._language)

    def exists(self, field: str) -> Refusal:
        """Refuse a key that is taken; the platform answers 500 here."""
        return Refusal(500, self._texts["exists"].format(field=field), self._language)

    def entry_exists(self, number: str, journal: str) -> Refusal:
        """Refuse an entry number that its journal has already."""
        text = self._texts["entry-exists"].format(field=f"{number}, Journal {journal}")
        return Refusal(500, text, self._language)

    def not_found(self, field: str) -> Refusal:
        """Refuse a reference to nothing."""
        return Refusal(400, self._texts["not-found"].format(field=field), self._language)

    def unbalanced(self, field: str) -> Refusal:
        """Refuse lines that do not add up to zero."""
        return Refusal(self._mandatory_status, self._texts["balance"].format(field=field), self._language)

    def new(self, entity: Entity, row: Fields) -> Refusal | None:
        """Check a row that is to be created."""
        for field in entity.mandatory:
            value = row.get(field)
            if not value or (isinstance(value, str) and value.isspace()):
                return self.missing(field)
        if entity.one_of and not any(str(row.get(field) or "").strip() for field in entity.one_of):
            return self.missing(entity.one_of[-1])
        return self.changes(entity, row)

    def changes(self, entity: Entity, row: Fields) -> Refusal | None:
        """Check the fields that are there: names, types and lengths."""
        caps, usual = entity.caps, entity.usual
        for name, value in row.items():
            if value.__class__ is str:
                if len(value) <= caps.get(name, -1):
                    continue
            elif (name, value.__class__) in usual:
                continue
            refusal = self._unusual(entity, name, value)
            if refusal is not None:
                return refusal
        return None

    def too_long(self, field: str, cap: int) -> Refusal:
        """Refuse a text that does not fit."""
        return Refusal(400, self._texts["long"].format(field=field, cap=cap), self._language)

    def _unusual(self, entity: Entity, name: str, value: object) -> Refusal | None:
        if name in entity.lines:
            return None if value is None or isinstance(value, list | dict) else _wrong_type(name, "Collection")
        one = entity.fields.get(name)
        if one is None:
            text = f"The property name '{name[:60]}' specified for type '{entity.name}' is not valid."
            return Refusal(400, f"{STREAM_ERROR} {text}")
        if value is None:
            return None
        if one.kind == "text":
            return self.too_long(name, one.cap) if isinstance(value, str) else _wrong_type(name, "Edm.String")
        return None if _fits(one.kind, value) else _wrong_type(name, EDM[one.kind])


def adds_up(rows: Iterable[Fields], field: str) -> bool:
    """Say whether a field of the rows adds up to zero, to the cent."""
    total = Decimal(0)
    for row in rows:
        try:
            total += Decimal(str(row.get(field) or 0))
        except InvalidOperation:
            return False
    return total.is_finite() and abs(total) < Decimal("0.005")


def _fits(kind: str, value: object) -> bool:
    """Say whether a value that is not of the plainest class can still be read as a field's kind."""
    if value.__class__ is int:
        return kind == "double" or (kind in _RANGES and value in _RANGES[kind])
    if not isinstance(value, str):
        return False
    match kind:
        case "date":
            return _is_date(value)
        case "double":
            return _is_decimal(value)
        case "long":
            return value.removeprefix("-").isdecimal() and len(value) < 20
        case _:
            return kind == "guid"


@lru_cache(maxsize=4096)
def _is_date(text: str) -> bool:
    return epoch_ms(text) is not None


def _is_decimal(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _wrong_type(name: str, kind: str) -> Refusal:
    text = f"{STREAM_ERROR} The value of property '{name[:60]}' cannot be read as '{kind}'."
    return Refusal(400, text)
