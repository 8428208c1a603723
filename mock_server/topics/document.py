"""Documents: the bytes of an upload into records, without entities, network or document types."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import cast
from urllib.parse import parse_qs

from lxml import etree

from mock_server.entities import TOPICS, Entity, XmlSpec
from mock_server.rows import xml_caps
from mock_server.rules import STREAM_ERROR, Refusal

_ID = re.compile(r"\{?([0-9A-Fa-f-]{36})\}?")


@dataclass(frozen=True, slots=True)
class Options:
    """What the address of an upload or a download says."""

    entity: Entity | None
    topic: str
    company: int | None
    after: int = 0
    params: tuple[tuple[str, str], ...] = ()

    def param(self, name: str) -> str:
        """Return a parameter of the topic, empty where it is not given."""
        return dict(self.params).get(name, "")


@dataclass(frozen=True, slots=True)
class Upload:
    """A document read: its records, and each as the bytes to keep."""

    root: str
    records: list[etree._Element]
    codes: list[str]
    rows: list[bytes]
    suspects: frozenset[int]
    has_ids: bool


@dataclass(frozen=True, slots=True)
class _Marks:
    """What tells a topic's records apart in a document, and the longest texts in them."""

    closing: bytes
    openings: re.Pattern[bytes]
    codes: etree.XPath
    has_ids: etree.XPath
    texts: dict[str, int]
    attributes: dict[str, int]
    nested: dict[str, tuple[dict[str, int], dict[str, int]]]
    own: dict[str, int]
    must: str


@lru_cache(maxsize=4096)
def read_options(query: bytes) -> Options:
    """Read the address of an upload or a download.

    >>> read_options(b"Topic=Accounts&_Division_=1001").company
    1001
    """
    try:
        options = parse_qs(query.decode("ascii"), errors="strict")
    except ValueError:
        return Options(None, "", None)
    topic = options.get("Topic", [""])[0]
    company = options.get("_Division_", [""])[0]
    after = options.get("TSPaging", ["0"])[0]
    return Options(
        entity=TOPICS.get(topic),
        topic=topic,
        company=int(company) if company.isdecimal() and len(company) < 10 else None,
        after=int(after, 16) if re.fullmatch(r"(0[xX])?[0-9A-Fa-f]{1,16}", after) else -1,
        params=tuple((name[7:], values[0]) for name, values in options.items() if name.startswith("Params_")),
    )


def read_upload(body: bytes, *, root_name: str, spec: XmlSpec, entity: Entity) -> Upload | Refusal:
    """Read a document."""
    root = _root(body)
    if isinstance(root, Refusal):
        return root
    name = str(root.tag)
    if (root_name and name != root_name) or name.startswith("{"):
        return Refusal(400, f"{STREAM_ERROR} The root element is not known.")
    topic = root.find(spec.topic)
    if topic is None:
        return Refusal(400, f"{STREAM_ERROR} Element {spec.topic} is missing.")
    marks = _marks(entity)
    records = topic.findall(spec.record)
    codes = cast("list[str]", marks.codes(topic))
    if len(codes) != len(records):
        codes = [record.get("code", "") for record in records]
    codes = [code.strip() for code in codes]
    suspects = frozenset(place for place, record in enumerate(records) if _is_suspect(record, marks))
    return Upload(name, records, codes, _row_bytes(body, records, marks), suspects, bool(marks.has_ids(topic)))


def _root(body: bytes) -> etree._Element | Refusal:
    if b"<!DOCTYPE" in body:
        return Refusal(400, f"{STREAM_ERROR} A document type is not allowed.")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as failure:
        return Refusal(400, f"{STREAM_ERROR} {str(failure)[:200]}")
    if root.getroottree().docinfo.doctype:  # type: ignore[union-attr] # the stubs doubt that there is one
        return Refusal(400, f"{STREAM_ERROR} A document type is not allowed.")
    return root


@lru_cache(maxsize=32)
def _marks(entity: Entity) -> _Marks:
    record = "" if entity.xml is None else entity.xml.record
    texts: dict[str, int] = {}
    attributes: dict[str, int] = {}
    nested: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    own = {"code": entity.caps[entity.code[0]]} if len(entity.code) == 1 and entity.code[0] in entity.caps else {}
    for path, cap in xml_caps(entity).items():
        element, _, attribute = path.partition("@")
        parent, _, child = element.partition("/")
        if not element:
            own[attribute] = cap
        elif child:
            nested.setdefault(parent, ({}, {}))[1 if attribute else 0][child] = cap
        else:
            (attributes if attribute else texts)[element] = cap
    return _Marks(
        closing=f"</{record}>".encode(), openings=re.compile(rf"<{record}[\s/>]".encode()),
        codes=etree.XPath(f"{record}/@code", smart_strings=False), has_ids=etree.XPath(f"boolean({record}/@ID)"),
        texts=texts, attributes=attributes, nested=nested, own=own,
        must=next((name for name in entity.mandatory if name not in entity.code), ""),
    )  # fmt: skip


def _is_suspect(record: etree._Element, marks: _Marks) -> bool:
    """Say whether a record may break a rule, and so needs a careful look; most are cleared here."""
    named, texts, attributes, nested, must = False, marks.texts, marks.attributes, marks.nested, marks.must
    for child in record:
        tag = child.tag
        if (inner := nested.get(tag)) is not None:
            if _exceeds(child, *inner):
                return True
        elif (cap := texts.get(tag)) is not None:
            text = child.text
            if text and len(text) > cap:
                return True
            named = named or (tag == must and text is not None and bool(text.strip()))
        elif (cap := attributes.get(tag)) is not None and len(child.get("code", "")) > cap:
            return True
    return not named or any(len(record.get(name, "")) > cap for name, cap in marks.own.items())


def _exceeds(element: etree._Element, texts: dict[str, int], attributes: dict[str, int]) -> bool:
    for child in element:
        cap = texts.get(child.tag)
        if cap is not None:
            text = child.text
            if text and len(text) > cap:
                return True
        elif (cap := attributes.get(child.tag)) is not None and len(child.get("code", "")) > cap:
            return True
    return False


def _row_bytes(body: bytes, records: list[etree._Element], marks: _Marks) -> list[bytes]:
    """Return each record's own bytes.

    Cut from the document where that is safe: the document is well-formed, has no comment, CDATA or
    instruction that could hide a tag, and each tag that opens a record has one that closes it.
    """
    number, closing = len(records), marks.closing
    plain = b"<!" not in body and b"<?" not in body[2:] and b"xsi:nil" not in body and _is_utf8(body)
    if plain and number == body.count(closing):
        starts = [found.start() for found in marks.openings.finditer(body)]
        if len(starts) == number:
            return [body[start : body.find(closing, start) + len(closing)] for start in starts]
    return [etree.tostring(record, encoding="utf-8", with_tail=False) for record in records]


def _is_utf8(body: bytes) -> bool:
    if not body.startswith(b"<?xml"):
        return True
    declaration = body[: body.find(b"?>")].lower()
    return b"encoding" not in declaration or b"utf-8" in declaration


def bare_guid(text: str | None) -> str:
    """Return an id as JSON writes it, from how XML does; empty where there is none."""
    found = _ID.fullmatch((text or "").strip())
    return found[1].lower() if found else (text or "").strip("{} ")
