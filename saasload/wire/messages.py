"""Take the messages out of an XML upload's answer."""

import re
from typing import TYPE_CHECKING, NamedTuple

from saasload.errors import DecodeError

if TYPE_CHECKING:
    from lxml import etree


class Message(NamedTuple):
    """One message: its type, the `keyAlt` and `key` of each record it speaks of, and its words."""

    kind: str
    names: list[tuple[str, str]]
    text: str


# How most servers write an answer. Only what matches from the first message to the last, in UTF-8 and without
# any reference, is taken so; every other answer is read by lxml.
_HEAD = r'(?:<\?xml version="1\.0" encoding="(?:utf|UTF)-8"\?>\s*)?<%s(?: [^<>&]*)?>\s*<Messages>\s*'
_MESSAGE = re.compile(
    rb'<Message type="([0-9])">\s*<Topic [^<>&]*>\s*<Data key="([^<>&"]*)" keyAlt="([^<>&"]*)" ?/>\s*</Topic>\s*'
    rb"<Date>[^<>&]*</Date>\s*<Description>([^<>&\r\n\t]*)</Description>\s*</Message>\s*"
)
_FOOT = r"</Messages>\s*</%s>\s*\Z"


class MessageReader:
    """Reads answers whose root element has a name of the platform's own."""

    def __init__(self, root: str) -> None:
        """Look for `root/Messages/Message`."""
        self._root = root
        self._head = re.compile((_HEAD % re.escape(root)).encode())
        self._foot = re.compile((_FOOT % re.escape(root)).encode())

    def read(self, body: bytes) -> list[Message]:
        """Tell the messages in their order; DecodeError where the answer is none."""
        usual = self._usual(body)
        return self._any(body) if usual is None else usual

    def _usual(self, body: bytes) -> list[Message] | None:
        head = self._head.match(body)
        if head is None:
            return None
        try:
            body.decode()
            at, found = head.end(), []
            for message in _MESSAGE.finditer(body, at):
                if message.start() != at:
                    return None
                kind, key, other, text = (part.decode() for part in message.groups())
                found.append(Message(kind, [(other, key)], text))
                at = message.end()
        except UnicodeDecodeError:
            return None
        return found if self._foot.match(body, at) else None

    def _any(self, body: bytes) -> list[Message]:
        from lxml import etree  # noqa: PLC0415 few answers need it, and no other mode does

        try:
            root = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False))
        except (etree.XMLSyntaxError, ValueError) as error:
            message = f"an answer that is not XML: {body[:60]!r}"
            raise DecodeError(message) from error
        if root.tag != self._root:
            message = f"an answer that is not an {self._root} document: <{root.tag}>"
            raise DecodeError(message)
        return [_message(element) for element in root.iterfind("Messages/Message")]


def _message(element: "etree._Element") -> Message:
    names, text = [], None
    for child in element:
        if child.tag == "Topic":
            names += [(data.get("keyAlt", ""), data.get("key", "")) for data in child if data.tag == "Data"]
        elif child.tag == "Description" and text is None:
            text = child.text or ""
    return Message(element.get("type", ""), names, text or "")
