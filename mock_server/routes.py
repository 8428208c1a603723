"""Routes: which resource a path names. Paths are case-sensitive, but for the service of `bulk` addresses."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote, urlsplit

from mock_server.entities import ACCOUNT, RESOURCES, Entity

Kind = Literal[
    "me", "metadata", "service", "set", "entity", "count", "batch", "upload", "download", "authorize", "token", "none"
]

CURRENT = 0
"""Company number of `current` in a path: the first company."""

_PATH = re.compile(r"/api/v1/(current|\d{1,9})/(.*)")
_RESOURCE = re.compile(r"(bulk/)?([A-Za-z]+)/([A-Za-z]+)(?:\((?:guid)?'([0-9A-Fa-f-]{36})'\))?(?:/(\$?[A-Za-z]+))?")
_FIXED: dict[str, Kind] = {
    "/docs/XMLUpload.aspx": "upload",
    "/docs/XMLDownload.aspx": "download",
    "/api/oauth2/auth": "authorize",
    "/api/oauth2/token": "token",
}
SERVICES = frozenset(entity.service for entity in RESOURCES.values())


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names; `resource` is the endpoint that errors are counted by."""

    kind: Kind
    company: int = CURRENT
    key: str = ""
    resource: str = ""
    entity: Entity = ACCOUNT
    service: str = ""
    lines: str = ""
    whole_pages: bool = False
    path: str = ""


NOWHERE = Route("none")


@lru_cache(maxsize=16_384)
def route(path: str) -> Route:
    """Return the resource of a decoded path.

    >>> found = route("/api/v1/1001/crm/Accounts")
    >>> found.kind, found.company, found.resource
    ('set', 1001, 'crm/Accounts')
    """
    fixed = _FIXED.get(path)
    if fixed is not None:
        return Route(fixed, resource="xml" if fixed in {"upload", "download"} else "")
    found = _PATH.fullmatch(path)
    if found is None:
        return NOWHERE
    company = CURRENT if found[1] == "current" else int(found[1])
    if found[2] == "Me":
        return Route("me") if company == CURRENT else NOWHERE
    if found[2] == "$metadata":
        return Route("metadata", company, resource="$metadata")
    return _of_service(path, company, found[2])


def _of_service(path: str, company: int, rest: str) -> Route:
    service, _, name = rest.rstrip("/").partition("/")
    if service in SERVICES and company != CURRENT:
        if name in {"", "$metadata"}:
            kind: Kind = "metadata" if name else "service"
            return Route(kind, company, resource="$metadata", service=service, path=path.rstrip("/"))
        if name == "$batch":
            return Route("batch", company, resource=f"{service}/$batch", service=service)
    found = _RESOURCE.fullmatch(rest)
    if found is None:
        return NOWHERE
    bulk, service, name, key, tail = found.groups()
    entity = RESOURCES.get(f"{service.lower() if bulk else service}/{name}")
    if entity is None or (company == CURRENT and entity.key != "Code"):
        return NOWHERE
    whole = Route("set", company, (key or "").lower(), entity.resource, entity, entity.service,
                  whole_pages=bool(bulk), path=path)  # fmt: skip
    return _of_entity(whole, tail or "")


def _of_entity(whole: Route, tail: str) -> Route:
    entity = whole.entity
    if whole.key:
        if (tail and tail not in entity.lines) or whole.whole_pages:
            return NOWHERE
        return replace(whole, kind="entity", lines=tail)
    if tail == "$count":
        return replace(whole, kind="count")
    return NOWHERE if tail else whole


@lru_cache(maxsize=16_384)
def part_route(target: str, company: int, service: str) -> tuple[Route, bytes]:
    """Return resource and query of a batch part's address: absolute, from the host, or relative to the batch.

    >>> part_route("Accounts", 1001, "crm")[0].kind
    'set'
    """
    try:
        address = urlsplit(target)
    except ValueError:
        return NOWHERE, b""
    path = unquote(address.path)
    if not path.startswith("/api/"):
        path = f"/api/v1/{company}/{service}/{path.lstrip('/')}"
    return route(path), address.query.encode("ascii", "replace")
