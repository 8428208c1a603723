"""What is done with a call after its answer."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from saasload.errors import DecodeError, InDoubtError, NoTokenError, NotSentError
from saasload.model import Call, Company, Fragments, Note, Outcomes, Reply, Request, RowStatus
from saasload.profile import Answers, BusinessError, CsrfSpec
from saasload.verdict import Again, CloseCompany, Settle, Split, StopRun, Verdict, in_doubt, on_failure, on_reply
from saasload.wire import Refusal

ANSWERS = Answers(business_errors=(BusinessError(text="already exists", reason="duplicate"),))


@dataclass
class Heard:
    """A format that hears what it is told to."""

    heard: Outcomes | Refusal | DecodeError
    name: str = "batch"
    needs_key: bool = False
    max_rows: int = 9
    max_bytes: int = 99
    overhead: int = 0

    def encode(self, table: object, company: Company) -> list[bytes]:
        """Encode nothing."""
        raise NotImplementedError

    def request(self, call: Call) -> Request:
        """Send nothing."""
        raise NotImplementedError

    def read(self, call: Call, reply: Reply) -> Outcomes | Refusal:
        """Say what was prepared."""
        if isinstance(self.heard, DecodeError):
            raise self.heard
        return self.heard


def call_of(*rows: int) -> Call:
    """Make a call."""
    return Call(Company("1001"), Fragments(rows, [b"x"] * len(rows), [""] * len(rows)), len(rows))


def judge(
    status: int,
    body: bytes = b"",
    *,
    rows: tuple[int, ...] = (1, 2),
    heard: Outcomes | Refusal | DecodeError | None = None,
    headers: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge a reply."""
    reply = Reply(status, headers or {}, body)
    return on_reply(call_of(*rows), reply, Heard(heard or DecodeError("not to be read")), ANSWERS)


def settled(verdict: Verdict, status: RowStatus, reason: str, rows: int = 2) -> Note:
    """Check that every row has one outcome, and return the note they share."""
    assert isinstance(verdict, Settle)
    assert list(verdict.outcomes.statuses) == [status] * rows
    notes = set(verdict.outcomes.notes.values())
    assert {note.reason for note in notes} == {reason}
    assert len(verdict.outcomes.notes) == rows
    return notes.pop()


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_success_is_what_its_body_says(status: int) -> None:
    """Settled row by row; silence is in doubt."""
    verdict = judge(status, heard=Outcomes([2], [RowStatus.CREATED], ["id"], retry_after="5"))

    assert isinstance(verdict, Settle)
    assert list(verdict.outcomes.statuses) == [RowStatus.IN_DOUBT, RowStatus.CREATED]
    assert verdict.outcomes.notes[1].reason == "silent"
    assert verdict.outcomes.retry_after == "5"


@pytest.mark.parametrize("status", [200, 202])
def test_a_success_that_cannot_be_read_is_in_doubt(status: int) -> None:
    """A maintenance page with HTTP 200 has stored nothing, or everything."""
    note = settled(judge(status, heard=DecodeError("no XML")), RowStatus.IN_DOUBT, "unreadable-answer")

    assert (note.message, note.http_status) == ("no XML", status)


def test_a_refusal_inside_a_success_is_split() -> None:
    """Until the row at fault stands alone."""
    note = Note("duplicate", "already exists", http_status=400)

    assert judge(200, heard=Refusal(note)) == Split(note)
    assert settled(judge(200, rows=(1,), heard=Refusal(note)), RowStatus.REJECTED, "duplicate", 1) == note


def test_a_503_that_asks_for_no_wait_may_have_been_executed() -> None:
    """It may come from something in front of the platform, which had passed the call on."""
    settled(judge(503, b"bad day"), RowStatus.IN_DOUBT, "unclear-answer")


@pytest.mark.parametrize(
    ("status", "asked"),
    [(429, {}), (429, {"retry-after": "7"}), (429, {"retry-after": "soon"}), (503, {"retry-after": "7"})],
)
def test_an_answer_that_executed_nothing_goes_again(status: int, asked: dict[str, str]) -> None:
    """With what it asks for, as it came."""
    verdict = judge(status, b"slow down", headers=asked)

    assert verdict == Again(Note("not-executed", "slow down", http_status=status), asked.get("retry-after"), sent=True)


@pytest.mark.parametrize(
    ("exact", "asked"),
    [
        ("1500", "1.500"),
        (" 1500 ", "1.500"),
        ("0", "0.000"),
        ("soon", "2"),
        ("²", "2"),
        ("9" * 5000, "2"),
        ("", "2"),
        ("-1", "2"),
    ],
)
def test_a_wait_in_milliseconds_is_preferred_where_it_is_one(exact: str, asked: str) -> None:
    """Both headers are there: the exact one counts, unless it is nonsense (C05)."""
    verdict = judge(429, headers={"retry-after": "2", "retry-after-ms": exact})

    assert isinstance(verdict, Again)
    assert verdict.retry_after == asked


