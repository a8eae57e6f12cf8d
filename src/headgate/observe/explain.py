"""A flow in words: its streams, its sinks, and what it keeps between batches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headgate.aggregates import Kept
from headgate.batch.propagate import kept_by
from headgate.incremental.hold import HeldByKey, HeldByPartition, HeldByTuple
from headgate.incremental.match import Side
from headgate.plan.logical import render
from headgate.plan.logical.nodes import Aggregate, Band, Join, SameWindow
from headgate.shed.live.status import explain

if TYPE_CHECKING:
    from headgate.batch.engine import Engine
    from headgate.incremental.hold import Held
    from headgate.plan.stream.stages import Stage
    from headgate.progress import StreamProgress
    from headgate.sharing.table import Table

_LABEL = 10
_NAME = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`")


def promise(progress: StreamProgress | None) -> str:
    """How a stream progresses, as a script writes it."""
    return "" if progress is None else progress.describe()


def kept(engine: Engine) -> str:
    """What a flow keeps between batches: tables of partials, and tuples. Then what it sheds."""
    tables = [table_text(table) for level in engine.program.levels for table in level.tables]
    own = [kept_text(stage) for stage in engine.program.stages.values() if kept_by(stage)]
    return "\n\n".join(filter(None, [*tables, *own, explain(engine.shedding, engine.dropped)]))


def table_text(table: Table) -> str:
    """A table of partials: the queries that share it, its keys, the length of its panes, and its aggregates."""
    stages = [member.stage for member in table.members]
    own = stages[0].aggregate
    assert own is not None
    attribute = stages[0].window.attr
    panes = f"{render.panes(table.cut, 1, attribute, own.input)} long"
    if table.eager is not None:
        counts = table.eager.per_window, table.eager.per_slide
        long, step = (render.panes(table.eager.cut, n, attribute, own.input) for n in counts)
        panes = f"whole windows: {long} long, every {step.removeprefix('1 ')}"
    elif own.window is None:
        panes = f"one for each value of {render.name(attribute)}"
    lines = [(f.stream, f"by {', '.join(map(_plain, f.keys))}" if f.keys else "as a whole") for f in table.feeds]
    return _section(
        f"Table {table.number}, kept for {', '.join(stage.name for stage in stages)}",
        [
            ("of", "; ".join(f"{stream} {keys}" for stream, keys in lines)),
            ("panes", panes),
            ("calls", ", ".join(_calls(table, own))),
        ],
    )


def _calls(table: Table, own: Aggregate) -> list[str]:
    """The aggregates that a table serves, each once."""
    if table.values:
        return [f"{render.call(call, own.input)}, from a count for each value" for call in table.values]
    if table.state is not None:
        return [render.call(table.state, own.input)]
    found = [
        render.call(call, member.stage.aggregate.input)
        for member in table.members
        if member.stage.aggregate is not None
        for call in member.stage.aggregate.calls
        if call.kept is Kept.PARTIALS
    ]
    return list(dict.fromkeys(found)) or ["none: which groups there are"]


def kept_text(stage: Stage) -> str:
    """The tuples that a stage keeps, and for how long."""
    return _section(f"Tuples, kept for {stage.name}", [_kept(held) for held in kept_by(stage)])


def _kept(held: Side | Held) -> tuple[str, str]:
    match held:
        case Side(node=node, which=which):
            return which, _reach(node, held)
        case HeldByKey(node=below) | HeldByTuple(node=Aggregate(input=below)):
            return "all", f"for {render.length(held.range, held.attribute, below)} of {render.name(held.attribute)}"
        case HeldByPartition():
            return "all", "while a window that is open has them"
    raise TypeError(f"no words for {type(held).__name__}")


def _reach(node: Join, side: Side) -> str:
    """How long a tuple on one side of a join can still meet others."""
    left, found = side.which == "left", []
    for condition in node.conditions:
        own = condition.left if left else condition.right
        match condition:
            case Band(before=before, after=after):
                long = render.length(after if left else before, own, side.plan)
                found.append(f"for {long} of {render.name(own)}")
            case SameWindow(size=size):
                long = render.length(size, own, side.plan)
                found.append(f"until the window of {long} of {render.name(own)} is over")
    return ", or ".join(found)


def _section(title: str, lines: Iterable[tuple[str, str]]) -> str:
    return "\n".join([title, *(f"  {label:{_LABEL}}{text}" for label, text in lines)])


def _plain(sql: str) -> str:
    """Spark SQL without quotes around plain names."""
    return _NAME.sub(r"\1", sql)
