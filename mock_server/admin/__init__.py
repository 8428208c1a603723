"""Admin: what a tester asks the mock itself, from this machine only."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mock_server.admin.guard import Handler, local
from mock_server.admin.handlers import Handlers
from mock_server.admin.openapi import openapi
from mock_server.admin.operations import OPERATIONS
from mock_server.admin.pages import PAGES, page
from mock_server.replies import Reply
from mock_server.world import World

__all__ = ["admin_app", "is_admin"]


def is_admin(path: str) -> bool:
    """Say whether a path is the mock's own and not one of the platform's."""
    return not path.startswith("/api/") and (path.startswith("/_mock") or path in PAGES or path == "/metrics")


def admin_app(world: World) -> Starlette:
    """Return the operations of the admin, its description, and the pages of the dashboard."""
    handlers = Handlers(world)
    routes = [
        Route(one.path, local(getattr(handlers, one.handler)), methods=[one.method], name=one.handler)
        for one in OPERATIONS
    ]
    document = openapi(OPERATIONS)
    routes += [
        Route("/_mock/openapi.json", local(_fixed(Reply(200, document, b"application/json")))),
        Route("/_mock/events", local(handlers.events)),
        *(Route(path, local(_fixed(page(path)))) for path in PAGES),
    ]
    return Starlette(routes=routes)


def _fixed(reply: Reply) -> Handler:
    async def answer(_: Request) -> Response:
        return Response(reply.body, headers={"content-type": reply.content_type.decode(), "cache-control": "no-cache"})

    return answer
