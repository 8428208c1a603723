"""OAuth 2: codes, tokens that rotate, and each way to lose them."""

from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from mock_server.oauth import Denied, Door, Pair
from mock_server.scenario import OAuthSpec, Scenario, load_scenario

BACK = "https://client.example/back"
APP = {"client_id": "mock-client", "client_secret": "mock-secret"}
ACCOUNTS = "/api/v1/1001/crm/Accounts?$top=1"


async def sign_in(http: Any, **changed: str) -> Any:
    """Say yes on the page and redeem the code; return the answer of the token endpoint."""
    given = {"client_id": "mock-client", "redirect_uri": BACK, "response_type": "code", "state": "s"}
    page = await http.get("/api/oauth2/auth", params=given)
    assert page.status_code == 200
    assert "<form" in page.text
    sent = await http.post("/api/oauth2/auth", data=given | {"answer": "allow"})
    answer = parse_qs(urlsplit(sent.headers["location"]).query)
    assert sent.status_code == 302
    assert answer["state"] == ["s"]
    form = {"grant_type": "authorization_code", "code": answer["code"][0], "redirect_uri": BACK, **APP, **changed}
    return await token(http, form)


async def token(http: Any, form: dict[str, str], **headers: str) -> Any:
    """Call the token endpoint, without the header that all other calls carry."""
    request = http.build_request("POST", "/api/oauth2/token", data=form, headers=headers)
    if not headers:
        del request.headers["authorization"]
    return await http.send(request)


def refresh(pair: Any) -> dict[str, str]:
    """Write a refresh."""
    return {"grant_type": "refresh_token", "refresh_token": pair["refresh_token"], **APP}


def test_a_client_signs_in_and_stays_in(virtual: Any, client: Any) -> None:
    """Code, tokens, ten minutes, refresh in the last thirty seconds; the old refresh token is dead."""

    async def main() -> None:
        async with client(load_scenario("token-rotation")) as http:
            assert (await http.get(ACCOUNTS)).status_code == 401  # the fixed token opens nothing here
            answer = await sign_in(http)
            pair = answer.json()
            assert answer.status_code == 200
            assert (pair["expires_in"], pair["token_type"]) == ("600", "bearer")
            own = {"Authorization": f"Bearer {pair['access_token']}"}
            assert (await http.get(ACCOUNTS, headers=own)).status_code == 200

            early = await token(http, refresh(pair))
            assert (early.status_code, early.json()["error"]) == (400, "access_denied")
            assert early.headers["reason"].startswith("TooEarlyToRefreshTokens: ")
            await anyio.sleep(575)
            renewed = (await token(http, refresh(pair))).json()
            assert renewed["refresh_token"] != pair["refresh_token"]
            assert (await http.get(ACCOUNTS, headers=own)).status_code == 200
            await anyio.sleep(30)
            assert (await http.get(ACCOUNTS, headers=own)).status_code == 401

            old = await token(http, refresh(pair))
            assert old.status_code == 401
            assert old.json() == {"error": "unauthorized_client", "error_description": "Old refresh token used."}
            await anyio.sleep(600)
            assert (await token(http, refresh(renewed))).status_code == 401  # that was the end of the connection
            assert (await sign_in(http)).status_code == 200

    virtual(main)


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"redirect_uri": "https://other.example/"}, 400, None),
        ({"code": "made up"}, 400, None),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ],
)
def test_a_wrong_step_gives_no_token(run: Any, client: Any, form: dict[str, str], status: int, error: Any) -> None:
    """Secret, address, code and grant have to be right."""

    async def main() -> None:
        async with client(Scenario(oauth=OAuthSpec())) as http:
            answer = await sign_in(http, **form)
            assert answer.status_code == status
            assert answer.json()["error"] == error if error else answer.text == "Bad Request"

    run(main)


def test_a_code_is_used_once_and_in_time(virtual: Any, client: Any) -> None:
    """Three minutes, one use; a Bearer header does not belong to the token call, a Basic one does no harm."""

    async def main() -> None:
        async with client(Scenario(oauth=OAuthSpec())) as http:
            given = {"client_id": "mock-client", "redirect_uri": BACK, "answer": "allow"}
            codes = []
            for _ in range(2):
                sent = await http.post("/api/oauth2/auth", data=given)
                codes.append(parse_qs(urlsplit(sent.headers["location"]).query)["code"][0])
            forms = [{"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, **APP} for code in codes]
            for wrong in ("Basic x", "Basic eDp5", "Bearer mock-token"):
                assert (await token(http, forms[0], Authorization=wrong)).status_code == 401
            basic = f"Basic {b64encode(b'mock-client:mock-secret').decode()}"
            assert (await token(http, forms[0], Authorization=basic)).status_code == 200
            assert (await token(http, forms[0])).status_code == 400
            await anyio.sleep(180)
            assert (await token(http, forms[1])).status_code == 400

    virtual(main)


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"client_id": "x"}, 400, "client_id"),
        ({"redirect_uri": "http://evil.example/"}, 400, "redirect_uri"),
        ({"redirect_uri": "javascript:alert(1)"}, 400, "redirect_uri"),
        ({"response_type": "token"}, 302, "unsupported_response_type"),
        ({"answer": "deny"}, 302, "access_denied"),
    ],
)
def test_the_page_refuses_what_it_does_not_know(
    run: Any, client: Any, changed: dict[str, str], status: int, says: str
) -> None:
    """Never a redirect to an address that is not the client's."""
    given = {"client_id": "mock-client", "redirect_uri": "http://127.0.0.1:9/back", "answer": "allow"} | changed

    async def main() -> None:
        async with client(Scenario(oauth=OAuthSpec())) as http:
            answer = await http.post("/api/oauth2/auth", data=given)
            assert answer.status_code == status
            assert says in (answer.headers["location"] if status == 302 else answer.text)

    run(main)


def test_the_token_endpoint_is_called_so_many_times_a_day() -> None:
    """The 201st call is refused; the next day begins anew."""
    spec = OAuthSpec()
    door = Door("", spec, seed=1)
    for _ in range(200):
        door.renew(spec, refresh="x", wall_s=10.0)

    assert door.renew(spec, refresh="x", wall_s=20.0) == Denied(429)
    assert door.renew(spec, refresh="x", wall_s=86_400.0) != Denied(429)


def test_a_refresh_token_lasts_thirty_days() -> None:
    """After that a person has to sign in again."""
    spec = OAuthSpec()
    door = Door("", spec, seed=1)
    pair = door.redeem(spec, code=door.new_code(spec, BACK, 0.0), redirect_uri=BACK, wall_s=0.0)
    assert isinstance(pair, Pair)

    denied = door.renew(spec, refresh=pair.refresh, wall_s=30 * 86_400.0)

    assert isinstance(denied, Denied)
    assert denied.text.startswith("The refresh token expired at ")


def test_without_oauth_the_addresses_say_so(run: Any, client: Any) -> None:
    """The fixed token stays the default."""

    async def main() -> None:
        async with client() as http:
            assert (await http.get(ACCOUNTS)).status_code == 200
            assert (await http.get("/api/oauth2/auth")).status_code == 400
            assert (await token(http, {})).json()["error"] == "invalid_request"

    run(main)
