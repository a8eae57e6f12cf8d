"""A plan as text: a tree of operators, the answer at the root and the streams at the leaves."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from headgate.plan.logical import render
from headgate.plan.logical.explain_aggregate import aggregate_lines
from headgate.plan.logical.needed import inputs_needed
from headgate.plan.logical.nodes import (
    ROW_NUM,
    Aggregate,
    Band,
    Distinct,
    Filter,
    Join,
    Lookup,
    Node,
    Project,
    SameWindow,
    Source,
    Union,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.plan.logical.strategy import Strategy

_NO_PROMISE = "no PROGRESS: nothing closes a window until it ends"
#: The names of columns that the planner adds begin like this.
_OWN = "_hg_"
_WIDTH = 110
_LABEL = 10


def explain(node: Node, strategy: Strategy | None = None) -> str:
    """The plan as an indented tree: one operator below the other, each with what matters about it.

    >>> from headgate.lang import parse_query
    >>> from headgate.plan import Catalog, Field, bind
    >>> main = Source("Main", (Field("ts", "timestamp"), Field("len", "int"), Field("flags", "string")), "ts")
    >>> sql = "SELECT max(len) AS top [RANGE 5 minutes, SLIDE 1 minute] FROM Main"
    >>> print(explain(bind(parse_query(sql), Catalog([main]))))
    Project max(len) AS top, window_start, window_end
    └─ Aggregate
       │ window    sliding: 5 minutes of ts, every minute; a tuple is in 5 windows
       │ bounds    window_start <= ts < window_end; window_start is a multiple of 1 minute since 1970 UTC
       │ category  context free: a tuple alone tells which windows it is in
       │ keys      none
       │ strategy  paned: 60,005 a window by panes against 300,000 by windows
       │ panes     1 minute long; 5 to a window, 1 to a slide
       │ roll-up   prefix and suffix blocks: nothing is ever subtracted
       │ calls     max(len)  bounded, not differential  from max(len)
       └─ Source Main
            columns   ts timestamp, len int (2 of 3)
            progress  on ts
    """
    return "\n".join(_tree(node, frozenset(node.types), strategy, "", ""))


def explain_stream(name: str, source: str, promise: str, sinks: Iterable[str] = ()) -> str:
    """A stream in one line: what it is read from, what is promised about its progress, where its bad tuples go.

    >>> explain_stream("Main", "parquet", "PROGRESS ON ts ORDERED")
    'Stream Main from parquet, PROGRESS ON ts ORDERED'
    """
    return "; ".join([f"Stream {name} from {source}, {promise or _NO_PROMISE}", *sinks])


def explain_query(
    name: str, properties: Sequence[str], sinks: Iterable[str], plan: Node, strategy: Strategy | None = None
) -> str:
    """A query of a flow: its name, the properties of its WITH, where its answers go, and its plan."""
    head = f"Query {name}" + (f" with {', '.join(properties)}" if properties else "")
    return "\n".join([head, *(f"  {sink}" for sink in sinks), explain(plan, strategy)])


def explain_sink(format_: str, place: str | None, output: str = "answers") -> str:
    """Where a sink goes.

    >>> explain_sink("parquet", "late", "late")
    "late tuples into parquet 'late'"
    """
    path = f" '{place}'" if place is not None else ""
    what = "" if output == "answers" else f"{output} tuples "
    return f"{what}into {format_}{path}"


def _tree(node: Node, wanted: frozenset[str], strategy: Strategy | None, head: str, rail: str) -> Iterator[str]:
    """The lines of a node and of all below it. `head` starts its first line, `rail` the others."""
    title, lines = _operator(node, wanted, strategy)
    stem = "│ " if node.inputs else "  "
    yield from _wrapped(title, head, rail + stem + " " * len("Project"))
    for label, text in lines:
        yield from _wrapped(text, f"{rail}{stem}{label:{_LABEL}}", rail + stem + " " * _LABEL)
    last = len(node.inputs) - 1
    for place, (below, needed) in enumerate(zip(node.inputs, inputs_needed(node, wanted), strict=True)):
        branch, on = ("├─ ", "│  ") if place < last else ("└─ ", "   ")
        yield from _tree(below, needed, strategy, rail + branch, rail + on)


def _operator(node: Node, wanted: frozenset[str], strategy: Strategy | None) -> tuple[str, Iterable[tuple[str, str]]]:
    """The title of a node, and its lines, each with a label."""
    match node:
        case Source():
            return f"Source {render.name(node.name)}", _source(node, wanted)
        case Filter(input=below, predicate=predicate):
            return f"Filter {render.sql(predicate, below)}", ()
        case Project(input=below, columns=columns):
            if alias := render.renaming(node):
                return f"As {render.name(alias)}", ()
            shown = [c for c in columns if c.name in wanted and not c.name.startswith(_OWN)]
            return "Project " + ", ".join(render.named(c, below) for c in shown), ()
        case Union(numbered=numbered):
            number = f", numbered by arrival as {ROW_NUM}" if numbered else ""
            return f"Union of {len(node.inputs)}, duplicates kept{number}", ()
        case Join():
            return "Join", _join(node)
        case Lookup():
            return "Lookup", _lookup(node)
        case Distinct():
            return "Distinct", _distinct(node)
        case Aggregate():
            return "Aggregate", aggregate_lines(node, strategy)
    raise TypeError(f"no words for {type(node).__name__}")


def _source(node: Source, wanted: frozenset[str]) -> Iterator[tuple[str, str]]:
    needed = [f"{render.name(c.name)} {c.type}" for c in node.columns if c.name in wanted]
    total = len(node.columns)
    share = f"all {total}" if len(needed) == total else f"{len(needed)} of {total}"
    yield "columns", f"{', '.join(needed) or 'none'} ({share})"
    yield "progress", f"on {render.name(node.progressing)}" if node.progressing else "nothing promised"
    if node.numbered:
        yield "numbered", f"by arrival, as {ROW_NUM}"


def _join(node: Join) -> Iterator[tuple[str, str]]:
    for condition in node.conditions:
        left, right = render.name(condition.left), render.name(condition.right)
        match condition:
            case Band(before=before, after=after):
                down, up = (render.length(n, condition.left, node.left) for n in (before, after))
                yield "window", f"{right} is at most {down} before {left}, and less than {up} after it"
                yield "bounds", f"{left} - {down} <= {right} < {left} + {up}"
            case SameWindow(size=size):
                yield "window", f"same tumbling window of {render.length(size, condition.left, node.left)}"
                yield "bounds", f"{left} and {right} lie between the same two multiples of it"
    on = render.sql(node.predicate, node) if node.predicate is not None else "nothing else: all pairs in the window"
    yield "on", on


def _lookup(node: Lookup) -> Iterator[tuple[str, str]]:
    yield "table", ", ".join(render.name(f.name) for f in node.table.fields)
    yield "on", render.sql(node.predicate, node) if node.predicate is not None else "nothing: every row matches"
    yield "others", "kept, with NULL for the columns of the table" if node.outer else "dropped"


def _distinct(node: Distinct) -> Iterator[tuple[str, str]]:
    below = node.input
    assert isinstance(below, Project)
    yield "keys", ", ".join(render.sql(c.expression, below.input) for c in below.columns if c.name in node.keys)
    at = next(c for c in below.columns if c.name == node.attribute)
    length, place = render.length(node.range, node.attribute, node), render.sql(at.expression, below.input)
    yield "range", f"a tuple less than {length} of {place} after another is a duplicate"


def _wrapped(text: str, first: str, other: str) -> list[str]:
    """A text in lines of a readable width, broken between render. All lines keep its indent."""
    other += " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(
        text,
        max(_WIDTH, len(other) + 40),
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first]
