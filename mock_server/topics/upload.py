"""Uploads: many records in one document, an answer for each."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from mock_server.entities import Entity, XmlSpec
from mock_server.ledger import Book
from mock_server.replies import XML, Asked, Reply, Work, error
from mock_server.rows import xml_caps, xml_fields
from mock_server.rules import Refusal
from mock_server.topics.document import Options, Upload, bare_guid, read_options, read_upload
from mock_server.topics.entries import draft_of, ignored_dates
from mock_server.world import World
from mock_server.writes import book_draft

ERROR, WARNING, SUCCESS, FATAL = range(4)
"""Types of messages."""

_Write = Callable[[str, str, str], str]
"""Writes the message of a success: id, code, text."""


def prepare(world: World, asked: Asked) -> Reply | Work:
    """Understand an upload; what is no upload gets 400, what is too large 413."""
    if asked.method != "POST":
        return Reply(405, b"", headers=[(b"allow", b"POST")])
    options = read_options(asked.query)
    entity = options.entity
    if entity is None or entity.xml is None or options.company is None:
        return error(400, f"Not found: Topic {options.topic[:40]}")
    upload = read_upload(asked.body, root_name=world.scenario.xml_root, spec=entity.xml, entity=entity)
    if isinstance(upload, Refusal):
        return error(upload.status, upload.text)
    cap = world.scenario.max_rows_per_upload
    if len(upload.records) > cap:
        return error(413, f"Too long: {entity.xml.topic} (maximum {cap})")
    book = world.ledger.book(options.company, entity)
    unchanged = 0
    if entity.xml.kind == "upsert" and not world.latency.is_free("xml"):
        unchanged = sum(1 for code, row in zip(upload.codes, upload.rows, strict=True) if _is_known(book, code, row))
    job = _Job(world, book, entity, entity.xml, upload, options, asked.twist)
    return Work("xml", len(upload.records) - unchanged, unchanged, job.carry_out)


@dataclass(slots=True)
class _Job:
    """One upload understood."""

    world: World
    book: Book
    entity: Entity
    spec: XmlSpec
    upload: Upload
    options: Options
    twist: str

    def carry_out(self) -> Reply:
        """Create or update each record, in the order of the document; a record refused stops no other."""
        upload = self.upload
        stop = len(upload.records) // 2 if self.twist == "xml-fatal" else len(upload.records)
        messages = [f'<?xml version="1.0" encoding="utf-8"?>\n<{upload.root}><Messages>\n']
        messages += self._upsert_all(stop) if self.spec.kind == "upsert" else self._create_all(stop)
        if self.twist == "xml-fatal":
            messages.append(self._message(FATAL, "", "", "Fatal: the import was stopped"))
        messages.append(f"</Messages></{upload.root}>\n")
        return Reply(200, "".join(messages).encode(), XML)

    def _upsert_all(self, stop: int) -> list[str]:
        messages: list[str] = []
        book, upload, message = self.book, self.upload, self._writer()
        index, rows, suspects, has_ids = book.index, book.rows, upload.suspects, upload.has_ids
        for place, (code, row) in enumerate(zip(upload.codes[:stop], upload.rows[:stop], strict=True)):
            if not code or has_ids or place in suspects:
                messages.append(self._with_care(place))
                continue
            number = index.get(code)
            if number is None:
                number = book.add(code, row)
                word = "Created"
            else:
                word = "Unchanged" if rows[number] == row else _update(book, number, upload.records[place])
            messages.append(message(book.guid(number), code, word))
        return messages

    def _create_all(self, stop: int) -> list[str]:
        messages: list[str] = []
        for record in self.upload.records[:stop]:
            asked = record.get("entry", "") or record.get("ordernumber", "")
            draft = draft_of(self.world, self.book, record, self.options)
            if isinstance(draft, Refusal):
                messages.append(self._message(ERROR, "", asked, draft.text))
                continue
            number = book_draft(self.world, self.book, draft)
            guid, code = self.book.guid(number), self.book.codes[number].rpartition("/")[2]
            messages += [
                self._message(WARNING, guid, code, f"Ignored: {name}") for name in ignored_dates(record, self.spec)
            ]
            messages.append(self._message(SUCCESS, guid, code, "Created"))
        return messages

    def _with_care(self, place: int) -> str:
        """Carry out a record that has an id, no code, or perhaps a text that breaks a rule."""
        record, code = self.upload.records[place], self.upload.codes[place]
        book, rules = self.book, self.world.rules
        guid = bare_guid(record.get("ID"))
        number = book.number(guid) if guid else book.index.get(code)
        if guid and number is None:
            return self._message(ERROR, "", code, rules.not_found("ID").text)
        fields = xml_fields(self.entity, record)
        if code:
            fields["Code"] = code
        known = {name: value for name, value in fields.items() if not name.startswith("xml:")}
        if number is not None and not code:
            known["Code"] = book.codes[number]
        named = number is None or any(name in fields for name in self.entity.mandatory if name != "Code")
        refusal = rules.new(self.entity, known) if named else rules.changes(self.entity, known)
        refusal = refusal or self._too_long(record)
        if refusal is not None:
            return self._message(ERROR, "", code, refusal.text)
        if number is None:
            code = code or book.free_code()
            return self._message(SUCCESS, book.guid(book.add(code, self.upload.rows[place])), code, "Created")
        return self._message(SUCCESS, book.guid(number), book.codes[number], _update(book, number, record))

    def _too_long(self, record: etree._Element) -> Refusal | None:
        """Check what stands twice in a record, of which only the first is kept."""
        for path, cap in xml_caps(self.entity).items():
            for element in record.findall(path.partition("@")[0] or "."):
                text = element.get(path.partition("@")[2]) if "@" in path else element.text
                if text and len(text.strip()) > cap:
                    return self.world.rules.too_long(path.rpartition("/")[2], cap)
        return None

    def _writer(self) -> _Write:
        if self.twist == "xml-no-data":
            return lambda guid, code, word: self._message(SUCCESS, guid, code, word)
        opening = f'<Message type="2"><Topic code="{self.spec.topic}" node="{self.spec.record}"><Data key="{{'
        tail = f"</Topic><Date>{self._date()}</Date><Description>"

        def write(guid: str, code: str, word: str) -> str:
            quoted = f'"{code}"' if code.isalnum() else quoteattr(code)
            return f'{opening}{guid}}}" keyAlt={quoted}/>{tail}{word}</Description></Message>\n'

        return write

    def _message(self, kind: int, guid: str, code: str, text: str) -> str:
        key = f' key="{{{guid}}}"' if guid else ""
        data = "" if self.twist == "xml-no-data" or kind == FATAL else f"<Data{key} keyAlt={quoteattr(code)}/>"
        return (
            f'<Message type="{kind}"><Topic code="{self.spec.topic}" node="{self.spec.record}">{data}</Topic>'
            f"<Date>{self._date()}</Date><Description>{escape(text)}</Description></Message>\n"
        )

    def _date(self) -> str:
        return datetime.fromtimestamp(self.world.clock.wall_s(), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _is_known(book: Book, code: str, row: bytes) -> bool:
    """Say whether a row would change nothing; an upload of what is there already is cheap for the platform."""
    number = book.index.get(code)
    if number is None:
        return False
    return book.rows[number] == row or not _differences(book, number, etree.fromstring(row))


def _differences(book: Book, number: int, record: etree._Element) -> dict[str, object]:
    """Return the fields that an upload changes; what it does not name stays."""
    before = book.fields(number)
    after = xml_fields(book.entity, record)
    return {name: value for name, value in after.items() if before.get(name) != value}


def _update(book: Book, number: int, record: etree._Element) -> str:
    differences = _differences(book, number, record)
    if not differences:
        return "Unchanged"
    book.change(number, book.fields(number) | differences)
    return "Updated"
