"""Read the list of companies from the target: they are never guessed."""

import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from saasload.answers import message_of
from saasload.errors import BusyError, SignInError, TargetError
from saasload.model import Reply, Request
from saasload.policy.retry import retry_after
from saasload.profile import PlatformProfile
from saasload.source.partition import CompanyInfo

MOST_PAGES = 10_000


async def read_companies(
    send: Callable[[Request], Awaitable[Reply]], profile: PlatformProfile
) -> tuple[list[CompanyInfo], Reply]:
    """Read all pages of the target's companies; the first reply comes with them, for what its headers tell.

    Raises SignInError for a token that is refused, TargetError for anything else that is not the list.
    """
    headers = {"Accept": "application/json", **profile.headers}
    path = profile.companies.path
    found: list[CompanyInfo] = []
    first: Reply | None = None
    for _ in range(MOST_PAGES):
        reply = await send(Request("GET", path, headers))
        first = first or reply
        page, following = _page(reply, profile)
        found += [_company(code, fields) for code, fields in page]
        if not following:
            return found, first
        target = urlsplit(following)
        path = target.path + (f"?{target.query}" if target.query else "")
    message = f"the list of companies has more than {MOST_PAGES:,} pages; is {profile.name} the right profile?"
    raise TargetError(message)


def _page(reply: Reply, profile: PlatformProfile) -> tuple[list[tuple[object, Mapping[str, Any]]], str]:
    """Take a page of a verbose JSON collection: `d.results` and `d.__next`, or a bare `d` list."""
    if reply.status in profile.answers.sign_in:
        message = f"the target does not accept the token (HTTP {reply.status}); set {profile.token_env} to a valid one"
        raise SignInError(message)
    if reply.status in profile.answers.not_executed or reply.status >= 500:
        message = f"the list of companies: HTTP {reply.status}: {message_of(reply.body) or 'the target is busy'}"
        raise BusyError(message, retry_after(reply.headers.get("retry-after"), _wall(reply)))
    if reply.status != 200:
        message = f"the list of companies: HTTP {reply.status}: {message_of(reply.body) or 'no reason given'}"
        raise TargetError(message)
    try:
        data = orjson.loads(reply.body)["d"]
        rows = data["results"] if isinstance(data, dict) else data
        following = data.get("__next", "") if isinstance(data, dict) else ""
        codes = [row[profile.companies.code] for row in rows]
    except orjson.JSONDecodeError as error:
        message = f"the list of companies: an answer that is not JSON; is this the right address for {profile.name}?"
        raise BusyError(message) from error
    except (ValueError, KeyError, TypeError) as error:
        message = f"the list of companies: not what profile {profile.name} expects; is it the right profile?"
        raise TargetError(message) from error
    return list(zip(codes, rows, strict=True)), following


def _wall(reply: Reply) -> float:
    try:
        return parsedate_to_datetime(reply.headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return time.time()


def _company(code: object, fields: Mapping[str, Any]) -> CompanyInfo:
    plain = {name: value for name, value in fields.items() if not isinstance(value, dict | list)}
    return CompanyInfo(str(code).strip(), plain)
