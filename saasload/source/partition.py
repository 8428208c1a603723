"""Decide which company each row belongs to, and which companies take part."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from saasload.errors import UsageError
from saasload.source.query import Predicate, looks_like_query, parse_query

COMPANY_COLUMN = "company"


class Refused(IntEnum):
    """Why a row has no company to go to, as the code it gets instead of one."""

    NO_COMPANY = -1
    UNKNOWN_COMPANY = -2
    COMPANY_NOT_PICKED = -3
    UNREADABLE = -4

    @property
    def reason(self) -> str:
        """The stable word for notes and reports.

        >>> Refused.COMPANY_NOT_PICKED.reason
        'company-not-picked'
        """
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class CompanyInfo:
    """A company the target has: its code and what else the target tells of it."""

    code: str
    fields: Mapping[str, object] = field(default_factory=dict)


class Assign(Protocol):
    """Gives each row its company."""

    @property
    def companies(self) -> Sequence[str]:
        """The companies rows may go to, in order; a row's code is a place in this list."""

    def codes(self, batch: Any, first_row: int) -> Any:
        """Return an int32 `pyarrow.Array`, for each row of the batch the company's place or a `Refused`."""


class ByColumn:
    """By what a column says: numbers without a .0, text without spaces around it."""

    def __init__(self, schema: Any, column: str, *, companies: Sequence[str], known: Collection[str] = ()) -> None:
        """Look for `companies` in `column`; the target has those in `known` too, but they were not picked."""
        kind = schema.field(column).type
        if not _can_name_companies(kind):
            message = f"column {column!r} holds {kind}; companies are named by text or whole numbers"
            raise UsageError(message)
        self.companies: Sequence[str] = tuple(dict.fromkeys(companies))
        self._column = column
        others = sorted(set(known).difference(self.companies))
        self._names = pa.array([*self.companies, *others], pa.string())
        places = [*range(len(self.companies)), *[int(Refused.COMPANY_NOT_PICKED)] * len(others)]
        self._codes = pa.array(places, pa.int32())

    def codes(self, batch: Any, first_row: int) -> Any:  # noqa: ARG002 - the protocol's signature
        """Return each row's company."""
        text = company_text(batch.column(self._column))
        found = self._codes.take(pc.index_in(text, value_set=self._names))
        nothing = pc.if_else(
            pc.fill_null(pc.equal(text, ""), fill_value=True),
            pa.scalar(int(Refused.NO_COMPANY), pa.int32()),
            pa.scalar(int(Refused.UNKNOWN_COMPANY), pa.int32()),
        )
        return pc.coalesce(found, nothing)


