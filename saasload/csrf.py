"""Tokens against forgery: one a company, asked for before its first call that changes something.

All of it happens around the sending of a call, and only for profiles that ask for it. A token belongs to the cookies
that came with it; both go with calls of their company, and with no other's.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from saasload.answers import message_of, token_wanted
from saasload.budget import SharedBudget, Wait
from saasload.clock import Clock
from saasload.errors import NoTokenError, NotSentError, TransportError
from saasload.model import Call, Company, Outcomes, Reply, Request
from saasload.policy.headers import header_spec, read_limits
from saasload.policy.retry import retry_after
from saasload.profile import CsrfSpec, PlatformProfile
from saasload.wire import Refusal, WireFormat
from saasload.wire.base import address
from saasload.wire.values import Table

MOST_REFUSALS = 2
"""So many refusals of a company's tokens in a row mean that no new one will help."""

# A joined header holds several cookies, and commas in their dates; what follows a cookie's comma is a name.
_BETWEEN = re.compile(r"\n|,\s*(?=[!#$%&'*+\-.^_`|~0-9A-Za-z]+=)")

Send = Callable[[Request], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class CompanyRequest(Request):
    """A request that changes something in a company, which its token belongs to."""

    company: Company = field(kw_only=True)


class CompanyFormat:
    """A wire format whose requests say which company they are for."""

    def __init__(self, wire: WireFormat) -> None:
        """Write as another format does."""
        self._wire = wire
        self.name = wire.name
        self.needs_key = wire.needs_key
        self.max_rows = wire.max_rows
        self.max_bytes = wire.max_bytes
        self.overhead = wire.overhead

    def encode(self, table: Table, company: Company) -> Sequence[bytes]:
        """Encode each row of a table, in order."""
        return self._wire.encode(table, company)

    def request(self, call: Call) -> Request:
        """Pack a call's fragments, and name its company."""
        made = self._wire.request(call)
        return CompanyRequest(made.method, made.path, made.headers, made.body, company=call.company)

    def read(self, call: Call, reply: Reply) -> Outcomes | Refusal:
        """Say what a 2xx reply tells of the call's rows."""
        return self._wire.read(call, reply)


class Tokens:
    """Sends requests, those that change something in a company with its token and cookies.

    A token that is refused is thrown away; the call was not executed, and goes again, by way of its lane, with
    the next one. Two refusals in a row raise NoTokenError.
    """

    def __init__(
        self, profile: PlatformProfile, spec: CsrfSpec, send: Send, budget: SharedBudget, clock: Clock
    ) -> None:
        """Begin without any; asking for one costs budget like any call."""
        self._profile = profile
        self._spec = spec
        self._send = send
        self._budget = budget
        self._clock = clock
        self._limits = header_spec(profile)
        self._open: dict[Company, Mapping[str, str]] = {}
        self._asking: dict[Company, anyio.Lock] = {}
        self._refused: Counter[Company] = Counter()

    async def send(self, request: Request) -> Reply:
        """Send a request; raises NotSentError where no token could be had for it now, NoTokenError where none works."""
        if not isinstance(request, CompanyRequest):
            return await self._send(request)
        company = request.company
        shown = self._open.get(company) or await self._token_of(company)
        if isinstance(shown, Reply):
            return shown
        signed = Request(request.method, request.path, {**request.headers, **shown}, request.body)
        reply = await self._send(signed)
        if token_wanted(reply, self._spec):
            self._throw_away(company, shown, reply)
        elif reply.status < 500 and reply.status not in self._profile.answers.not_executed:
            self._refused.pop(company, None)
        return reply

    def _throw_away(self, company: Company, shown: Mapping[str, str], reply: Reply) -> None:
        # Several calls may have left with one token; its refusal counts once.
        if self._open.get(company) is not shown:
            return
        del self._open[company]
        self._refused[company] += 1
        if self._refused[company] >= MOST_REFUSALS:
            message = (
                f"company {company}: the target refuses a fresh {self._spec.header} (HTTP {reply.status}: "
                f"{message_of(reply.body)}); does anything between here and there drop cookies?"
            )
            raise NoTokenError(message)

    async def _token_of(self, company: Company) -> Mapping[str, str] | Reply:
        """Get a company its token, once for all who wait for it; a reply that says that it cannot be is given back."""
        async with self._asking.setdefault(company, anyio.Lock()):
            known = self._open.get(company)
            if known is not None:
                return known
            reply = await self._asked(company)
            if not 200 <= reply.status < 300:
                return reply
            token = reply.headers.get(self._spec.header.lower(), "").strip()
            if not token:
                raise NoTokenError(f"GET {self._path(company)} gives no {self._spec.header}; {self._mend()}")
            shown = {self._spec.header: token}
            cookies = _cookies(reply.headers.get("set-cookie", ""))
            if cookies:
                shown["Cookie"] = cookies
            self._open[company] = shown
            return shown

    async def _asked(self, company: Company) -> Reply:
        """Ask for a token within the limits; return an answer that is final. Raises NotSentError, NoTokenError."""
        right = await self._budget.reserve(company, self._clock.wall(), endpoint="token")
        if isinstance(right, Wait):
            raise NotSentError("a token is waited for: limit reached", max(right.until - self._clock.wall(), 0.001))
        headers = {"Accept": "application/json", **self._profile.headers, self._spec.header: self._spec.fetch}
        reply: Reply | None = None
        try:
            with self._clock.deadline(self._spec.deadline_s):
                reply = await self._send(Request("GET", self._path(company), headers))
        except TransportError as error:
            raise NotSentError(f"no token could be had: {error}") from error
        finally:
            wall = self._clock.wall()
            facts = None if reply is None else read_limits(reply.headers, self._limits, wall)
            failed = reply is not None and 400 <= reply.status < 500
            self._budget.settled(right, wall, facts, failed=failed)
        if reply is None or facts is None:
            raise NotSentError(f"no token could be had: no answer within {self._spec.deadline_s:g} s")
        answers = self._profile.answers
        if reply.status in answers.not_executed:
            wait_s = facts.wait_s() or retry_after(reply.headers.get("retry-after"), wall)
            self._budget.refused(right, wall, wait_s or 0.0, facts)
            raise NotSentError(f"no token could be had: HTTP {reply.status}", wait_s)
        if reply.status >= 500 or reply.status == 408:
            raise NotSentError(f"no token could be had: HTTP {reply.status}: {message_of(reply.body)}")
        final = reply.status < 300 or reply.status in {*answers.sign_in, *answers.company_closed}
        if not final:
            raise NoTokenError(f"GET {self._path(company)} for a token: HTTP {reply.status}; {self._mend()}")
        return reply

    def _path(self, company: Company) -> str:
        return address(self._spec.path, company)

    def _mend(self) -> str:
        return f"is [csrf] path right in profile {self._profile.name}?"


def _cookies(joined: str) -> str:
    """Write the cookies that a reply sets as a request carries them.

    >>> _cookies("a=1; Path=/; HttpOnly, b=2; Expires=Tue, 19 Jan 2038 03:14:07 GMT, c=; Max-Age=0")
    'a=1; b=2'
    """
    pairs = [one.partition(";")[0].strip() for one in _BETWEEN.split(joined)]
    return "; ".join(pair for pair in pairs if "=" in pair and not pair.endswith("="))
