"""What an answer means: the one table from HTTP status and text to what was done with the rows.

| answer | meaning |
|---|---|
| 2xx | stored: the body says more |
| 429, 503 with Retry-After (`not_executed`) | nothing was executed: send again, after the wait it asks for |
| 401 (`sign_in`) | nothing was executed: the token is not accepted |
| 403 with `x-csrf-token: Required` (`[csrf]`) | nothing was executed: send again, with a new token |
| 403 (`company_closed`) | nothing was executed: this company is closed to us |
| 404, 405, 410, 501 (`absent`), or a text that says so | nothing was executed: there is no such door |
| 413 (`too_large`) | nothing was executed: send less at once |
| any with a known business text | refused: the row's own fault |
| other 4xx, but not 408 | refused |
| everything else | in doubt: it may have been applied |

The lists are fields of the profile, since platforms differ.
"""

from enum import Enum, auto
from typing import Any

import orjson

from saasload.model import Note, Reply, RowStatus
from saasload.profile import Answers, CsrfSpec

REQUEST_TIMEOUT = 408
LONGEST_MESSAGE = 300


class Meaning(Enum):
    """What was done with the rows a call or a part of it carried."""

    STORED = auto()
    NOT_EXECUTED = auto()
    SIGN_IN = auto()
    COMPANY_CLOSED = auto()
    ABSENT = auto()
    TOO_LARGE = auto()
    REFUSED = auto()
    IN_DOUBT = auto()


def meaning(status: int, text: str, answers: Answers) -> Meaning:
    """Look an answer up in the table.

    >>> meaning(500, "Data already exists", Answers())
    <Meaning.IN_DOUBT: 8>
    """
    if 200 <= status < 300:
        return Meaning.STORED
    if status >= 400 and answers.says_absent(text):
        return Meaning.ABSENT
    # What a status says of the call comes first: "Invalid" stands in many a 401 about a token.
    for listed, what in (
        (answers.not_executed, Meaning.NOT_EXECUTED),
        (answers.sign_in, Meaning.SIGN_IN),
        (answers.company_closed, Meaning.COMPANY_CLOSED),
        (answers.absent, Meaning.ABSENT),
        (answers.too_large, Meaning.TOO_LARGE),
    ):
        if status in listed:
            return what
    if answers.business(text) is not None or (400 <= status < 500 and status != REQUEST_TIMEOUT):
        return Meaning.REFUSED
    return Meaning.IN_DOUBT


def token_wanted(reply: Reply, csrf: CsrfSpec) -> bool:
    """Tell whether an answer refuses a call for its token against forgery, which says that it was not executed."""
    said = reply.headers.get(csrf.header.lower(), "").strip()
    return reply.status in csrf.refused and said.casefold() == csrf.required.casefold()


def row_answer(status: int, body: bytes, answers: Answers) -> tuple[RowStatus, Note]:
    """Say what an answer about exactly one row, and not a success, means for that row."""
    text = message_of(body)
    reason = answers.business(text)
    match meaning(status, text, answers):
        case Meaning.NOT_EXECUTED | Meaning.SIGN_IN | Meaning.COMPANY_CLOSED:
            return RowStatus.NOT_ATTEMPTED, Note("not-executed", text, http_status=status)
        case Meaning.IN_DOUBT | Meaning.STORED:
            return RowStatus.IN_DOUBT, Note("unclear-answer", text or f"HTTP {status}", http_status=status)
        case _:
            return RowStatus.REJECTED, Note(reason or "refused", text or f"HTTP {status}", http_status=status)


def message_of(body: bytes) -> str:
    """Take the sentence out of an error body: `error.message.value` where it is there, else its beginning.

    >>> message_of(b'{"error": {"code": "", "message": {"lang": "en", "value": "No name"}}}')
    'No name'
    """
    try:
        found: Any = orjson.loads(body)
        for key in ("error", "message", "value"):
            found = found[key]
            if isinstance(found, str):
                return found[:LONGEST_MESSAGE]
    except (ValueError, KeyError, TypeError, IndexError):
        pass
    return " ".join(body[: 4 * LONGEST_MESSAGE].decode("utf-8", "replace").split())[:LONGEST_MESSAGE]


def reply_note(reply: Reply) -> Note:
    """Describe a refused call in a note its rows can share; a `Reason` header says more than an empty body."""
    text = message_of(reply.body) or reply.headers.get("reason", "") or f"HTTP {reply.status}"
    return Note("refused", text, http_status=reply.status)
