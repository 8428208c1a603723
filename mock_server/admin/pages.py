"""Pages: the files of the dashboard, which come along with the package."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mock_server.replies import HTML, Reply

_FOLDER = Path(__file__).parent.parent / "dashboard"

PAGES: Mapping[str, tuple[str, bytes]] = MappingProxyType({
    "/": ("index.html", HTML),
    "/dashboard/app.js": ("app.js", b"text/javascript; charset=utf-8"),
    "/dashboard/chart.js": ("chart.js", b"text/javascript; charset=utf-8"),
    "/dashboard/style.css": ("style.css", b"text/css; charset=utf-8"),
})  # fmt: skip
"""The file behind each address, and its type."""


def page(path: str) -> Reply:
    """Return a file of the dashboard."""
    name, content_type = PAGES[path]
    return Reply(200, (_FOLDER / name).read_bytes(), content_type)
