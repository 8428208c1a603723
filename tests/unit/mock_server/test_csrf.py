"""Tokens against forgery, as the mock wants them."""

from mock_server.csrf import HEADER, Sessions
from mock_server.scenario import CsrfSpec


def given(sessions: Sessions, company: int = 1001, now_s: float = 0.0) -> tuple[bytes, bytes]:
    """Take a token, and its cookies as a client sends them."""
    headers = sessions.give(company, now_s)
    token = dict(headers)[HEADER]
    return token, b"; ".join(value.partition(b";")[0] for name, value in headers if name == b"set-cookie")


def test_a_call_with_token_and_cookies_is_let_in() -> None:
    """Also among other cookies."""
    sessions = Sessions(CsrfSpec(), seed=1)
    token, cookies = given(sessions)

    assert sessions.check(1001, token, b"other=1; " + cookies, 1.0) is None


def test_a_call_without_all_that_was_given_is_refused() -> None:
    """No token, no cookies, one of two, those of another session, those of another company."""
    sessions = Sessions(CsrfSpec(), seed=1)
    token, cookies = given(sessions)
    _, others = given(sessions)
    for shown in ((b"", cookies), (token, b""), (token, cookies.partition(b"; ")[0]), (token, others)):
        refused = sessions.check(1001, *shown, 1.0)
        assert refused is not None
        assert (refused.status, dict(refused.headers)[HEADER]) == (403, b"Required")
    assert sessions.check(1002, token, cookies, 1.0) is not None


def test_a_token_gets_old() -> None:
    """By the clock, or by the calls it was shown for."""
    aging, wearing = Sessions(CsrfSpec(lasts_s=10.0), seed=1), Sessions(CsrfSpec(lasts_calls=2), seed=1)

    token = given(aging)
    assert [aging.check(1001, *token, now_s) is None for now_s in (9.9, 10.0)] == [True, False]
    token = given(wearing)
    assert [wearing.check(1001, *token, 0.0) is None for _ in range(3)] == [True, True, False]
