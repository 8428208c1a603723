"""Routes: which resource a path names. Paths are case-sensitive."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote, urlsplit

Kind = Literal["me", "divisions", "accounts", "account", "count", "batch", "xml", "none"]

CURRENT = 0
"""Company number of `current` in a path: the first company."""

_PATH = re.compile(r"/api/v1/(current|\d{1,9})/(.+)")
_KEY = re.compile(r"crm/Accounts\(guid'([0-9A-Fa-f-]{36})'\)")
_RESOURCES: dict[str, Kind] = {
    "system/Divisions": "divisions",
    "crm/Accounts": "accounts",
    "crm/Accounts/$count": "count",
    "crm/$batch": "batch",
}


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names; `resource` is the endpoint that errors are counted by."""

    kind: Kind
    company: int = CURRENT
    key: str = ""
    resource: str = ""


NOWHERE = Route("none")


@lru_cache(maxsize=16_384)
def route(path: str) -> Route:
    """Return the resource of a decoded path.

    >>> route("/api/v1/1001/crm/Accounts")
    Route(kind='accounts', company=1001, key='', resource='crm/Accounts')
    """
    if path == "/docs/XMLUpload.aspx":
        return Route("xml", resource="xml")
    found = _PATH.fullmatch(path)
    if found is None:
        return NOWHERE
    company = CURRENT if found[1] == "current" else int(found[1])
    if found[2] == "Me":
        return Route("me") if company == CURRENT else NOWHERE
    kind = _RESOURCES.get(found[2])
    if kind == "divisions":
        return Route(kind, company, resource="system/Divisions")
    if kind is not None and company != CURRENT:
        return Route(kind, company, resource="crm/$batch" if kind == "batch" else "crm/Accounts")
    key = _KEY.fullmatch(found[2])
    return Route("account", company, key[1].lower(), "crm/Accounts") if key and company != CURRENT else NOWHERE


@lru_cache(maxsize=16_384)
def part_route(target: str, company: int) -> tuple[Route, bytes]:
    """Return resource and query of a batch part's address: absolute, from the host, or relative to the batch.

    >>> part_route("Accounts", 1001)[0].kind
    'accounts'
    """
    try:
        address = urlsplit(target)
    except ValueError:
        return NOWHERE, b""
    path = unquote(address.path)
    if not path.startswith("/"):
        path = f"/api/v1/{company}/crm/{path}"
    return route(path), address.query.encode("ascii", "replace")
