"""Load rows into partitioned SaaS platforms, with a known outcome for every row.

    from saasload import Job, push_sync

    report = push_sync(Job(source="customers.parquet", to="https://…", partitions=100))
    print(report.accepted, report.rejected, report.in_doubt, report.unsent)

The names below are the public ones; everything else may change from one version to the next.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saasload.engine import Live, Resume, Surroundings, push, push_sync, resume, resume_sync
    from saasload.errors import (
        ConfigError,
        RunFolderError,
        SaasloadError,
        SignInError,
        TargetError,
        UsageError,
    )
    from saasload.job import Job, make_job
    from saasload.profile import PlatformProfile, load_profile
    from saasload.run.report import ExitCode, Report

# Loaded when first asked for: `saasload --help` must not pay for Arrow and the HTTP engine.
_HOMES = {
    "ConfigError": "errors",
    "ExitCode": "run.report",
    "Job": "job",
    "Live": "engine",
    "PlatformProfile": "profile",
    "Report": "run.report",
    "Resume": "engine",
    "RunFolderError": "errors",
    "SaasloadError": "errors",
    "SignInError": "errors",
    "Surroundings": "engine",
    "TargetError": "errors",
    "UsageError": "errors",
    "load_profile": "profile",
    "make_job": "job",
    "push": "engine",
    "push_sync": "engine",
    "resume": "engine",
    "resume_sync": "engine",
}

__all__ = [
    "ConfigError",
    "ExitCode",
    "Job",
    "Live",
    "PlatformProfile",
    "Report",
    "Resume",
    "RunFolderError",
    "SaasloadError",
    "SignInError",
    "Surroundings",
    "TargetError",
    "UsageError",
    "load_profile",
    "make_job",
    "push",
    "push_sync",
    "resume",
    "resume_sync",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the room it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 with the first name that is asked for

    return getattr(import_module(f"saasload.{_HOMES[name]}"), name)
