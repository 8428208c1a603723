"""The admin's description of itself, for people and for tools that read OpenAPI 3.1."""

from collections.abc import Iterable
from typing import Any

import orjson

from mock_server.admin.operations import Operation, Parameter
from mock_server.scenario import FaultSpec, Scenario

_TITLE = "Admin of the mock accounting cloud"
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_PLAIN: dict[str, Any] = {
    "Switch": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],
               "additionalProperties": False},
    "Pace": {"type": "object", "required": ["time_scale"], "additionalProperties": False,
             "properties": {"time_scale": {"type": "number", "minimum": 0.001, "maximum": 1_000_000}}},
    "Error": _ERROR,
}  # fmt: skip


def openapi(operations: Iterable[Operation]) -> bytes:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    schemas = dict(_PLAIN)
    for name, model in (("Scenario", Scenario), ("Fault", FaultSpec)):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[name] = schema
    document = {
        "openapi": "3.1.0",
        "info": {"title": _TITLE, "version": "1", "description": "It answers this machine only."},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    return orjson.dumps(document)


def _operation(one: Operation) -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}} if one.answers == "text/plain" else {one.answers: {}}
    responses: dict[str, Any] = {"200": {"description": "done", "content": content}}
    for status in (403, *one.refusals):
        reference = {"schema": {"$ref": "#/components/schemas/Error"}}
        responses[str(status)] = {"description": "refused", "content": {"application/json": reference}}
    found: dict[str, Any] = {
        "operationId": one.handler + ("_root" if one.path == "/metrics" else ""),
        "summary": one.says,
        "parameters": [_parameter(parameter) for parameter in one.parameters],
        "responses": responses,
    }
    if one.body:
        schema = {"$ref": f"#/components/schemas/{one.body}"}
        required = not any(parameter.where == "query" for parameter in one.parameters)
        found["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return found


def _parameter(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name, "in": one.where, "description": one.says, "required": one.where == "path",
        "schema": dict(one.schema),
    }  # fmt: skip
