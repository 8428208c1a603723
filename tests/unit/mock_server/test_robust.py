"""Whatever comes in at any address, the mock answers and never fails."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mock_server.entities import RESOURCES
from mock_server.scenario import LimitSpec, OAuthSpec, Scenario

TAILS = st.sampled_from(
    ["", "/$count", "(guid'00000000-0000-4000-8000-000000000000')", "/x", "()", "('1')", "/$metadata"]
)
PATHS = st.one_of(
    st.builds("/api/v1/{}/{}{}".format, st.sampled_from(["1001", "current", "0", "99", "1" * 9]),
              st.sampled_from([*sorted(RESOURCES), "crm/$batch", "Me", "$metadata", "bulk/CRM/Accounts"]), TAILS),
    st.sampled_from(["/docs/XMLUpload.aspx", "/docs/XMLDownload.aspx", "/api/oauth2/auth", "/api/oauth2/token"]),
    st.text("/apiv1$crm()%'\u0661 ", max_size=20).map(lambda text: f"/api/v1/{text}"),
)  # fmt: skip
QUERIES = st.one_of(
    st.binary(max_size=30),
    st.dictionaries(
        st.sampled_from(["$filter", "$select", "$top", "$skiptoken", "$expand", "$orderby", "Topic", "_Division_",
                         "TSPaging", "client_id", "redirect_uri", "response_type"]),
        st.sampled_from(["Accounts", "Invoices", "1001", "Code", "Code eq 'x'", "*", "mock-client", "https://[",
                         "token", "https://x.example/?a=1", "guid''", "guid'x'", "-1", "(((", "", "Account/Name desc"]),
        max_size=4,
    ).map(lambda options: "&".join(f"{name}={value}" for name, value in options.items()).replace(" ", "%20").encode()),
)  # fmt: skip
BODIES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"{}", b"[]", b'{"results": 1}', b"grant_type=refresh_token&client_id=mock-client", b"<eExact/>",
                     b"client_id=mock-client&redirect_uri=https://x.example/%0d%0aX:%20y&answer=allow"]),
)  # fmt: skip


async def ask(app: Any, method: str, path: str, query: bytes, body: bytes) -> int:
    """Call the application as a server would, without a client that tidies up; return the status."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"mock"), (b"authorization", b"Bearer mock-token"), (b"content-type", b"multipart/mixed")]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "scheme": "http",
        "headers": headers,
    }
    await app(scope, receive, send)
    assert all(b"\r" not in value and b"\n" not in value for _, value in sent[0]["headers"])
    return int(sent[0]["status"])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    call=st.tuples(st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"]), PATHS, QUERIES, BODIES),
    oauth=st.booleans(),
)
def test_no_request_makes_the_server_fail(
    client: Any, virtual: Any, call: tuple[str, str, bytes, bytes], oauth: bool
) -> None:
    """Any method at any address with any query and body; and no header can be smuggled in."""
    scenario = Scenario(limits=LimitSpec(errors_per_hour=3), oauth=OAuthSpec() if oauth else None)

    async def main() -> None:
        app = client(scenario)._transport.app
        for _ in range(2):
            assert await ask(app, *call) in {
                200,
                201,
                202,
                204,
                302,
                400,
                401,
                403,
                404,
                405,
                413,
                429,
            }
        assert app.world.internal_errors == 0

    virtual(main)


@pytest.mark.parametrize(("errors", "blocked"), [(3, True), (0, False)])
def test_errors_of_every_kind_are_counted(run: Any, client: Any, errors: int, blocked: bool) -> None:
    """A wrong token, a row that is refused and a page that is not there: then the endpoint is shut."""

    async def main() -> None:
        async with client(Scenario(limits=LimitSpec(errors_per_hour=errors))) as http:
            address = "/api/v1/1001/crm/Accounts"
            assert (await http.get(address, headers={"Authorization": "Bearer old"})).status_code == 401
            assert (await http.post(address, json={})).status_code == 400
            missing = "00000000-0000-4000-8000-000000000000"
            assert (await http.get(f"{address}(guid'{missing}')")).status_code == 404
            assert (await http.get(address)).status_code == (429 if blocked else 200)
            assert (await http.get("/api/v1/1002/crm/Accounts")).status_code == 200

    run(main)
