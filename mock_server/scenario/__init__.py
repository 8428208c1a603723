"""Scenarios: what the mock plays, as checked data."""

from mock_server.scenario.load import (
    ScenarioError,
    check_scenario,
    load_scenario,
    parse_scenario,
    scenario_folder,
    scenario_names,
)
from mock_server.scenario.spec import (
    BatchMode,
    CompanySpec,
    Cost,
    CsrfSpec,
    Endpoint,
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

__all__ = [
    "BatchMode", "CompanySpec", "Cost", "CsrfSpec", "Endpoint", "FaultKind", "FaultSpec", "JitterSpec", "LatencySpec",
    "LimitSpec", "OAuthSpec", "Scenario", "ScenarioError", "SlowdownSpec", "SpreadSpec", "check_scenario",
    "load_scenario", "parse_scenario", "scenario_folder", "scenario_names",
]  # fmt: skip
