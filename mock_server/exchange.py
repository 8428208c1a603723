"""Exchanges: one request in, one reply out, in the order the platform works."""

import re
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache, partial
from typing import Any

from mock_server import batch, oauth_pages, rest
from mock_server.csrf import HEADER
from mock_server.faults import ConnectionDroppedError
from mock_server.replies import HTML, Asked, Reply, Work, error
from mock_server.routes import CURRENT, Route, route
from mock_server.scenario import Endpoint, FaultSpec
from mock_server.topics import download, upload
from mock_server.topics.document import read_options
from mock_server.world import World

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Head = Callable[[Reply], list[tuple[bytes, bytes]]]

_MAINTENANCE = b"<!DOCTYPE html><html><body><h1>We are working on it</h1><p>Please come back later.</p></body></html>"
_REFUSED = 429
_HOST = re.compile(rb"[A-Za-z0-9.:_\[\]-]{1,255}")
_CLIENT_ERRORS = frozenset({400, 401, 403, 404})


class Exchange:
    """One request on its way through."""

    __slots__ = ("_at_s", "_base", "_company", "_endpoint", "_head", "_receive", "_resource", "_rows", "_scope",
                 "_send", "_status", "_tally", "_world")  # fmt: skip

    def __init__(self, world: World, scope: MutableMapping[str, Any], receive: Receive, send: Send, head: Head) -> None:
        """Take a request; `head` completes the headers of its reply."""
        self._world = world
        self._scope = scope
        self._receive = receive
        self._send = send
        self._head = head
        self._company = CURRENT
        self._endpoint: Endpoint = "read"
        self._resource = ""
        self._rows = 0
        self._status = 0
        self._at_s = world.clock.now_s()
        self._tally = world.tally(CURRENT)

    async def run(self) -> None:
        """Answer, and note what became of it."""
        dropped = False
        try:
            reply = await self._answer()
            self._status = reply.status
            await self._reply(reply)
        except ConnectionDroppedError:
            dropped = True
            self._status = 0
            raise
        except Exception:  # noqa: BLE001 - a mistake of the mock's own must not look like a fault of the scenario
            self._world.internal_errors += 1
            traceback.print_exc()
            self._status = 500
            await self._reply(error(500, "Internal error of the mock: see its stderr"))
        finally:
            self._note(dropped=dropped)

    async def _answer(self) -> Reply:
        scope, world = self._scope, self._world
        headers = dict(scope["headers"])
        body = await self._read_body(headers.get(b"content-length", b""))
        if body is None:
            reply = error(413, f"Too long: request (maximum {world.scenario.max_body_bytes} bytes)")
            reply.headers.append((b"connection", b"close"))
            return reply
        query: bytes = scope["query_string"]
        target = route(scope["path"])
        if target.kind in {"upload", "download"}:
            target = Route(target.kind, read_options(query).company or CURRENT, resource="xml")
        self._resource = target.resource
        self._endpoint = _endpoint(target, scope["method"])
        if target.company in world.companies:
            self._company = target.company
            self._tally = world.tally(target.company)
            self._tally.in_flight += 1
        authorization = headers.get(b"authorization", b"")
        asked = Asked(
            method=scope["method"],
            query=query,
            body=body,
            base=_base(scope["scheme"], headers.get(b"host", b"")),
            content_type=headers.get(b"content-type", b""),
            prefer=headers.get(b"prefer", b"").lower(),
            authorization=authorization,
        )
        if world.sessions is not None:
            asked.csrf, asked.cookie = headers.get(HEADER, b""), headers.get(b"cookie", b"")
        if target.kind in {"authorize", "token"}:
            return self._sign_in(target, asked)
        wall_s = world.clock.wall_at(self._at_s)
        reply = world.door.check(authorization, wall_s) or await self._admit(target, asked, wall_s)
        if world.limits is not None and reply.status in _CLIENT_ERRORS and self._company != CURRENT:
            world.limits.answered(self._company, target.resource, status=reply.status, wall_s=wall_s)
        return reply

    def _sign_in(self, target: Route, asked: Asked) -> Reply:
        world = self._world
        wall_s = world.clock.wall_at(self._at_s)
        if target.kind == "authorize":
            return oauth_pages.authorize(world.door, asked, companies=len(world.companies), wall_s=wall_s)
        reply = oauth_pages.token(world.door, asked, wall_s=wall_s)
        world.remember_door()
        return reply

    async def _admit(self, target: Route, asked: Asked, wall_s: float) -> Reply:
        """Let a call in: the path, the company, its limits."""
        world = self._world
        if target.kind == "none":
            return error(404, "Resource not found for the segment.")
        if target.company == CURRENT:
            return await self._carry_out(target, asked)
        company = world.companies.get(target.company)
        if company is None or not company.open:
            return error(403, "Forbidden", reason="DivisionBlocked" if company else "NoDivisionAccess")
        if world.not_before_s and self._at_s < world.not_before_s.get(target.company, 0.0):
            self._tally.early += 1
        limits = world.limits
        if limits is None:
            return await self._carry_out(target, asked)
        verdict = limits.charge(target.company, target.resource, wall_s)
        if not verdict.allowed:
            self._told_to_wait(verdict.headers)
            return Reply(_REFUSED, headers=verdict.headers)
        reply = await self._carry_out(target, asked)
        reply.headers += verdict.headers
        return reply

    async def _carry_out(self, target: Route, asked: Asked) -> Reply:
        """Ask for a token against forgery, where the scenario has one, and go on."""
        sessions = self._world.sessions
        if sessions is None or target.company == CURRENT:
            return await self._do(target, asked)
        now_s = self._world.clock.now_s()
        if asked.method not in {"GET", "HEAD"}:
            return sessions.check(target.company, asked.csrf, asked.cookie, now_s) or await self._do(target, asked)
        reply = await self._do(target, asked)
        if asked.csrf.lower() == b"fetch" and reply.status < 400:
            reply.headers += sessions.give(target.company, now_s)
        return reply

    async def _do(self, target: Route, asked: Asked) -> Reply:
        """Meet the fault that is due, if any, and do the work."""
        world = self._world
        fault = world.faults.pick(target.company, self._endpoint, self._at_s) if world.faults.live else None
        if fault is not None:
            early = await self._instead(fault)
            if early is not None:
                return early
            asked.twist = fault.kind
        match target.kind:
            case "batch":
                work = batch.prepare(world, target, asked)
            case "upload":
                work = upload.prepare(world, asked)
            case "download":
                work = download.prepare(world, asked)
            case _:
                work = rest.prepare(world, target, asked)
        if isinstance(work, Reply):
            return work
        self._rows = work.rows + work.unchanged
        if fault is None:
            return await self._serve(work)
        return await self._hit(fault, work)

    async def _serve(self, work: Work) -> Reply:
        world = self._world
        if not world.latency.is_free(work.endpoint):
            await world.latency.serve(
                self._company, work.endpoint, rows=work.rows, unchanged=work.unchanged,
                abandoned=partial(self._later, work),
            )  # fmt: skip
        world.ledger.settle(world.clock.now_s())
        reply = work.apply()
        if world.store is not None:
            world.store.flush()
        return reply

    def _later(self, work: Work, due_s: float) -> None:
        self._world.ledger.later(due_s, work.apply)

    async def _instead(self, fault: FaultSpec) -> Reply | None:
        """Return what comes in place of the work, None where the work is done all the same."""
        match fault.kind:
            case "drop-before":
                await self._world.clock.sleep(fault.hold_s)
                raise ConnectionDroppedError
            case "status":
                headers = [] if fault.retry_after_s is None else [(b"retry-after", b"%d" % fault.retry_after_s)]
                self._told_to_wait(headers)
                if fault.status == _REFUSED:
                    return Reply(_REFUSED, headers=headers)
                reply = error(fault.status, "The service is not available for the moment.")
                reply.headers += headers
                return reply
            case "html-200":
                return Reply(200, _MAINTENANCE, HTML)
            case "empty":
                return Reply(200)
            case _:
                return None

    async def _hit(self, fault: FaultSpec, work: Work) -> Reply:
        """Do the work, and let it go wrong."""
        clock = self._world.clock
        match fault.kind:
            case "late-commit":
                self._later(work, self._at_s + fault.after_s)
                await clock.sleep(fault.hold_s)
                raise ConnectionDroppedError
            case "slow":
                await clock.sleep(fault.after_s)
                return await self._serve(work)
            case "xml-fatal" | "xml-no-data":
                return await self._serve(work)
            case "cut":
                await self._cut(await self._serve(work))
                raise ConnectionDroppedError
            case _:
                await self._serve(work)
                await clock.sleep(fault.hold_s)
                raise ConnectionDroppedError

    async def _cut(self, reply: Reply) -> None:
        """Send the first half of a reply that promised more."""
        await self._send({"type": "http.response.start", "status": reply.status, "headers": self._head(reply)})
        half = reply.body[: len(reply.body) // 2]
        await self._send({"type": "http.response.body", "body": half, "more_body": True})

    async def _reply(self, reply: Reply) -> None:
        await self._send({"type": "http.response.start", "status": reply.status, "headers": self._head(reply)})
        body = b"" if self._scope["method"] == "HEAD" else reply.body
        await self._send({"type": "http.response.body", "body": body})

    async def _read_body(self, declared: bytes) -> bytes | None:
        """Read the body, None where it is larger than allowed; who hangs up in the middle has asked nothing."""
        cap = self._world.scenario.max_body_bytes
        if declared and (not declared.isdigit() or len(declared) > 15 or int(declared) > cap):
            return None
        message = await self._receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            return body if len(body) <= cap else None
        pieces, size = [body], len(body)
        while message.get("more_body", False):
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionDroppedError
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > cap:
                return None
        return b"".join(pieces)

    def _told_to_wait(self, headers: list[tuple[bytes, bytes]]) -> None:
        for name, value in headers:
            if name == b"retry-after":
                self._world.not_before_s[self._company] = self._at_s + int(value)

    def _note(self, *, dropped: bool) -> None:
        world, tally = self._world, self._tally
        if self._company != CURRENT:
            tally.in_flight -= 1
        tally.calls += 1
        tally.rows += self._rows
        if dropped:
            tally.dropped += 1
        elif self._status == _REFUSED:
            tally.refused += 1
        elif self._status >= 400:
            tally.errors += 1
        took_s = world.clock.now_s() - self._at_s
        world.note((self._at_s, self._company, self._endpoint, self._rows, self._status, took_s))


@lru_cache(maxsize=256)
def _base(scheme: str, host: bytes) -> str:
    """Return what addresses in replies begin with; a host that is no host is not repeated."""
    return f"{scheme}://{host.decode()}" if _HOST.fullmatch(host) else f"{scheme}://mock"


def _endpoint(target: Route, method: str) -> Endpoint:
    if target.kind == "batch":
        return "batch"
    if target.kind == "upload":
        return "xml"
    return "read" if method in {"GET", "HEAD"} or target.kind == "download" else "insert"