def test_a_token_that_is_not_accepted_stops_the_run() -> None:
    """Also where the text would be a row's fault."""
    for body in (b"", b"token already exists"):
        verdict = judge(401, body)
        assert isinstance(verdict, StopRun)
        assert verdict.note.reason == "sign-in"
        assert "does not accept the token" in verdict.reason


@pytest.mark.parametrize("status", [404, 405, 410, 501])
def test_a_door_that_is_not_there_stops_the_run(status: int) -> None:
    """The reason names the mode and the status."""
    verdict = judge(status)

    assert isinstance(verdict, StopRun)
    assert verdict.note.reason == "absent"
    assert "has no batch for this entity" in verdict.reason
    assert f"has no batch for this entity (HTTP {verdict.note.http_status})" in verdict.reason


def test_a_company_closed_to_us_closes_no_other() -> None:
    """With the reason from the header where the body is empty."""
    verdict = judge(403, headers={"reason": "DivisionBlocked"})

    assert verdict == CloseCompany(Note("company-closed", "DivisionBlocked", http_status=403))


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [(400, b"bad", "refused"), (409, b"already exists", "duplicate"), (413, b"", "refused"), (422, b"", "refused"),
     (500, b"already exists", "duplicate")],
)  # fmt: skip
def test_a_call_refused_as_a_whole_is_split(status: int, body: bytes, reason: str) -> None:
    """Alone, the row is rejected with the target's words."""
    verdict = judge(status, body)
    assert isinstance(verdict, Split)
    assert (verdict.note.reason, verdict.note.http_status) == (reason, status)

    note = settled(judge(status, body, rows=(1,)), RowStatus.REJECTED, reason, 1)
    assert note.message == (body.decode() or f"HTTP {status}")


@pytest.mark.parametrize("status", [0, 100, 301, 304, 307, 408, 500, 502, 504, 520, 599])
@pytest.mark.parametrize("rows", [(1,), (1, 2)])
def test_an_unclear_answer_is_in_doubt(status: int, rows: tuple[int, ...]) -> None:
    """It may have been applied: neither split nor sent again."""
    note = settled(judge(status, b"Boom", rows=rows), RowStatus.IN_DOUBT, "unclear-answer", len(rows))

    assert (note.message, note.http_status) == ("Boom", status)


def test_every_status_has_a_verdict() -> None:
    """Of any three digits, none is an error of ours."""
    for status in range(1000):
        assert isinstance(judge(status), Settle | Again | Split | CloseCompany | StopRun)


def test_a_call_that_never_left_goes_again() -> None:
    """It was not sent, so nothing is counted as refused."""
    assert on_failure(call_of(1, 2), NotSentError("refused")) == Again(Note("not-sent", "refused"), None, sent=False)


def test_a_lost_answer_is_in_doubt() -> None:
    """The bytes may have arrived."""
    note = settled(on_failure(call_of(1, 2), InDoubtError("reset")), RowStatus.IN_DOUBT, "answer-lost")

    assert note.message == "reset"


def test_in_doubt_is_all_rows() -> None:
    """With one note."""
    settled(in_doubt(call_of(1, 2, 3), Note("deadline", "late")), RowStatus.IN_DOUBT, "deadline", 3)


CSRF = CsrfSpec(path="/{company}/")
WANTED = Reply(403, {"x-csrf-token": "Required"}, b"")


@pytest.mark.parametrize(
    ("reply", "csrf", "expected"),
    [
        (WANTED, CSRF, Again(Note("csrf", "HTTP 403", http_status=403), None, sent=True, wait_s=0.0)),
        (Reply(403, {"x-csrf-token": "REQUIRED"}, b""), CSRF, Again),
        (WANTED, None, CloseCompany),
        (Reply(403, {}, b""), CSRF, CloseCompany),
        (Reply(403, {"x-csrf-token": "abc"}, b""), CSRF, CloseCompany),
        (Reply(400, {"x-csrf-token": "Required"}, b""), CSRF, Settle),
        (
            Reply(419, {"x-own": "stale"}, b""),
            CsrfSpec(path="/", header="X-Own", required="Stale", refused=(419,)),
            Again,
        ),
    ],
)
def test_a_refusal_for_the_token_against_forgery_is_no_other_403(
    reply: Reply, csrf: CsrfSpec | None, expected: object
) -> None:
    """Only with status and header as the profile says; nothing was executed, and it goes again after the least wait."""
    found = on_reply(call_of(1), reply, Heard(DecodeError("not to be read")), ANSWERS, csrf)

    assert found == expected or type(found) is expected


def test_a_session_that_is_not_to_be_had_stops_the_run() -> None:
    """Nothing was executed, and no other call would be."""
    found = on_failure(call_of(1), NoTokenError("the target refuses a fresh token"))

    assert found == StopRun(Note("csrf", "the target refuses a fresh token"), "the target refuses a fresh token")


def test_what_was_not_sent_waits_as_long_as_is_known() -> None:
    """It is no failure of the connection, which is tried again by its own rule."""
    assert on_failure(call_of(1), NotSentError("limit", 7.0)) == Again(
        Note("not-sent", "limit"), None, sent=True, wait_s=7.0
    )
