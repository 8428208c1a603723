"""What to do with a call after its answer, or after its failure: a pure decision.

| what came back | verdict |
|---|---|
| an answer about rows | settle them; rows it did not try go again |
| never sent | send again |
| refused for its token against forgery | send again, with a new one; stop the run where no token is taken |
| not executed (see `answers.py`) | send again after the wait |
| refused as a whole, or too large | split, until the row at fault stands alone |
| company closed to us | close the company, its rows stay unsent |
| no such door, sign-in refused | stop the run, the rest stays unsent |
| lost, late, unreadable, unclear | in doubt: never sent again before it is looked up |
"""

from dataclasses import dataclass

from saasload.answers import Meaning, meaning, message_of, reply_note, token_wanted
from saasload.errors import DecodeError, NoTokenError, NotSentError, TransportError
from saasload.model import Call, Note, Outcomes, Reply, RowStatus, all_rows
from saasload.profile import Answers, CsrfSpec
from saasload.wire import Refusal, WireFormat
from saasload.wire.reconcile import reconcile

ABSENT = "absent"
"""The reason of a stop where the target has no such way to send; another mode may work."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Every row has its outcome; those NOT_ATTEMPTED may go again."""

    outcomes: Outcomes


@dataclass(frozen=True, slots=True)
class Again:
    """Nothing was executed; `retry_after` is what the answer asked for, as it came, and `sent` whether it arrived.

    `wait_s` is a wait that was made out otherwise, and goes before.
    """

    note: Note
    retry_after: str | None
    sent: bool
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Nothing was executed, for something in the call is at fault."""

    note: Note


@dataclass(frozen=True, slots=True)
class CloseCompany:
    """Nothing was executed, and nothing more can be in this company."""

    note: Note


@dataclass(frozen=True, slots=True)
class StopRun:
    """Nothing was executed, and nothing more can be anywhere."""

    note: Note
    reason: str


@dataclass(frozen=True, slots=True)
class Drop:
    """A question that will not be answered: its rows stay in doubt."""

    note: Note


Verdict = Settle | Again | Split | CloseCompany | StopRun | Drop


def on_failure(call: Call, error: TransportError) -> Verdict:
    """Judge a call that failed below HTTP; a question may be asked as often as it takes."""
    if isinstance(error, NotSentError):
        return Again(Note("not-sent", str(error)), None, sent=error.wait_s is not None, wait_s=error.wait_s)
    if isinstance(error, NoTokenError):
        return StopRun(Note("csrf", str(error)), str(error))
    note = Note("answer-lost", str(error))
    return Again(note, None, sent=True) if call.question else in_doubt(call, note)


def on_late(call: Call, note: Note) -> Verdict:
    """Judge a call that was not answered in time."""
    return Again(note, None, sent=True) if call.question else in_doubt(call, note)


def on_question(reply: Reply, answers: Answers) -> Verdict:
    """Judge a look-up that was answered with anything but a list: no row is refused by it."""
    note = reply_note(reply)
    match meaning(reply.status, message_of(reply.body), answers):
        case Meaning.NOT_EXECUTED | Meaning.IN_DOUBT:
            return Again(note, _asked(reply), sent=True)
        case Meaning.SIGN_IN:
            return _sign_in(note)
        case Meaning.COMPANY_CLOSED:
            return CloseCompany(note)
        case _:
            return Drop(note)


def in_doubt(call: Call, note: Note) -> Settle:
    """Leave every row of a call in doubt."""
    return Settle(all_rows(call.rows, RowStatus.IN_DOUBT, note))


def on_reply(  # noqa: PLR0911 one exit a row of the table
    call: Call, reply: Reply, wire: WireFormat, answers: Answers, csrf: CsrfSpec | None = None
) -> Verdict:
    """Judge a call that was answered."""
    if 200 <= reply.status < 300:
        return _on_success(call, reply, wire)
    text = message_of(reply.body)
    note = reply_note(reply)
    if csrf is not None and token_wanted(reply, csrf):
        return Again(Note("csrf", note.message, http_status=reply.status), None, sent=True, wait_s=0.0)
    match meaning(reply.status, text, answers):
        case Meaning.NOT_EXECUTED if reply.status in answers.executed_unless_retry_after and _asked(reply) is None:
            return in_doubt(call, Note("unclear-answer", note.message, http_status=reply.status))
        case Meaning.NOT_EXECUTED:
            return Again(Note("not-executed", note.message, http_status=reply.status), _asked(reply), sent=True)
        case Meaning.SIGN_IN:
            return _sign_in(note)
        case Meaning.COMPANY_CLOSED:
            return CloseCompany(Note("company-closed", note.message, http_status=reply.status))
        case Meaning.ABSENT:
            message = f"the target has no {wire.name} for this entity (HTTP {reply.status})"
            return StopRun(Note(ABSENT, note.message, http_status=reply.status), message)
        case Meaning.TOO_LARGE | Meaning.REFUSED:
            refused = Note(answers.business(text) or "refused", note.message, http_status=reply.status)
            return _refused(call, refused)
        case _:
            return in_doubt(call, Note("unclear-answer", note.message, http_status=reply.status))


def _sign_in(note: Note) -> StopRun:
    message = f"the target does not accept the token (HTTP {note.http_status}: {note.message})"
    return StopRun(Note("sign-in", note.message, http_status=note.http_status), message)


def _asked(reply: Reply) -> str | None:
    """Take the wait that an answer asks for; the header in milliseconds, where there is one, says it exactly."""
    exact = reply.headers.get("retry-after-ms", "").strip()
    if exact.isascii() and exact.isdigit() and len(exact) <= 12:
        return f"{int(exact) / 1000:.3f}"
    return reply.headers.get("retry-after")


def _on_success(call: Call, reply: Reply, wire: WireFormat) -> Verdict:
    try:
        heard = wire.read(call, reply)
    except DecodeError as error:
        return in_doubt(call, Note("unreadable-answer", str(error), http_status=reply.status))
    if isinstance(heard, Refusal):
        return _refused(call, heard.note)
    return Settle(reconcile(call, heard))


def _refused(call: Call, note: Note) -> Verdict:
    if len(call.rows) > 1:
        return Split(note)
    return Settle(all_rows(call.rows, RowStatus.REJECTED, note))
