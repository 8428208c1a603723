"""A load's process starts with what it needs, and gives up no check for it."""

import gc
import subprocess
import sys

import pytest

from saasload.cli import lean
from saasload.transport.network import Network, tls_context

UNUSED = (
    "numpy",
    "rich",
    "click",
    "pygments",
    "lxml",
    "redis",
    "requests",
    "duckdb",
    "matplotlib",
    "scipy",
    "pyarrow._s3fs",
)


def program(code: str) -> str:
    """Run some lines after a load's imports, as the program does them; return what they print."""
    lines = f"""
import gc, sys
from saasload.cli import lean
lean.begin()
with lean.imports():
    import saasload.engine, saasload.telemetry, saasload.transport.over_aiohttp
{code}
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", lines], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_load_imports_nothing_that_it_does_not_use() -> None:
    """Half a second of a small load went into libraries of libraries."""
    assert program(f"print(sorted(set({UNUSED}) & set(sys.modules)))") == "[]"


@pytest.mark.parametrize("name", ["numpy", "httpx._main", "pyarrow.vendored.docscrape", "pyarrow._hdfs"])
def test_what_was_left_out_can_be_imported_later(name: str) -> None:
    """Leaving out is for the imports of a load only."""
    assert program(f"import importlib; print(importlib.import_module({name!r}).__name__)") == name


def test_a_target_is_trusted_by_the_systems_authorities_all_the_same() -> None:
    """Our own context is made afterwards, with every authority there is."""
    code = """
import ssl
from saasload.transport.network import Network, tls_context
print("set_default_verify_paths" in vars(ssl.SSLContext), len(tls_context(Network()).get_ca_certs()))
"""

    assert program(code) == f"False {len(tls_context(Network()).get_ca_certs())}"


def test_a_context_of_the_librarys_own_accepts_no_server() -> None:
    """What has lost its authorities verifies still, so it can only refuse."""
    code = """
import ssl
from aiohttp import connector
context = connector._SSL_CONTEXT_VERIFIED
print(context.verify_mode == ssl.CERT_REQUIRED, context.check_hostname, len(context.get_ca_certs()))
"""

    assert program(code) == "True True 0"


def test_garbage_is_collected_seldom_once_the_load_begins() -> None:
    """Only what the imports made is left out."""
    assert program("print(gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 50_000)") == "True 20000 True"


def test_a_function_of_pyarrow_works_without_its_manual_page() -> None:
    """The stand-in for what writes them is gone."""
    assert program("import pyarrow.compute as pc; print(pc.round(1.26, ndigits=1), pc.round.__name__)") == "1.3 round"


def test_a_process_that_imports_us_is_left_as_it_is() -> None:
    """It is not ours: its modules, its trust and its garbage collection stay what they were."""
    frozen = gc.get_freeze_count()
    before = dict(sys.modules)

    with lean.imports():
        inside = dict(sys.modules)

    assert inside == before
    assert gc.get_freeze_count() == frozen
