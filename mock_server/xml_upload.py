"""XML uploads: many records in one document, an answer for each."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast
from urllib.parse import parse_qs
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from mock_server.ledger import Book
from mock_server.replies import XML, Asked, Reply, Work, error
from mock_server.rows import CODE_WIDTH, TEXT_CAPS, xml_caps, xml_fields
from mock_server.rules import STREAM_ERROR, Refusal
from mock_server.world import World

TOPIC = "Accounts"
_CLOSING = b"</Account>"
_OPENINGS = re.compile(rb"<Account[\s/>]")


_TEXT_CAPS: dict[str, int] = {}
_CODE_CAPS: dict[str, int] = {}
_ADDRESS_TEXT_CAPS: dict[str, int] = {}
_ADDRESS_CODE_CAPS: dict[str, int] = {}
for _path, _cap in xml_caps().items():
    _element, _, _attribute = _path.partition("@")
    if _element.startswith("Address/"):
        (_ADDRESS_CODE_CAPS if _attribute else _ADDRESS_TEXT_CAPS)[_element.removeprefix("Address/")] = _cap
    elif _element:
        (_CODE_CAPS if _attribute else _TEXT_CAPS)[_element] = _cap

_CODES = etree.XPath("Account/@code", smart_strings=False)
_HAS_IDS = etree.XPath("boolean(Account/@ID)")


@dataclass(frozen=True, slots=True)
class Upload:
    """A document read: its accounts, and each as the bytes to keep."""

    root: str
    accounts: list[etree._Element]
    codes: list[str]
    rows: list[bytes]
    suspects: frozenset[int]
    has_ids: bool


def company_of(query: bytes) -> int | None:
    """Return the company that an upload names, None where it names none.

    >>> company_of(b"Topic=Accounts&_Division_=1001")
    1001
    """
    return _options(query)[1]


def prepare(world: World, asked: Asked) -> Reply | Work:
    """Understand an upload; what is no upload gets 400, what is too large 413."""
    if asked.method != "POST":
        return Reply(405, b"", headers=[(b"allow", b"POST")])
    topic, company = _options(asked.query)
    if topic != TOPIC or company is None:
        return error(400, f"Not found: Topic {topic[:40]}")
    upload = read_upload(asked.body, root_name=world.scenario.xml_root)
    if isinstance(upload, Refusal):
        return error(upload.status, upload.text)
    cap = world.scenario.max_rows_per_upload
    if len(upload.accounts) > cap:
        return error(413, f"Too long: {TOPIC} (maximum {cap})")
    book = world.ledger.book(company)
    unchanged = 0
    if not world.latency.is_free("xml"):
        unchanged = sum(1 for code, row in zip(upload.codes, upload.rows, strict=True) if _is_known(book, code, row))
    return Work("xml", len(upload.accounts) - unchanged, unchanged, lambda: carry_out(world, book, upload))


def read_upload(body: bytes, *, root_name: str) -> Upload | Refusal:
    """Read a document without entities, network or document types."""
    if b"<!DOCTYPE" in body:
        return Refusal(400, f"{STREAM_ERROR} A document type is not allowed.")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as failure:
        return Refusal(400, f"{STREAM_ERROR} {str(failure)[:200]}")
    if root.getroottree().docinfo.doctype:  # type: ignore[union-attr] # the stubs doubt that there is one
        return Refusal(400, f"{STREAM_ERROR} A document type is not allowed.")
    name = str(root.tag)
    if (root_name and name != root_name) or name.startswith("{"):
        return Refusal(400, f"{STREAM_ERROR} The root element is not known.")
    topic = root.find(TOPIC)
    if topic is None:
        return Refusal(400, f"{STREAM_ERROR} Element {TOPIC} is missing.")
    accounts = topic.findall("Account")
    codes = cast("list[str]", _CODES(topic))
    if len(codes) != len(accounts):
        codes = [account.get("code", "") for account in accounts]
    codes = [code.strip() for code in codes]
    suspects = frozenset(place for place, account in enumerate(accounts) if _is_suspect(account))
    return Upload(name, accounts, codes, _row_bytes(body, accounts), suspects, bool(_HAS_IDS(topic)))


def _is_suspect(account: etree._Element) -> bool:
    """Say whether a record may break a rule, and so needs a careful look; most are cleared here."""
    named = False
    for child in account:
        tag = child.tag
        if tag == "Address":
            if _exceeds(child, _ADDRESS_TEXT_CAPS, _ADDRESS_CODE_CAPS):
                return True
        elif (cap := _TEXT_CAPS.get(tag)) is not None:
            text = child.text
            if text and len(text) > cap:
                return True
            named = named or (tag == "Name" and text is not None and bool(text.strip()))
        elif (cap := _CODE_CAPS.get(tag)) is not None and len(child.get("code", "")) > cap:
            return True
    return (
        not named
        or len(account.get("code", "")) > CODE_WIDTH
        or len(account.get("status", "")) > 1
        or len(account.get("searchcode", "")) > TEXT_CAPS["SearchCode"]
    )


def _exceeds(element: etree._Element, text_caps: dict[str, int], code_caps: dict[str, int]) -> bool:
    for child in element:
        cap = text_caps.get(child.tag)
        if cap is not None:
            text = child.text
            if text and len(text) > cap:
                return True
        elif (cap := code_caps.get(child.tag)) is not None and len(child.get("code", "")) > cap:
            return True
    return False


def _row_bytes(body: bytes, accounts: list[etree._Element]) -> list[bytes]:
    """Return each account's own bytes.

    Cut from the document where that is safe: the document is well-formed, has no comment, CDATA or
    instruction that could hide a tag, and each tag that opens an account has one that closes it.
    """
    number = len(accounts)
    plain = b"<!" not in body and b"<?" not in body[2:] and b"xsi:nil" not in body and _is_utf8(body)
    if plain and number == body.count(_CLOSING):
        starts = [found.start() for found in _OPENINGS.finditer(body)]
        if len(starts) == number:
            return [body[start : body.find(_CLOSING, start) + len(_CLOSING)] for start in starts]
    return [etree.tostring(account, encoding="utf-8", with_tail=False) for account in accounts]


def _is_utf8(body: bytes) -> bool:
    if not body.startswith(b"<?xml"):
        return True
    declaration = body[: body.find(b"?>")].lower()
    return b"encoding" not in declaration or b"utf-8" in declaration


def _is_known(book: Book, code: str, row: bytes) -> bool:
    """Say whether a row would change nothing; an upload of what is there already is cheap for the platform."""
    number = book.index.get(code)
    if number is None:
        return False
    return book.rows[number] == row or not _differences(book, number, etree.fromstring(row))


def _differences(book: Book, number: int, account: etree._Element) -> dict[str, object]:
    """Return the fields that an upload changes; what it does not name stays."""
    before = book.fields(number)
    return {name: value for name, value in xml_fields(account).items() if before.get(name) != value}


def carry_out(world: World, book: Book, upload: Upload) -> Reply:
    """Create or update each record, in the order of the document; a record refused stops no other."""
    date = datetime.fromtimestamp(world.clock.wall_s(), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    tail = f"</Topic><Date>{date}</Date><Description>"
    messages = [f'<?xml version="1.0" encoding="utf-8"?>\n<{upload.root}><Messages>\n']
    index, rows = book.index, book.rows
    for place, (code, row) in enumerate(zip(upload.codes, upload.rows, strict=True)):
        if not code or upload.has_ids or place in upload.suspects:
            messages.append(_with_care(world, book, upload, place, tail))
            continue
        number = index.get(code)
        if number is None:
            number = book.add(code, row)
            word = "Created"
        else:
            word = "Unchanged" if rows[number] == row else _update(book, number, upload.accounts[place])
        messages.append(_message(2, book.guid(number), code, f"{tail}{word}"))
    messages.append(f"</Messages></{upload.root}>\n")
    return Reply(200, "".join(messages).encode(), XML)


def _with_care(world: World, book: Book, upload: Upload, place: int, tail: str) -> str:
    """Carry out a record that has an id, no code, or perhaps a text that breaks a rule."""
    account, code = upload.accounts[place], upload.codes[place]
    guid = (account.get("ID") or "").strip("{} ")
    number = book.number(guid) if guid else book.index.get(code)
    if guid and number is None:
        return _message(0, "", code, f"{tail}{escape(world.rules.not_found('ID').text)}")
    fields = xml_fields(account)
    if code:
        fields["Code"] = code
    known = {name: value for name, value in fields.items() if not name.startswith("xml:")}
    named = "Name" in fields or number is None
    refusal = world.rules.new(known) if named else world.rules.changes(known)
    refusal = refusal or _too_long(world, account)
    if refusal is not None:
        return _message(0, "", code, f"{tail}{escape(refusal.text)}")
    if number is None:
        code = code or book.free_code()
        return _message(2, book.guid(book.add(code, upload.rows[place])), code, f"{tail}Created")
    return _message(2, book.guid(number), book.codes[number], f"{tail}{_update(book, number, account)}")


def _too_long(world: World, account: etree._Element) -> Refusal | None:
    """Check what stands twice in a record, of which only the first is kept."""
    for path, cap in xml_caps().items():
        for element in account.findall(path.partition("@")[0] or "."):
            text = element.get(path.partition("@")[2]) if "@" in path else element.text
            if text and len(text.strip()) > cap:
                return world.rules.too_long(path.rpartition("/")[2], cap)
    return None


def _update(book: Book, number: int, account: etree._Element) -> str:
    differences = _differences(book, number, account)
    if not differences:
        return "Unchanged"
    book.change(number, book.fields(number) | differences)
    return "Updated"


def _message(kind: int, guid: str, code: str, rest: str) -> str:
    key = f' key="{{{guid}}}"' if guid else ""
    alternative = f'"{code}"' if code.isalnum() else quoteattr(code)
    return (
        f'<Message type="{kind}"><Topic code="{TOPIC}" node="Account"><Data{key} keyAlt={alternative}/>'
        f"{rest}</Description></Message>\n"
    )


def _options(query: bytes) -> tuple[str, int | None]:
    try:
        options = parse_qs(query.decode("ascii"), errors="strict")
    except ValueError:
        return "", None
    company = options.get("_Division_", [""])[0]
    return options.get("Topic", [""])[0], int(company) if company.isdecimal() and len(company) < 10 else None
