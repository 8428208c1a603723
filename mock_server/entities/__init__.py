"""Entities: what the platform keeps, as data read from the files beside this one.

A file is a service. A table in it is an entity: `set` (its name in addresses), `key` (the field that holds the
id), `code` (the fields of its natural key, the last of which is assigned where it is an omitted number),
`mandatory`, `one_of` (at least one of these), `methods`, `lines` (properties that hold other entities), `parent`
(of a line: the field with the id of what it belongs to), `balanced` (a field of the lines that adds up to zero),
`defaults`, `fields` and `xml`. A field is its kind, for a text its longest length or for a guid the set it refers
to, and `padded` (with blanks to the right) or `read-only`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

EDM: Mapping[str, str] = MappingProxyType({
    "text": "Edm.String", "guid": "Edm.Guid", "bool": "Edm.Boolean", "byte": "Edm.Byte", "short": "Edm.Int16",
    "int": "Edm.Int32", "long": "Edm.Int64", "double": "Edm.Double", "date": "Edm.DateTime",
    "collection": "Collection",
})  # fmt: skip
"""The type that each kind of field has outside."""

_CLASSES: Mapping[str, tuple[type, ...]] = MappingProxyType({
    "bool": (bool,), "double": (float,), "collection": (list,),
})  # fmt: skip
_METHODS = ("GET", "POST", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class Field:
    """One property: `cap` is a text's longest length, `refers` the set whose id it holds."""

    name: str
    kind: str
    cap: int = 0
    refers: str = ""
    padded: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class XmlSpec:
    """How the entity stands in XML: topic, record, and the field at each path."""

    topic: str
    record: str
    page_rows: int
    kind: str = "upsert"
    paths: Mapping[str, str] = field(default_factory=dict)
    mandatory: tuple[str, ...] = ()
    line: str = ""
    line_paths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Entity:
    """What one kind of thing is made of."""

    name: str
    service: str
    set: str
    key: str
    fields: Mapping[str, Field]
    code: tuple[str, ...] = ()
    code_width: int = 0
    mandatory: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    methods: tuple[str, ...] = _METHODS
    lines: Mapping[str, str] = field(default_factory=dict)
    parent: str = ""
    balanced: str = ""
    defaults: Mapping[str, object] = field(default_factory=dict)
    xml: XmlSpec | None = None
    type_name: str = field(init=False)
    resource: str = field(init=False)
    known: frozenset[str] = field(init=False)
    """Every property, lines included."""
    shown: tuple[str, ...] = field(init=False)
    """The properties of a whole entity, in their order."""
    caps: Mapping[str, int] = field(init=False)
    """Text fields and their longest length in characters."""
    usual: frozenset[tuple[str, type]] = field(init=False)
    """Each field with each class of value that fits it without a closer look."""
    read_only: frozenset[str] = field(init=False)
    """Fields that only the platform fills."""
    refers: tuple[tuple[str, str], ...] = field(init=False)
    """Fields that hold the id of something that must exist, with its set."""
    unkept: frozenset[str] = field(init=False)
    """Fields that stand elsewhere than in a stored row."""
    is_flat: bool = field(init=False)
    """Whether a row can be checked by itself, and kept as it came."""

    def __post_init__(self) -> None:
        """Derive what is asked for all the time, and is the same all the time."""
        fields = self.fields.values()
        fits = {(one.name, kind) for one in fields for kind in _CLASSES.get(one.kind, ())}
        derived: dict[str, object] = {
            "type_name": f"Platform.Models.{self.name}",
            "resource": f"{self.service}/{self.set}",
            "known": frozenset(self.fields) | frozenset(self.lines),
            "shown": tuple(sorted(self.fields)),
            "caps": {one.name: one.cap for one in fields if one.kind == "text"},
            "usual": frozenset(fits) | frozenset((name, list) for name in self.lines),
            "read_only": frozenset(one.name for one in fields if one.read_only),
            "refers": tuple((one.name, one.refers) for one in fields if one.refers),
        }
        derived["unkept"] = frozenset(one.name for one in fields if one.read_only) | frozenset(self.code)
        derived["is_flat"] = len(self.code) == 1 and not (self.lines or self.one_of or derived["refers"])
        for name, value in derived.items():
            object.__setattr__(self, name, value)


def _read_folder() -> dict[str, Entity]:
    found: dict[str, Entity] = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            found[name] = _read(name, path.stem, table)
    return found


def _read(name: str, service: str, table: dict[str, Any]) -> Entity:
    plain: dict[str, Any] = {
        key: tuple(table[key]) for key in ("code", "mandatory", "one_of", "methods") if key in table
    }
    plain |= {key: table[key] for key in ("code_width", "lines", "parent", "balanced", "defaults") if key in table}
    xml = table.get("xml")
    return Entity(
        name=name, service=service, set=table["set"], key=table["key"],
        fields={one: _field(one, text) for one, text in table["fields"].items()},
        xml=XmlSpec(**{**xml, "mandatory": tuple(xml.get("mandatory", ()))}) if xml else None, **plain,
    )  # fmt: skip


def _field(name: str, text: str) -> Field:
    kind, *rest = text.split()
    flags = frozenset(rest)
    cap = next((int(word) for word in rest if word.isdecimal()), 0)
    refers = rest[0] if kind == "guid" and rest and rest[0] != "read-only" else ""
    return Field(name, kind, cap, refers, "padded" in flags, "read-only" in flags)


ENTITIES: Mapping[str, Entity] = MappingProxyType(_read_folder())
"""Every entity by its own name."""

RESOURCES: Mapping[str, Entity] = MappingProxyType({entity.resource: entity for entity in ENTITIES.values()})
"""Every entity by service and set, as addresses name it."""

SETS: Mapping[str, Entity] = MappingProxyType(
    {entity.set: entity for entity in ENTITIES.values() if "POST" in entity.methods}
)
"""What is kept in books, by its set."""

TOPICS: Mapping[str, Entity] = MappingProxyType(
    {entity.xml.topic: entity for entity in ENTITIES.values() if entity.xml is not None}
)
"""What travels as XML, by its topic."""

ACCOUNT = ENTITIES["Account"]
