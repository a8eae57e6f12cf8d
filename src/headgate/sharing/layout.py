"""The layout of a table on disk: what the manifest says of it, so that a query that comes later takes it as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pyspark.sql import types as T

from headgate.errors import StateError
from headgate.plan.logical.spelling import normal
from headgate.plan.stream.stages import Stage
from headgate.sharing.columns import FeedKeys
from headgate.sharing.table import Table
from headgate.sql.text import ddl
from headgate.windows import Cut, EqualCut, Number, Sliding, WindowType


def layout(table: Table) -> dict[str, Any]:
    """What has to stay as it is while there are rows of a table, as JSON has it."""
    return {
        "number": table.number,
        "feeds": [[f.stream, list(map(normal, f.keys)), f.place] for f in table.feeds],
        "key_types": [ddl(t) for t in table.key_types],
        **_panes(table),
        "axis": table.axis,
        "stages": [m.stage.name for m in table.members],
        "purpose": table.purpose,
        "columns": {c.meaning: c.name for c in table.columns},
    }


def _panes(table: Table) -> dict[str, Any]:
    """Panes of one length by that; all others by what their cut is called, which the query says anew."""
    attr, eager = table.members[0].stage.window.attr, table.eager
    if table.cut.length is None:
        return {"cut": repr(table.cut), "eager": [eager.per_window, eager.per_slide] if eager else None}
    length, origin = str(table.cut.length), str(table.cut.start(0))
    if eager is None or eager.cut.length is None:
        return {"length": length, "origin": origin, "eager": None}
    size = str(eager.cut.length * eager.per_window)
    return {"length": length, "origin": origin, "eager": [size, length, attr]}


def table_on_disk(layout: Mapping[str, Any], feeds: Sequence[FeedKeys], stage: Stage) -> Table:
    """The table that a query has on disk, without any member yet.

    How places are worked out may have changed since, so that is taken from the query.
    """
    old = [FeedKeys(stream, tuple(keys), place) for stream, keys, place in layout["feeds"]]
    if [feed.stream for feed in old] != [feed.stream for feed in feeds]:
        raise another(stage.query, "the streams")
    placed = tuple(replace(before, place=now.place) for before, now in zip(old, feeds, strict=True))
    types = tuple(T._parse_datatype_string(t) for t in layout["key_types"])
    table = Table(layout["number"], placed, types, *_read_panes(layout, stage), layout["axis"])
    table.known, table.on_disk = dict(layout["columns"]), True
    return table


def _read_panes(layout: Mapping[str, Any], stage: Stage) -> tuple[Cut, WindowType | None]:
    """How a table on disk is cut into panes, and the windows that are kept eagerly in it."""
    eager, own = layout["eager"], stage.window.type
    if "cut" not in layout:
        origin = _number(layout["origin"])
        window = Sliding(_number(eager[0]), _number(eager[1]), eager[2], origin).type if eager else None
        return EqualCut(_number(layout["length"]), origin), window
    cut = next((c for c in (own.cut, own.slides, own.cut.made_of[0]) if repr(c) == layout["cut"]), None)
    if cut is None:
        raise StateError(
            f"query {stage.query}: its panes are {layout['cut']} in the checkpoint, and now they are {own.cut}:"
            " register the window type as it was, or let the query begin anew, flow.query(..., anew=True)"
        )
    return cut, WindowType(own.cut, *eager) if eager else None


def another(query: str, what: str) -> StateError:
    """The error for a query of which something has another type than on disk."""
    return StateError(
        f"query {query}: {what} have other types in the checkpoint than now, as a column of its streams"
        " does: give that its old type, or let the query begin anew, flow.query(..., anew=True)"
    )


def _number(text_: str) -> Number:
    number = Fraction(text_)
    return int(number) if number.denominator == 1 else number
