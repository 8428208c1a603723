"""The documentation names everything that there is."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from mock_server.admin.operations import OPERATIONS
from mock_server.scenario import scenario_names
from mock_server.scenario.spec import (
    CompanySpec,
    Cost,
    CsrfSpec,
    FaultKind,
    FaultSpec,
    JitterSpec,
    LatencySpec,
    LimitSpec,
    OAuthSpec,
    Scenario,
    SlowdownSpec,
    SpreadSpec,
)

TEXT = (Path(__file__).parents[3] / "docs" / "mock-server.md").read_text(encoding="utf-8")
TABLES = ("limits", "latency", "company", "oauth", "csrf", "slowdowns", "faults")
MODELS = (
    CompanySpec, Cost, CsrfSpec, FaultSpec, JitterSpec, LatencySpec, LimitSpec, OAuthSpec, Scenario, SlowdownSpec,
    SpreadSpec,
)  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_each_key_of_a_scenario_is_documented(model: type[BaseModel]) -> None:
    """No key is known to the code alone."""
    missing = [key for key in model.model_fields if key not in TABLES and f"`{key}`" not in TEXT and key not in TEXT]

    assert missing == []
    assert all(f"[{table}" in TEXT for table in TABLES)


def test_each_scenario_that_comes_along_is_documented() -> None:
    """Nor is a scenario."""
    assert [name for name in scenario_names() if f"`{name}`" not in TEXT] == []


def test_each_kind_of_fault_is_documented() -> None:
    """Nor is a fault."""
    assert [kind for kind in FaultKind.__args__ if f"| `{kind}` |" not in TEXT] == []  # type: ignore[attr-defined]


def test_each_operation_of_the_admin_is_documented() -> None:
    """Nor is an address."""
    assert [one.path for one in OPERATIONS if one.path not in TEXT] == []
