"""Check a job against its profile and its source, before anything is opened or sent."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pydantic import SecretStr

from saasload.errors import UsageError
from saasload.job import EMBEDDED, Job
from saasload.model import ROW_COLUMN
from saasload.names import nearest
from saasload.profile import EntitySpec, Mode, PlatformProfile
from saasload.source.partition import company_column
from saasload.wire import WireFormat, wire_format
from saasload.wire.lookup import LookUp
from saasload.wire.render import Fields

ADDED = frozenset({"row", "field", "reason", "status", "message"})
"""The columns that a run's row files have beside the source's."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that can run: `fields` gives, by entity field, the source column it comes from and what it takes.

    `company_column` is None where rows are dealt; `unused` are the source's columns that go nowhere; `look_up` is
    how rows in doubt are read back, None where the profile says no way.
    """

    job: Job
    profile: PlatformProfile
    entity: EntitySpec
    mode: Mode
    wire: WireFormat
    look_up: LookUp | None
    fields: Fields
    company_column: str | None
    unused: Sequence[str]
    token: SecretStr


def prepare(job: Job, profile: PlatformProfile, schema: Any) -> Prepared:
    """Check everything that can be checked without the target; UsageError or ConfigError says what to mend.

    `schema` is the source's `pyarrow.Schema`.
    """
    columns = [name for name in schema.names if name != ROW_COLUMN]
    entity = profile.entity(job.entity)
    mode = _mode(job, entity)
    wire = wire_format(profile, entity, mode)
    _bound(job, wire)
    company = company_column(columns, job.partition_by)
    fields = _fields(job, entity, columns, company)
    for name, (column, _) in fields.items():
        kind = schema.field(column).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            message = f"{job.source.name}: column {column} holds {kind}, which {name} cannot take; make it plain first"
            raise UsageError(message)
    if wire.needs_key and entity.key not in fields:
        others = [other for other in entity.modes if other != mode]
        message = (
            f"{job.source.name}: no column for {entity.key}, by which {mode} matches answers to rows; "
            f"map one with --field {entity.key}=COLUMN, or use --mode {' or '.join(others)}"
        )
        raise UsageError(message)
    used = {column for column, _ in fields.values()} | {company}
    unused = [column for column in columns if column not in used]
    look_up = None if entity.look_up is None else LookUp(profile, entity, entity.look_up, list(fields))
    return Prepared(job, profile, entity, mode, wire, look_up, fields, company, unused, _token(job, profile))


def _mode(job: Job, entity: EntitySpec) -> Mode:
    if job.mode is None:
        return entity.modes[0]
    if job.mode not in entity.modes:
        message = (
            f"--mode {job.mode}: {job.entity} cannot travel so; profile {job.profile} has {', '.join(entity.modes)}"
        )
        raise UsageError(message)
    return job.mode


def _bound(job: Job, wire: WireFormat) -> None:
    """Apply the job's own bounds to the format; they may only be tighter than the platform's."""
    for option, wanted, name in (
        ("--rows-per-call", job.rows_per_call, "max_rows"),
        ("--bytes-per-call", job.bytes_per_call, "max_bytes"),
    ):
        allowed = getattr(wire, name)
        if wanted is not None and wanted > allowed:
            message = f"{option} {wanted:,}: {wire.name} takes at most {allowed:,} on this platform"
            raise UsageError(message)
        if wanted is not None:
            setattr(wire, name, wanted)
    if wire.max_bytes <= wire.overhead:
        message = f"--bytes-per-call {wire.max_bytes:,}: an empty call weighs {wire.overhead:,} bytes"
        raise UsageError(message)


def _fields(job: Job, entity: EntitySpec, columns: Sequence[str], company: str | None) -> Fields:
    """Find each field's column: the one mapped to it, else the one of its name in any case."""
    for field, column in job.fields.items():
        if field not in entity.fields:
            message = f"--field {field}={column}: {job.entity} has no such field; {nearest(field, entity.fields)}"
            raise UsageError(message)
        if column not in columns:
            message = f"--field {field}={column}: {job.source.name} has no such column; {nearest(column, columns)}"
            raise UsageError(message)
    mapped = set(job.fields.values())
    # A file that a run has left, corrected and pushed again: what was added to it is no data.
    if {column.casefold() for column in columns} >= ADDED:
        mapped |= {column for column in columns if column.casefold() in ADDED}
    folded = {column.strip().casefold(): column for column in columns if column not in mapped | {company}}
    found = {}
    for name, spec in entity.fields.items():
        source_column = job.fields.get(name) or folded.get(name.casefold())
        if source_column is not None:
            found[name] = (source_column, spec)
        elif spec.required:
            message = (
                f"{job.source.name}: no column for {name}, which every {job.entity} needs; "
                f"map one with --field {name}=COLUMN (columns: {', '.join(columns)})"
            )
            raise UsageError(message)
    return found


def _token(job: Job, profile: PlatformProfile) -> SecretStr:
    """Find the token: the job's, else the environment's, else the practice one that opens nothing but a mock."""
    if job.token is not None:
        return job.token
    if job.token_file is not None:
        return SecretStr("")
    found = "" if job.to == EMBEDDED else os.environ.get(profile.token_env, "")
    token = found or profile.practice_token or ""
    if not token:
        message = f"no token for {job.to}; put it in the environment variable {profile.token_env}"
        raise UsageError(message)
    if not token.isascii() or not token.isprintable() or " " in token:
        message = f"{profile.token_env}: not a token: it holds spaces, line ends or letters outside ASCII"
        raise UsageError(message)
    return SecretStr(token)
