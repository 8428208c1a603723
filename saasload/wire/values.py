"""Turn source columns into the plain values an entity's fields take, exactly.

A value that does not fit its field is a problem of its row, never of the batch: every
function here returns the values beside the rows that are at fault.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from saasload.model import Note
from saasload.profile import FieldSpec

# XML 1.0 section 2.2 forbids these; no accounting platform stores them from JSON either.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

SIGNS = bytes(range(0x20)) + b'"&<>\\\xef'
"""Bytes that make a text need a second look: control characters, what JSON or XML escapes, and the first byte of
U+FFFE and U+FFFF (and of others)."""

_ORDINARY = bytes(sorted(set(range(256)) - set(SIGNS)))

Plain = str | int | bool | None


@dataclass(frozen=True)
class Column:
    """One field's values for some rows, in row order: an Arrow array of texts, whole numbers or booleans.

    `absent` tells whether any is null, `texts` that the others are texts. Of texts, `shortest` and `longest` are the
    lengths in bytes of UTF-8, and `signs` tells which of the `SIGNS` occur: only a field of type text holds any.
    """

    name: str
    array: Any
    absent: bool
    texts: bool
    signs: bytes = b""
    shortest: int = 1
    longest: int = 0

    @cached_property
    def values(self) -> Sequence[Plain]:
        """The values as Python's own, None where there is none."""
        found: Sequence[Plain] = self.array.to_pylist()
        return found


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as the entity's fields: columns side by side, and what is wrong with which row.

    `problems` is by position in the table.
    """

    rows: Sequence[int]
    columns: Sequence[Column]
    problems: Mapping[int, Note]

    def column(self, name: str) -> Column | None:
        """Find a column by the name of its field."""
        return next((column for column in self.columns if column.name == name), None)


def tabulate(batch: pa.RecordBatch, rows: Sequence[int], fields: Mapping[str, tuple[str, FieldSpec]]) -> Table:
    """Convert a batch: `fields` gives, by field name, the source column and what the field takes."""
    problems: dict[int, Note] = {}
    columns = []
    for name, (source, spec) in fields.items():
        array = _flat(batch.column(source))
        converted = _converted(array, CONVERTERS[spec.type])
        values = converted.array if not pa.types.is_null(converted.array.type) else pa.nulls(len(array), pa.string())
        column = _column(name, values, spec)
        if spec.type == "text":
            _check_text(column, spec, problems)
        for place in converted.misfits:
            note = Note("does-not-fit", f"{_shown(array[place])} is not {ARTICLES[spec.type]}", name)
            problems.setdefault(place, note)
        if spec.required:
            _check_present(column, problems)
        columns.append(column)
    return Table(rows, columns, problems)


def signs_in(array: Any) -> bytes:
    """Tell which of the `SIGNS` occur in an array of texts, at the speed of memory: all texts are looked at as one.

    >>> signs_in(pa.array(["plain", None, "R&D"]))
    b'&'
    """
    _, ends, data = array.buffers()
    if data is None or not len(array):
        return b""
    offsets = memoryview(ends).cast("i")
    texts = memoryview(data)[offsets[array.offset] : offsets[array.offset + len(array)]]
    return bytes(set(bytes(texts).translate(None, _ORDINARY)))


def _column(name: str, array: Any, spec: FieldSpec) -> Column:
    absent = array.null_count > 0
    if spec.type in {"bool", "integer"}:
        return Column(name, array, absent, texts=False)
    if spec.type != "text":
        return Column(name, array, absent, texts=True)  # converted by a pattern, which no empty text matches
    lengths = pc.min_max(pc.binary_length(array))
    shortest, longest = lengths["min"].as_py(), lengths["max"].as_py()
    signs = signs_in(array)
    if longest is None:
        return Column(name, array, absent, texts=True)
    return Column(name, array, absent, texts=True, signs=signs, shortest=shortest, longest=longest)


def _check_present(column: Column, problems: dict[int, Note]) -> None:
    if not column.absent and column.shortest:
        return
    for place, value in enumerate(column.values):
        if value is None or value == "":
            problems.setdefault(place, Note("missing", f"{column.name} is required", column.name))


@dataclass(frozen=True, slots=True)
class _Converted:
    """An array of the field's own kind, null where a value is absent or does not fit."""

    array: Any
    misfits: Sequence[int] = ()


ARTICLES = {
    "text": "text",
    "integer": "a whole number",
    "decimal": "a plain number",
    "date": "a date (YYYY-MM-DD)",
    "datetime": "a date and time (YYYY-MM-DDTHH:MM:SS)",
    "bool": "true or false",
    "guid": "a guid",
}


