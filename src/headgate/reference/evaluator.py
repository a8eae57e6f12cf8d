"""The reference evaluator: every query by its definition, over Python lists. It is the oracle; keep it plain and slow.

A tuple is a dict from column name to value. Times are datetimes in UTC, without a zone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from headgate.lang import Query, parse_query
from headgate.plan import (
    Aggregate,
    Band,
    Catalog,
    Distinct,
    Field,
    Filter,
    Join,
    Lookup,
    Node,
    Project,
    SameWindow,
    Source,
    Union,
    bind,
)
from headgate.plan.logical.nodes import ROW_NUM, WINDOW_END, WINDOW_START
from headgate.plan.logical.unfiltered import unfiltered
from headgate.reference.aggregates import aggregate, order_key
from headgate.reference.scalar import evaluate as value_of
from headgate.reference.scalar import truth
from headgate.windows import Number

Row = dict[str, Any]
Streams = Mapping[str, Sequence[Row]]
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_PRECISION = Decimal("1e-12")


def evaluate(
    sql: str | Query,
    schemas: Mapping[str, Mapping[str, str]] | None = None,
    tables: Collection[str] = (),
    **streams: Sequence[Row],
) -> list[Row]:
    """The answer of a query over lists of tuples. `tables` names the lists that are tables.

    `schemas` has the Spark types of a stream's columns, if they are to be checked.

    >>> bids = [{"price": 5, "ts": 1}, {"price": 7, "ts": 2}]
    >>> evaluate("SELECT max(price) AS top [RANGE 2, SLIDE 2, WA ts] FROM bids", bids=bids)
    [{'top': 5, 'window_start': 0, 'window_end': 2}, {'top': 7, 'window_start': 2, 'window_end': 4}]
    """
    schemas = schemas or {}
    catalog = Catalog(_source(name, rows, schemas.get(name, {}), name in tables) for name, rows in streams.items())
    return run(bind(sql.ast if isinstance(sql, Query) else parse_query(sql), catalog), streams)


def run(node: Node, streams: Streams) -> list[Row]:
    """The answer of a bound plan over lists of tuples."""
    match node:
        case Source(name=name, columns=columns, numbered=numbered):
            rows = [{c.name: row[c.name] for c in columns} for row in streams[name]]
            return _numbered(rows) if numbered else rows
        case Filter(input=below, predicate=predicate):
            return [row for row in run(below, streams) if truth(predicate, row)]
        case Project(input=below, columns=columns):
            return [{c.name: value_of(c.expression, row) for c in columns} for row in run(below, streams)]
        case Union(inputs_=inputs, numbered=numbered):
            names = [f.name for f in inputs[0].fields]
            rows = [dict(zip(names, row.values(), strict=True)) for i in inputs for row in run(i, streams)]
            return _numbered(rows) if numbered else rows
        case Join():
            return _join(node, streams)
        case Lookup():
            return _lookup(node, streams)
        case Distinct(input=below):
            return _distinct(node, run(below, streams))
        case Aggregate():
            return _aggregate(node, streams)
    raise TypeError(f"no definition for {type(node).__name__}")


def _join(node: Join, streams: Streams) -> list[Row]:
    lefts, rights = run(node.left, streams), run(node.right, streams)
    pairs = [{**left, **right} for left in lefts for right in rights]
    return [
        pair
        for pair in pairs
        if all(_meets(c, pair) for c in node.conditions) and (node.predicate is None or truth(node.predicate, pair))
    ]


def _lookup(node: Lookup, streams: Streams) -> list[Row]:
    table, found = run(node.table, streams), []
    nothing = {field.name: None for field in node.table.fields}
    for row in run(node.input, streams):
        pairs = [{**row, **other} for other in table]
        matches = [pair for pair in pairs if node.predicate is None or truth(node.predicate, pair)]
        found += matches or ([{**row, **nothing}] if node.outer else [])
    return found


def _distinct(node: Distinct, rows: Sequence[Row]) -> list[Row]:
    kept: list[Row] = []
    last: dict[tuple[Any, ...], Number] = {}
    placed = [(place(row[node.attribute]), row) for row in rows]
    known = [(at, row) for at, row in placed if at is not None]
    for at, row in sorted(known, key=lambda pair: (pair[0], [order_key(value) for value in pair[1].values()])):
        key = tuple(order_key(row[name]) for name in node.keys)
        if key not in last or at - last[key] >= node.range:
            kept.append(row)
        last[key] = at
    return kept


def _meets(condition: Band | SameWindow, pair: Row) -> bool:
    left, right = place(pair[condition.left]), place(pair[condition.right])
    if left is None or right is None:
        return False
    match condition:
        case Band(before=before, after=after):
            return bool(left - before <= right < left + after)
        case SameWindow(size=size):
            return bool(left // size == right // size)


def _aggregate(node: Aggregate, streams: Streams) -> list[Row]:
    rows = run(node.input, streams)
    attribute = node.attribute
    if node.window is None or attribute is None:
        return _groups(node, rows)
    placed = counted = _placed(rows, attribute)
    window: Any = node.window
    if node.window.by == "axis" and window.growing and not window.holds:
        counted = _placed(run(unfiltered(node.input), streams), attribute)
        window = window.whole  # Except over rows, a partition is only one more key.
    answers = []
    for w in window.windows(counted):
        start, end = window.bounds(w)
        extent = [t["_row"] for t in window.extent(w, placed)]
        if not extent:  # Tuples that the filter takes away still count for the ids of a landmark query.
            continue
        bounds = {
            WINDOW_START: _unplaced(start, rows, attribute),
            WINDOW_END: _unplaced(end, rows, attribute),
        }
        answers += [{**answer, **bounds} for answer in _groups(node, extent)]
    return answers


def _groups(node: Aggregate, rows: Sequence[Row]) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(value_of(k.expression, row) for k in node.keys), []).append(row)
    found = []
    for key, members in groups.items():
        answer = {k.name: value for k, value in zip(node.keys, key, strict=True)}
        answer |= {c.name: aggregate(c, members, node.attribute) for c in node.calls}
        found.append(answer)
    return found


def place(value: Any) -> Number | None:
    """The place of a value on the axis of a window. Times are microseconds since the epoch, numbers are exact.

    >>> place(datetime(1969, 12, 31, 23, 59, 59)), place(0.1)
    (-1000000, Fraction(1, 10))
    """
    match value:
        case datetime():
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return (naive - _EPOCH) // _MICROSECOND
        case date():
            return (datetime(value.year, value.month, value.day) - _EPOCH) // _MICROSECOND
        case float() | Decimal():
            exact = Decimal(repr(value)) if isinstance(value, float) else value
            return Fraction(exact.quantize(_PRECISION, ROUND_HALF_UP)) if exact.is_finite() else None
        case int() | None:
            return value
    raise TypeError(f"{value!r} has no place on the axis of a window")


def _unplaced(at: Number | None, rows: Sequence[Row], attribute: str) -> Any:
    kind = next(row[attribute] for row in rows if row[attribute] is not None)
    if at is None:
        return None
    if isinstance(kind, date):
        return _EPOCH + int(at) * _MICROSECOND
    return at if isinstance(kind, int) else float(at)


def _placed(rows: Sequence[Row], attribute: str) -> list[Row]:
    return [{ROW_NUM: i, **row, attribute: place(row[attribute]), "_row": row} for i, row in enumerate(rows)]


def _numbered(rows: Sequence[Row]) -> list[Row]:
    return [{**row, ROW_NUM: number} for number, row in enumerate(rows)]


def _source(name: str, rows: Sequence[Row], schema: Mapping[str, str], table: bool) -> Source:
    columns = tuple(schema) or tuple(rows[0] if rows else ())
    return Source(name, tuple(Field(c, schema.get(c, "unknown")) for c in columns), table=table)
