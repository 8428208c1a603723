"""Entries: records with lines that are created and never changed: journal entries and invoices."""

from collections.abc import Mapping

from lxml import etree

from mock_server.entities import ENTITIES, SETS, Entity, XmlSpec
from mock_server.ledger import Book
from mock_server.rows import Fields, leaves, typed
from mock_server.rules import Refusal
from mock_server.topics.document import Options
from mock_server.world import World
from mock_server.writes import Draft, check_deep

_NOWHERE = "00000000-0000-4000-8000-000000000000"
_DATES = ("InvoiceDate", "DueDate")
_JOURNAL = "70"
"""The journal of an invoice that names none."""


def draft_of(world: World, book: Book, record: etree._Element, options: Options) -> Draft | Refusal:
    """Check a record as what would be posted, its lines included; a code stands for an id."""
    entity, spec = book.entity, book.entity.xml
    if spec is None:
        return world.rules.not_found("Topic")
    row = _fields(world, book.company, entity, record, spec.paths)
    if isinstance(row, Refusal):
        return row
    if spec.kind == "invoice":
        row.setdefault("Journal", options.param("Journal") or _JOURNAL)
    elif "JournalCode" not in row and options.param("Journal"):
        row["JournalCode"] = options.param("Journal")
    name, line_name = next(iter(entity.lines.items()))
    lines: list[Fields] = []
    for element in record.findall(spec.line):
        line = _fields(world, book.company, ENTITIES[line_name], element, spec.line_paths)
        if isinstance(line, Refusal):
            return line
        lines.append(line)
    return check_deep(world, book, {**row, name: lines})


def ignored_dates(record: etree._Element, spec: XmlSpec) -> list[str]:
    """Return the dates of an invoice that an import takes no notice of."""
    return [name for name in _DATES if record.find(name) is not None] if spec.kind == "invoice" else []


def _fields(
    world: World, company: int, entity: Entity, element: etree._Element, paths: Mapping[str, str]
) -> Fields | Refusal:
    found: Fields = {}
    for path, text in leaves(element, ""):
        name = paths.get(path, "")
        field = entity.fields.get(name.lstrip("-"))
        if field is None or field.name in found:
            continue
        if field.refers:
            guid = _guid(world, company, field.refers, text)
            if guid is None:
                return world.rules.not_found(field.name)
            found[field.name] = guid
            continue
        value = typed(entity, field.name, text)
        found[field.name] = -value if name.startswith("-") and isinstance(value, float) else value
    return found


def _guid(world: World, company: int, other: str, code: str) -> str | None:
    """Return the id of what a code names."""
    book = world.ledger.book(company, SETS[other])
    number = book.index.get(code.strip())
    if number is not None and SETS[other].code:
        return book.guid(number)
    return None if world.scenario.check_references else _NOWHERE