def _flat(array: Any) -> Any:
    """Give a column a type that all of Arrow's functions take."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type) or pa.types.is_large_string(array.type):
        return pc.cast(array, pa.string())
    return pc.cast(array, pa.float32()) if pa.types.is_float16(array.type) else array


def _converted(array: Any, convert: Callable[[Any], _Converted]) -> _Converted:
    """Convert a column; where one value stops Arrow, halve until it stands alone, for the others are well."""
    try:
        return convert(array)
    except pa.ArrowNotImplementedError:
        return _misfit(array)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        if len(array) == 1:
            return _Converted(pa.nulls(1), [0])
        middle = len(array) // 2
        left, right = _converted(array[:middle], convert), _converted(array[middle:], convert)
        misfits = [*left.misfits, *(middle + place for place in right.misfits)]
        return _Converted(_joined(left.array, right.array), misfits)


def _joined(first: Any, second: Any) -> Any:
    """Put two halves together; one in which nothing was left has no type of its own."""
    if pa.types.is_null(first.type):
        first = first.cast(second.type)
    return pa.concat_arrays([first, second.cast(first.type)])


def _shown(value: Any) -> str:
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):
        return "a value beyond what can be shown"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_text(array: Any) -> bool:
    kind = array.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _misfit(array: Any) -> _Converted:
    """Refuse every value there is, for a column whose type cannot become the field's."""
    return _Converted(pa.nulls(len(array)), _places(pc.is_valid(array)))


def _checked(array: Any, misfits: Sequence[int] = ()) -> _Converted:
    """Take texts as they are; ArrowInvalid where they are not UTF-8."""
    array.validate(full=True)
    return _Converted(array, misfits)


def _places(mask: Any) -> list[int]:
    """Return the positions at which a boolean array is true."""
    return pc.indices_nonzero(pc.fill_null(mask, fill_value=False)).to_pylist()  # type: ignore[no-any-return]


def _matching(array: Any, pattern: str) -> tuple[Any, list[int]]:
    """Blank the texts that do not match a pattern, and say where they were. Empty text is absent."""
    array = pc.if_else(pc.equal(array, ""), None, array)
    good = pc.match_substring_regex(array, pattern)
    misfits = _places(pc.invert(good))
    return (pc.if_else(pc.fill_null(good, fill_value=False), array, None) if misfits else array), misfits


def _as_text(array: Any) -> _Converted:
    if _is_text(array):
        return _checked(array)
    if pa.types.is_decimal(array.type):
        return _as_decimal(array)
    if pa.types.is_boolean(array.type) or pa.types.is_integer(array.type) or pa.types.is_date(array.type):
        return _Converted(pc.cast(array, pa.string()))
    return _misfit(array)


def _as_integer(array: Any) -> _Converted:
    if pa.types.is_integer(array.type):
        return _Converted(array)
    if _is_text(array):
        array, misfits = _matching(array, r"^[+-]?[0-9]{1,18}$")
        return _Converted(pc.cast(pc.replace_substring_regex(array, r"^\+", ""), pa.int64()), misfits)
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        whole = pc.fill_null(pc.equal(array, pc.floor(array)), fill_value=False)
        misfits = _places(pc.and_(pc.invert(whole), pc.is_valid(array)))
        return _Converted(pc.cast(pc.if_else(whole, array, None), pa.int64()), misfits)
    return _misfit(array)


def decimal_text(value: Decimal) -> str:
    """Write a decimal with its own digits and never an exponent.

    >>> decimal_text(Decimal("0E-10"))
    '0.0000000000'
    """
    return format(value, "f")


def _as_decimal(array: Any) -> _Converted:
    if pa.types.is_decimal(array.type):
        if -10 < array.type.scale < 7 and array.type.scale >= 0:
            # Arrow writes an exponent only where the adjusted one is below -6: never with a scale under 7.
            return _Converted(pc.cast(array, pa.string()))
        values = [None if value is None else decimal_text(value) for value in array.to_pylist()]
        return _Converted(pa.array(values, pa.string()))
    if pa.types.is_integer(array.type):
        return _Converted(pc.cast(array, pa.string()))
    if _is_text(array):
        array, misfits = _matching(array, r"^-?[0-9]{1,38}(\.[0-9]{1,38})?$")
        # JSON has no numbers with zeros before them (RFC 8259 section 6).
        return _Converted(pc.replace_substring_regex(array, r"^(-?)0+([0-9])", r"\1\2"), misfits)
    if pa.types.is_floating(array.type):
        # The shortest digits that read back as the same float, of its own width: what the person who wrote it saw.
        values, misfits = [], []
        for place, text in enumerate(pc.cast(array, pa.string()).to_pylist()):
            finite = text is not None and text[-1].isdigit()
            values.append(decimal_text(Decimal(text)) if finite else None)
            if text is not None and not finite:
                misfits.append(place)
        return _Converted(pa.array(values, pa.string()), misfits)
    return _misfit(array)


