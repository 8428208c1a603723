"""Rows: the fields of what is stored, as JSON and as XML write them."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

import orjson
from lxml import etree

from mock_server.entities import Entity

Fields = dict[str, object]

_EPOCH = re.compile(r"/Date\((-?\d{1,15})\)/")
_FORGIVING = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)


@lru_cache(maxsize=32)
def xml_caps(entity: Entity) -> dict[str, int]:
    """Return the longest text at each XML path that has a limit."""
    paths = {} if entity.xml is None else entity.xml.paths
    return {path: entity.caps[name] for path, name in paths.items() if name in entity.caps}


@lru_cache(maxsize=32)
def _ignored(entity: Entity) -> frozenset[str]:
    """Return the paths that are no field of their own: identity, and what tells addresses apart."""
    return frozenset({"@ID", "Address@type", "Address@default", "Address@ID"}) | ({"@code"} if entity.code else set())


def read_row(entity: Entity, row: bytes) -> Fields:
    """Read the fields of a stored row; its first byte tells JSON from XML."""
    if row.startswith(b"<"):
        return xml_fields(entity, etree.fromstring(row, _FORGIVING))
    unkept = entity.unkept
    return {name: value for name, value in orjson.loads(row).items() if name not in unkept}


def xml_fields(entity: Entity, record: etree._Element) -> Fields:
    """Read the fields of an XML record, without code and id.

    A path that no field stands at is kept as it is, with `xml:` before it.
    """
    paths = {} if entity.xml is None else entity.xml.paths
    ignored = _ignored(entity)
    found: Fields = {}
    for path, text in leaves(record, ""):
        name = paths.get(path, f"xml:{path}")
        if path not in ignored and name not in found:
            found[name] = typed(entity, name, text)
    return found


def leaves(element: etree._Element, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield each text and attribute of a record with the path to it."""
    for key, value in element.items():
        yield f"{prefix}@{_text(key)}", _text(value)
    text = (element.text or "").strip()
    if prefix and (text or (not len(element) and not element.attrib)):
        yield prefix, text
    for child in element:
        if isinstance(child.tag, str):
            yield from leaves(child, f"{prefix}/{child.tag}" if prefix else child.tag)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def typed(entity: Entity, name: str, text: str) -> object:
    """Return the text of an XML leaf as the value that its field holds."""
    one = entity.fields.get(name)
    match "text" if one is None else one.kind:
        case "bool":
            return text.lower() in {"1", "true"}
        case "byte" | "short" | "int" | "long":
            return int(text) if text.isdecimal() and len(text) < 10 else int(text.lower() == "true")
        case "double":
            return as_number(text)
        case "date":
            return text if "T" in text else f"{text}T00:00:00"
        case _:
            return text


def as_number(value: object) -> object:
    """Return a text as the number it writes, anything else as it is."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def epoch_ms(text: object) -> int | None:
    """Read a date, ISO or as replies write it, as milliseconds since 1970 UTC; None where it is none.

    >>> epoch_ms("2014-02-12T00:00:00")
    1392163200000
    """
    found = _EPOCH.fullmatch(str(text))
    if found is not None:
        return int(found[1])
    try:
        moment = datetime.fromisoformat(str(text))
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def shown(entity: Entity, name: str, value: object) -> object:
    """Return a field's value as JSON replies write it."""
    one = entity.fields.get(name)
    if value is None or one is None:
        return value
    if one.padded:
        return str(value).ljust(one.cap)
    if one.kind == "date":
        ms = epoch_ms(value)
        return value if ms is None else f"/Date({ms})/"
    return as_number(value) if one.kind == "double" else value
