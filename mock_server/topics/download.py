"""Downloads: what is booked as one XML document, in pages by the time of the last change."""

from collections.abc import Iterable, Iterator

from lxml import etree

from mock_server.entities import ENTITIES, SETS, Entity, XmlSpec
from mock_server.ledger import Book
from mock_server.replies import XML, Asked, Reply, Work, error
from mock_server.rows import Fields
from mock_server.topics.document import read_options
from mock_server.world import World


def prepare(world: World, asked: Asked) -> Reply | Work:
    """Understand a download."""
    if asked.method not in {"GET", "POST", "HEAD"}:
        return Reply(405, b"", headers=[(b"allow", b"GET, POST")])
    options = read_options(asked.query)
    entity, company = options.entity, options.company
    if entity is None or company is None:
        return error(400, f"Not found: Topic {options.topic[:40]}")
    if options.after < 0:
        return error(400, "Invalid: TSPaging")
    return Work("read", 0, 0, lambda: download(world, world.ledger.book(company, entity),
                                               after=options.after, code=options.param("Code")))  # fmt: skip


def download(world: World, book: Book, *, after: int, code: str) -> Reply:
    """Return the next page of a book, and where the one after it begins."""
    spec = book.entity.xml
    if spec is None:
        return error(400, "Not found: Topic")
    root = etree.Element(world.scenario.xml_root or "Export")
    topic = etree.SubElement(root, spec.topic)
    if code:
        number = book.index.get(code.strip())
        numbers = [] if number is None else [number]
    else:
        numbers = book.since(after, spec.page_rows)
    for number in numbers:
        topic.append(_record(world, book, spec, number))
    last = book.version(numbers[-1]) if numbers else after
    topics = etree.SubElement(root, "Topics")
    etree.SubElement(topics, "Topic", code=spec.topic, ts_d=f"0x{last:016X}", count=str(len(numbers)),
                     pagesize=str(spec.page_rows))  # fmt: skip
    etree.SubElement(root, "Messages")
    return Reply(200, etree.tostring(root, encoding="utf-8", xml_declaration=True), XML)


def _record(world: World, book: Book, spec: XmlSpec, number: int) -> etree._Element:
    """Return a row as a record: what came as XML as it came, anything else field by field."""
    row, entity = book.rows[number], book.entity
    if row.startswith(b"<"):
        record = etree.fromstring(row, etree.XMLParser(resolve_entities=False, no_network=True))
    else:
        record = _element(world, book, spec.record, book.fields(number) | _codes(book, number), spec.paths.items())
        for line in entity.lines.values():
            own = world.ledger.book(book.company, ENTITIES[line])
            for place in own.lines_of(number):
                record.append(_element(world, own, spec.line, own.fields(place), spec.line_paths.items()))
    if entity.code == ("Code",):
        record.set("code", book.codes[number])
    record.set("ID", f"{{{book.guid(number)}}}")
    return record


def _codes(book: Book, number: int) -> Fields:
    return {} if book.entity.code == ("Code",) else book.code_fields(number)


def _element(world: World, book: Book, tag: str, fields: Fields, paths: Iterable[tuple[str, str]]) -> etree._Element:
    element = etree.Element(tag)
    for path, text in _texts(world, book, fields, paths):
        steps, _, attribute = path.partition("@")
        place = element
        for step in filter(None, steps.split("/")):
            inner = place.find(step)
            place = etree.SubElement(place, step) if inner is None else inner
        if attribute:
            place.set(attribute, text)
        else:
            place.text = text
    return element


def _texts(world: World, book: Book, fields: Fields, paths: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each field that has one."""
    written: set[str] = set()
    for path, name in [*paths, *((key[4:], key) for key in fields if key.startswith("xml:"))]:
        value = fields.get(name)
        if value is None or name in written:
            continue
        written.add(name)
        yield path, _text(world, book.company, book.entity, name, value)


def _text(world: World, company: int, entity: Entity, name: str, value: object) -> str:
    field = entity.fields.get(name)
    if field is not None and field.refers:
        other = world.ledger.book(company, SETS[field.refers])
        number = other.number(str(value))
        return "" if number is None else other.codes[number]
    if isinstance(value, bool):
        return "1" if value else "0"
    text = str(value)
    if field is not None and field.kind == "date":
        return text.partition("T")[0]
    return "".join(mark for mark in text if mark.isprintable() or mark in "\n\t")
