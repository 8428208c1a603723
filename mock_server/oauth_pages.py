"""The two addresses of OAuth 2: the page on which a person says yes, and the endpoint that gives tokens."""

import base64
from html import escape
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import orjson

from mock_server.oauth import Denied, Door
from mock_server.replies import HTML, Asked, Reply
from mock_server.scenario import OAuthSpec

_JSON = b"application/json; charset=utf-8"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in - mock cloud</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
main {{ max-width: 26rem; margin: 15vh auto; padding: 2rem; border: 1px solid #8884; border-radius: 12px }}
button {{ font: inherit; padding: .5rem 1.2rem; border-radius: 8px; border: 1px solid #8886; cursor: pointer }}
button[value=allow] {{ background: #2563eb; color: #fff; border-color: #2563eb }}
</style></head>
<body><main><h1>Mock cloud</h1>
<p><b>{client}</b> asks for access to {companies} companies in your name.</p>
<form method="post" action="{action}">
{hidden}
<button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Deny</button>
</form></main></body></html>
"""


def authorize(door: Door, asked: Asked, *, companies: int, wall_s: float) -> Reply:
    """Show the page to a person, or send the browser back with the answer that was given."""
    spec = door.spec
    if spec is None:
        return _page_error("OAuth is off in this scenario: use its token.")
    if asked.method not in {"GET", "HEAD", "POST"}:
        return Reply(405, headers=[(b"allow", b"GET, POST")])
    given = _pairs(asked.body if asked.method == "POST" else asked.query)
    if given.get("client_id") != spec.client_id:
        return _page_error("The client_id is not known.")
    if not _may_redirect(spec, given.get("redirect_uri", "")):
        return _page_error("The redirect_uri is not registered, or not https.")
    if asked.method == "POST" or given.get("response_type", "code") != "code":
        return _answered(door, spec, given, wall_s)
    hidden = "\n".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">' for name, value in given.items()
    )
    page = _PAGE.format(client=escape(spec.client_id), companies=companies, action="/api/oauth2/auth", hidden=hidden)
    return Reply(200, page.encode(), HTML, [(b"cache-control", b"no-store")])


def _answered(door: Door, spec: OAuthSpec, given: dict[str, str], wall_s: float) -> Reply:
    """Send the browser back to where it came from, with a code or with what is wrong."""
    uri = given["redirect_uri"]
    if given.get("response_type", "code") != "code":
        answer = {"error": "unsupported_response_type"}
    elif given.get("answer") != "allow":
        answer = {"error": "access_denied"}
    else:
        answer = {"code": door.new_code(spec, uri, wall_s)}
    if "state" in given:
        answer["state"] = given["state"]
    joint = "&" if urlsplit(uri).query else "?"
    return Reply(302, headers=[(b"location", f"{uri}{joint}{urlencode(answer)}".encode())])


def token(door: Door, asked: Asked, *, wall_s: float) -> Reply:
    """Give tokens for a code or a refresh token."""
    spec = door.spec
    if spec is None:
        return _denied(Denied(400, "invalid_request", "OAuth is off in this scenario: use its token."))
    if asked.method != "POST":
        return Reply(405, headers=[(b"allow", b"POST")])
    given = _pairs(asked.body)
    if asked.authorization:
        given |= _basic(asked.authorization)
    if given.get("client_id") != spec.client_id or given.get("client_secret") != spec.client_secret:
        return _denied(Denied(401, "invalid_client", "The client is not known."))
    match given.get("grant_type"):
        case "authorization_code":
            uri = given.get("redirect_uri", "")
            done = door.redeem(spec, code=given.get("code", ""), redirect_uri=uri, wall_s=wall_s)
        case "refresh_token":
            done = door.renew(spec, refresh=given.get("refresh_token", ""), wall_s=wall_s)
        case _:
            done = Denied(400, "unsupported_grant_type", "grant_type is authorization_code or refresh_token.")
    if isinstance(done, Denied):
        return _denied(done)
    answer = {
        "access_token": done.access,
        "token_type": "bearer",
        "expires_in": f"{spec.access_s:.0f}",
        "refresh_token": done.refresh,
    }
    return Reply(200, orjson.dumps(answer), _JSON, [(b"cache-control", b"no-store")])


def _denied(denied: Denied) -> Reply:
    headers = [(b"reason", denied.reason.encode())] if denied.reason else []
    if denied.error:
        body = orjson.dumps({"error": denied.error, "error_description": denied.text})
        return Reply(denied.status, body, _JSON, headers)
    return Reply(denied.status, denied.text.encode(), HTML, headers)


def _may_redirect(spec: OAuthSpec, uri: str) -> bool:
    if not uri.isascii() or not uri.isprintable() or " " in uri:
        return False
    if spec.redirect_uris:
        return uri in spec.redirect_uris
    try:
        parts = urlsplit(uri)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def _page_error(text: str) -> Reply:
    return Reply(400, f"<!DOCTYPE html><title>Error</title><p>{escape(text)}</p>".encode(), HTML)


def _basic(authorization: bytes) -> dict[str, str]:
    """Read who calls from a header; one that carries a token in place of a name and a secret ends in a 401."""
    kind, _, coded = authorization.partition(b" ")
    try:
        name, _, secret = base64.b64decode(coded, validate=True).decode().partition(":")
    except ValueError:
        name = secret = ""
    known = kind.lower() == b"basic"
    return {"client_id": unquote(name), "client_secret": unquote(secret)} if known else {"client_id": ""}


def _pairs(raw: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=50))
    except ValueError:
        return {}