class Dealt:
    """Evenly, like cards: row 1 to the first company, row 2 to the second, and round again."""

    def __init__(self, companies: Sequence[str]) -> None:
        """Deal over `companies`."""
        self.companies: Sequence[str] = tuple(dict.fromkeys(companies))
        if not self.companies:
            message = "no company to deal rows to"
            raise UsageError(message)
        self._round = pa.array(range(len(self.companies)), pa.int32())
        self._rounds = self._round

    def codes(self, batch: Any, first_row: int) -> Any:
        """Return each row's company."""
        count = len(self.companies)
        start = (first_row - 1) % count
        while len(self._rounds) < start + batch.num_rows:
            times = max(2, -(-batch.num_rows // count) + 1)
            self._rounds = pa.concat_arrays([self._round] * times)
        return self._rounds.slice(start, batch.num_rows)


def company_text(array: Any) -> Any:
    """Write a column as company codes.

    >>> company_text(pa.array([1001.0, None])).to_pylist(), company_text(pa.array([" 007 "])).to_pylist()
    (['1001', None], ['007'])
    """
    kind = array.type
    if pa.types.is_floating(kind):
        number = array.cast(pa.float64())
        # past 2**53 a float no longer knows its last digit, so it names no company
        exact = pc.and_(pc.equal(number, pc.round(number)), pc.less(pc.abs(number), float(2**53)))
        whole = pc.if_else(exact, number, pa.scalar(None, pa.float64())).cast(pa.int64()).cast(pa.string())
        return pc.coalesce(whole, number.cast(pa.string()))
    text = array.cast(pa.string())
    if pa.types.is_decimal(kind) and kind.scale > 0:
        return pc.replace_substring_regex(text, r"\.0+$", "")
    if pa.types.is_decimal(kind):
        return text
    return pc.utf8_trim_whitespace(text)


def _can_name_companies(kind: Any) -> bool:
    """Whether values of this type can be company codes."""
    checks = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return any(check(kind) for check in checks)


def company_column(columns: Sequence[str], name: str | None = None) -> str | None:
    """Find the column that names the company: `name`, or the one called "company", or None.

    >>> company_column(["Code", "Company"])
    'Company'
    """
    wanted = COMPANY_COLUMN if name is None else name
    if wanted in columns:
        return wanted
    by_plain = {column.strip().casefold(): column for column in columns}
    found = by_plain.get(wanted.strip().casefold())
    if found is None and name is not None:
        message = f"no column {name!r}{_nearest(name, columns)}; the source has {', '.join(columns)}"
        raise UsageError(message)
    return found


def pick_companies(
    companies: Sequence[CompanyInfo],
    selection: str,
    limit: int | None,
    *,
    read_text: Callable[[str], str] | None = None,
) -> list[CompanyInfo]:
    """Return the companies that take part, each once.

    `selection` is "all", codes with commas between them, "@file" with a code a line (`read_text` reads it), or a
    query over what the target tells of its companies. All and queries keep the target's order, codes their own.
    `limit` takes the first so many.
    """
    by_code = {company.code: company for company in reversed(companies)}
    every = list(dict.fromkeys(company.code for company in companies))
    selection = selection.strip()
    if selection.startswith("@"):
        if read_text is None:
            message = f"companies {selection}: a file cannot be read here"
            raise UsageError(message)
        picked = _known(parse_company_file(read_text(selection[1:])), every)
    elif selection.casefold() == "all":
        picked = every
    elif looks_like_query(selection) and selection not in by_code:
        names = dict.fromkeys(name for company in companies for name in company.fields)
        wanted = _query(selection, ["code", *names] if companies else None)
        picked = [code for code in every if wanted({"code": code, **by_code[code].fields})]
    else:
        picked = _known([code.strip() for code in selection.split(",") if code.strip()], every)
    if not picked:
        message = f"--companies {selection}: none of the target's {len(every)} companies"
        raise UsageError(message)
    return [by_code[code] for code in _first(picked, limit)]


def check_selection(selection: str, *, read_text: Callable[[str], str]) -> None:
    """Try what `pick_companies` will read, before there is a target to ask: a file is there, a query is one."""
    selection = selection.strip()
    if selection.startswith("@"):
        read_text(selection[1:])
    elif looks_like_query(selection):
        _query(selection, None)


def _query(text: str, fields: Collection[str] | None) -> Predicate:
    try:
        return parse_query(text, fields)
    except UsageError as error:
        message = f"--companies: {error}"
        raise UsageError(message) from error


def _first(picked: Sequence[str], limit: int | None) -> Sequence[str]:
    """Take the first `limit` of them."""
    if limit is None:
        return picked
    if limit < 1:
        message = f"{limit} companies asked for; at least 1"
        raise UsageError(message)
    if limit > len(picked):
        message = f"{limit} companies asked for, only {len(picked)} to pick from"
        raise UsageError(message)
    return picked[:limit]


def _known(codes: Sequence[str], every: Sequence[str]) -> list[str]:
    """Take each code once; all must be the target's."""
    there = set(every)
    missing = [code for code in dict.fromkeys(codes) if code not in there]
    if missing:
        code = missing[0]
        more = f" (and {len(missing) - 1} more unknown)" if len(missing) > 1 else ""
        message = f"--companies: company {code!r}: the target does not have it{_nearest(code, every)}{more}"
        raise UsageError(message)
    return list(dict.fromkeys(codes))


def _nearest(name: str, names: Collection[str]) -> str:
    """Suggest the name that was meant, if one is near."""
    plain = {other.casefold(): other for other in names}
    near = get_close_matches(name.casefold(), plain, n=1, cutoff=0.5)
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def parse_company_file(text: str) -> list[str]:
    r"""Return the codes of a list, one a line; # begins a comment.

    >>> parse_company_file("1001  # the first\n\n1002\n")
    ['1001', '1002']
    """
    lines = (line.split("#", 1)[0].strip() for line in text.removeprefix("\ufeff").splitlines())
    return [line for line in lines if line]