# The years that the platforms' own calendars have.
_DAY = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"


def _as_date(array: Any) -> _Converted:
    if pa.types.is_date32(array.type) and _in_calendar(array):
        return _Converted(pc.cast(array, pa.string()))
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        return _Converted(*_matching(pc.strftime(array, format="%Y-%m-%d"), f"^{_DAY}$"))
    if _is_text(array):
        return _parsed(array, f"^{_DAY}$", pa.date32())
    return _misfit(array)


def _in_calendar(days: Any) -> bool:
    """Tell whether all days are of the years 1 to 9999, without a look at each as text."""
    ends = pc.min_max(days.cast(pa.int32()))
    first, last = ends["min"].as_py(), ends["max"].as_py()
    return first is None or (first >= -719_162 and last <= 2_932_896)


def _as_datetime(array: Any) -> _Converted:
    if pa.types.is_date(array.type):
        array = pc.cast(array, pa.timestamp("s"))
    if pa.types.is_timestamp(array.type):
        if array.type.unit != "s":
            array = pc.cast(pc.floor_temporal(array, unit="millisecond"), pa.timestamp("ms", array.type.tz))
        # Arrow writes as many decimals of a second as the type has.
        texts = pc.replace_substring_regex(pc.strftime(array, format="%Y-%m-%dT%H:%M:%S"), r"\.000$", "")
        return _Converted(*_matching(texts, f"^{_DAY}T"))
    if _is_text(array):
        return _parsed(array, rf"^{_DAY}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,3}})?$", pa.timestamp("ms"))
    return _misfit(array)


def _parsed(array: Any, pattern: str, kind: Any) -> _Converted:
    """Take texts of a shape that also are a real date, such as not 2026-02-30."""
    array, misfits = _matching(array, pattern)
    try:
        pc.cast(array, kind)
    except pa.ArrowInvalid:
        values = array.to_pylist()
        for place, value in enumerate(values):
            try:
                pc.cast(pa.scalar(value), kind)
            except pa.ArrowInvalid:
                misfits.append(place)
                values[place] = None
        return _Converted(pa.array(values, array.type), misfits)
    return _Converted(array, misfits)


_BOOL_TEXTS = {"true": True, "false": False, "1": True, "0": False}


def _as_bool(array: Any) -> _Converted:
    if pa.types.is_boolean(array.type):
        return _Converted(array)
    if _is_text(array) or pa.types.is_integer(array.type):
        values: list[bool | None] = []
        misfits = []
        for place, value in enumerate(array.to_pylist()):
            known = _BOOL_TEXTS.get(str(value).strip().lower())
            values.append(known)
            if known is None and value not in (None, ""):
                misfits.append(place)
        return _Converted(pa.array(values, pa.bool_()), misfits)
    return _misfit(array)


def _as_guid(array: Any) -> _Converted:
    if not _is_text(array):
        return _misfit(array)
    array, misfits = _matching(array, r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$")
    return _Converted(pc.utf8_lower(array), misfits)


CONVERTERS: Mapping[str, Callable[[Any], _Converted]] = {
    "text": _as_text,
    "integer": _as_integer,
    "decimal": _as_decimal,
    "date": _as_date,
    "datetime": _as_datetime,
    "bool": _as_bool,
    "guid": _as_guid,
}


def _check_text(column: Column, spec: FieldSpec, problems: dict[int, Note]) -> None:
    """Find forbidden characters and over-long text; lengths are in UTF-16 units, as the platforms count."""
    if column.signs.translate(None, b'"&<>\\\t\n\r'):
        for place, text in enumerate(column.values):
            if text and FORBIDDEN.search(str(text)):
                problems.setdefault(place, Note("invalid-character", "holds a control character", column.name))
    limit = spec.max_length
    # No text has more UTF-16 units than bytes.
    if limit is None or column.longest <= limit:
        return
    for place, text in enumerate(column.values):
        units = utf16_units(str(text)) if text else 0
        if units > limit:
            message = f"{units} characters, {column.name} takes {limit}"
            problems.setdefault(place, Note("too-long", message, column.name))


def utf16_units(text: str) -> int:
    """Count a text as .NET, Java and JavaScript do.

    >>> utf16_units("a😀")
    3
    """
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
