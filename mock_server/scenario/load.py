"""Reading scenarios: from a file or by name, checked, with the place of a mistake in the message."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from mock_server.scenario.checks import Mistake, find_mistake
from mock_server.scenario.spec import Scenario

Place = tuple[int | str, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\")(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"))*)\s*=")
_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")


class ScenarioError(Exception):
    """A scenario cannot be used; the text is one line with file, line, key and reason."""


def scenario_folder() -> Path:
    """Return the folder of the scenarios that come along: in a wheel inside the package, else beside it."""
    here = Path(__file__).parent.parent
    inside = here / "configs" / "scenarios"
    return inside if inside.is_dir() else here.parent / "configs" / "scenarios"


def scenario_names() -> tuple[str, ...]:
    """Return the names of the scenarios that come along."""
    return tuple(sorted(path.stem for path in scenario_folder().glob("*.toml")))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Read a scenario by its name or from a file; raise `ScenarioError` with one line when it is wrong."""
    path = _find(str(name_or_path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"{path}: cannot be read: {reason}"
        raise ScenarioError(message) from error
    return parse_scenario(text, source=str(path), name=path.stem)


def parse_scenario(text: str, *, source: str, name: str) -> Scenario:
    """Check the text of a scenario; `source` is what messages begin with."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line = (found and found[1]) or str(text.count("\n") + 1)
        message = f"{source}:{line}: not TOML: {_LINE.sub('', str(error)).strip()}"
        raise ScenarioError(message) from error
    return check_scenario({"name": name, **data}, source=source, text=text)


def check_scenario(data: Mapping[str, Any], *, source: str, text: str = "") -> Scenario:
    """Check the data of a scenario, and whether a load could come to an end; `text` is where lines are counted."""
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        mistake = Mistake(tuple(first["loc"]), _explain(first["type"], first["msg"], tuple(first["loc"])))
    else:
        found = find_mistake(scenario)
        if found is None:
            return scenario
        mistake = found
    where = f":{_line_of(text, mistake.place)}" if text else ""
    key = ".".join(str(step) for step in mistake.place) or "top level"
    raise ScenarioError(f"{source}{where}: {key}: {mistake.text}")


def _find(name: str) -> Path:
    if name.endswith(".toml") or "/" in name or "\\" in name:
        return Path(name)
    path = scenario_folder() / f"{name}.toml"
    if path.is_file():
        return path
    near = difflib.get_close_matches(name, scenario_names(), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(scenario_names())}"
    message = f"{name}: no such scenario, {hint}"
    raise ScenarioError(message)


def _explain(kind: str, message: str, where: Place) -> str:
    if kind != "extra_forbidden":
        message = message.removeprefix("Value error, ")
        return f"{message[:1].lower()}{message[1:]}"
    fields = _keys_at(where[:-1])
    near = difflib.get_close_matches(str(where[-1]), fields, n=1, cutoff=0.5)
    return "unknown key, " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(fields)}")


def _line_of(text: str, place: Place) -> int:
    """Return the line on which a key stands, or else the table that it belongs to."""
    wanted = tuple(str(step) for step in place)
    best, best_line = 0, 1
    for number, path in _paths(text):
        same = 0
        for here, there in zip(path, wanted, strict=False):
            if here != there:
                break
            same += 1
        if same > best and same == len(path):
            best, best_line = same, number
    return best_line


def _paths(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each line that names a table or a key, with the whole path to it."""
    table: tuple[str, ...] = ()
    counts: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if header is not None:
            table = _steps(header[2])
            if header[1] == "[[":
                place = counts[table] = counts.get(table, -1) + 1
                table = (*table, str(place))
            yield number, table
        elif key is not None:
            yield number, table + _steps(key[1])


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step.strip().strip('"') for step in path.split("."))


def _keys_at(where: Place) -> list[str]:
    """Return the keys that the table at `where` may have."""
    model: type[BaseModel] = Scenario
    for step in where:
        field = model.model_fields.get(str(step))
        if field is not None:
            model = _model_in(field.annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {dict, tuple, Union, UnionType, Annotated}:
        return next((model for arg in get_args(annotation) if (model := _model_in(arg)) is not None), None)
    return None
