"""What answers mean."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.answers import LONGEST_MESSAGE, Meaning, meaning, message_of, reply_note, row_answer
from saasload.model import Note, Reply, RowStatus
from saasload.profile import Answers, BusinessError

ANSWERS = Answers(business_errors=(BusinessError(text="already exists", reason="duplicate"),))
KNOWN = "Data already exists: Code"

TABLE = {
    Meaning.STORED: [200, 201, 202, 204, 226, 299],
    Meaning.NOT_EXECUTED: [429, 503],
    Meaning.SIGN_IN: [401],
    Meaning.COMPANY_CLOSED: [403],
    Meaning.ABSENT: [404, 405, 410, 501],
    Meaning.TOO_LARGE: [413],
    Meaning.REFUSED: [400, 402, 406, 409, 412, 415, 418, 422, 428, 499],
    Meaning.IN_DOUBT: [0, 100, 199, 300, 301, 302, 304, 307, 308, 408, 500, 502, 504, 599, 999],
}


@pytest.mark.parametrize(
    ("status", "expected"), [(status, what) for what, listed in TABLE.items() for status in listed]
)
def test_a_status_means_what_the_table_says(status: int, expected: Meaning) -> None:
    """Without a text that is known."""
    assert meaning(status, "", ANSWERS) is expected
    assert meaning(status, "Internal error", ANSWERS) is expected


@pytest.mark.parametrize(
    ("status", "expected"), [(status, what) for what, listed in TABLE.items() for status in listed]
)
def test_a_known_text_settles_only_what_a_status_leaves_open(status: int, expected: Meaning) -> None:
    """A duplicate may come as HTTP 500; a 401 stays a 401 whatever its text."""
    known = meaning(status, KNOWN, ANSWERS)

    assert known is (Meaning.REFUSED if expected is Meaning.IN_DOUBT else expected)


@given(st.integers(0, 1000), st.text(max_size=20))
def test_every_answer_has_a_meaning(status: int, text: str) -> None:
    """The table has no holes, and only 2xx is stored."""
    assert (meaning(status, text, ANSWERS) is Meaning.STORED) == (200 <= status < 300)


def test_the_lists_are_the_profiles() -> None:
    """A platform that answers 503 after it has worked, or 403 to a busy key, says so."""
    other = Answers(not_executed=(429,), company_closed=(), sign_in=(403,), absent=(), too_large=())

    assert meaning(503, "", other) is Meaning.IN_DOUBT
    assert meaning(403, "", other) is Meaning.SIGN_IN
    assert meaning(404, "", other) is Meaning.REFUSED
    assert meaning(401, "", other) is Meaning.REFUSED


@pytest.mark.parametrize(
    ("status", "text", "expected", "reason"),
    [
        (429, "slow down", RowStatus.NOT_ATTEMPTED, "not-executed"),
        (503, "", RowStatus.NOT_ATTEMPTED, "not-executed"),
        (400, "Bad name", RowStatus.REJECTED, "refused"),
        (400, KNOWN, RowStatus.REJECTED, "duplicate"),
        (500, KNOWN, RowStatus.REJECTED, "duplicate"),
        (500, "Boom", RowStatus.IN_DOUBT, "unclear-answer"),
        (500, "", RowStatus.IN_DOUBT, "unclear-answer"),
        (408, "", RowStatus.IN_DOUBT, "unclear-answer"),
        (200, "odd", RowStatus.IN_DOUBT, "unclear-answer"),
        (403, "Forbidden", RowStatus.NOT_ATTEMPTED, "not-executed"),
        (401, "Expired", RowStatus.NOT_ATTEMPTED, "not-executed"),
        (413, "", RowStatus.REJECTED, "refused"),
    ],
)
def test_an_answer_about_one_row_is_its_outcome(status: int, text: str, expected: RowStatus, reason: str) -> None:
    """With the target's words, or the status where it has none."""
    found, note = row_answer(status, text.encode(), ANSWERS)

    assert found is expected
    quiet = text or ("" if expected is RowStatus.NOT_ATTEMPTED else f"HTTP {status}")
    assert note == Note(reason, quiet, http_status=status)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"error": {"code": "", "message": {"lang": "nl", "value": "Gegeven bestaat reeds."}}},
            "Gegeven bestaat reeds.",
        ),
        ({"error": {"code": "x", "message": "V4 text"}}, "V4 text"),
        ({"error": "short"}, "short"),
        ({"error": {"message": {"value": ""}}}, ""),
        ({"error": {"message": {"value": "x" * 1000}}}, "x" * LONGEST_MESSAGE),
        ({"error": {"message": {"value": 7}}}, '{"error": {"message": {"value": 7}}}'),
        ({"error": []}, '{"error": []}'),
        ([1, 2], "[1, 2]"),
        ("text", '"text"'),
    ],
)
def test_the_sentence_is_taken_out_of_an_error_body(body: object, message: str) -> None:
    """Where JSON has it, else the beginning of the body."""
    assert message_of(json.dumps(body).encode()) == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"<html>\r\n  <h1>Sorry</h1>\n</html>", "<html> <h1>Sorry</h1> </html>"),
        (b"caf\xe9", "caf\ufffd"),
        (b"word " * 1000, ("word " * 60).strip() + " "),
        (b'{"error": {"message"', '{"error": {"message"'),
    ],
)
def test_a_body_that_is_no_json_is_told_in_one_line(body: bytes, message: str) -> None:
    """HTML, other encodings, cut JSON."""
    assert message_of(body).rstrip() == message.rstrip()


@given(st.binary(max_size=60))
def test_any_body_has_a_short_sentence(body: bytes) -> None:
    """Nothing is raised, nothing is long."""
    assert len(message_of(body)) <= LONGEST_MESSAGE


def test_a_reason_header_says_more_than_an_empty_body() -> None:
    """Body, header, status: the first that has something."""
    assert reply_note(Reply(403, {"reason": "NoDivisionAccess"}, b"")).message == "NoDivisionAccess"
    assert reply_note(Reply(403, {"reason": "x"}, b"Forbidden")).message == "Forbidden"
    assert reply_note(Reply(403, {}, b"")) == Note("refused", "HTTP 403", http_status=403)


def test_the_first_known_text_gives_the_reason() -> None:
    """In the order of the profile, and in whatever case the target writes it."""
    answers = Answers(
        business_errors=(BusinessError(text="aaa", reason="one"), BusinessError(text="aaab", reason="two"))
    )

    assert answers.business("xxaaab") == "one"
    assert answers.business("AAA") == "one"
    assert answers.business("aa") is None
