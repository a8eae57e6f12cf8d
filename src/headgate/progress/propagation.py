"""How punctuation goes through the operators of a plan: each operator's effect is one function here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch

from sqlglot import exp

from headgate.plan.logical.nodes import (
    Aggregate,
    Band,
    Distinct,
    Filter,
    Join,
    Lookup,
    Named,
    Node,
    Project,
    SameWindow,
    Source,
    Union,
)
from headgate.progress.place import Punctuation, least
from headgate.windows import Number, OnAxis


@dataclass(frozen=True)
class Reached:
    """How far a stream has come: the punctuation on each of its attributes that has any, and whether it is over."""

    at: Mapping[str, Punctuation] = field(default_factory=dict)
    over: bool = False
    idle: bool = False
    """Whether all that it comes from is idle."""
    joint: Mapping[str, Punctuation] = field(default_factory=dict)
    """Joint punctuation: a tuple to come is not below all of these. Pairs of a join have it on both of their times."""

    def on(self, attribute: str) -> Punctuation:
        """Give the punctuation on an attribute: infinity, whatever the attribute, of what is over."""
        return math.inf if self.over else self.at.get(attribute)


#: What is known of streams: of one with a single progressing attribute, the punctuation on it is enough.
Streams = Mapping[str, Punctuation | Reached]


def punctuation(node: Node, streams: Streams, idle: frozenset[str] = frozenset()) -> Punctuation:
    """Give the punctuation on the (first) progressing attribute of a plan's output, from that of its streams.

    It looks at this moment only, and falls back where an idle stream wakes up and is late. Keep the greatest that
    there was if state depends on it.

    >>> from headgate.plan import Field
    >>> from headgate.windows import Sliding
    >>> main = Source("Main", (Field("ts", "timestamp"),), progressing="ts")
    >>> minutes = Aggregate(main, Sliding(range=120, slide=60, attr="ts"), keys=(), calls=())
    >>> punctuation(minutes, {"Main": 200})  # the window [60, 180) is closed
    120
    """
    return reached(node, streams, idle).on(next(iter(node.progress), ""))


def reached(node: Node, streams: Streams, idle: frozenset[str] = frozenset()) -> Reached:
    """Give how far the output of a plan has come, on every attribute that progresses.

    >>> from headgate.plan import Field
    >>> a, b = (Source(name, (Field(f"{name}.ts"),), progressing=f"{name}.ts") for name in "ab")
    >>> ten_seconds = Join(a, b, (Band("a.ts", "b.ts", before=10, after=5),))
    >>> dict(reached(ten_seconds, {"a": 100, "b": 90}).at)  # a pair to come has a new `b`, from 90 on, or a new `a`
    {'a.ts': 85, 'b.ts': 90}
    """
    if isinstance(node, Source):
        known = streams.get(node.name)
        if isinstance(known, Reached):
            return known
        at = {node.progressing: known} if node.progressing and known is not None else {}
        return Reached(at, known == math.inf, node.name in idle)
    inputs = [reached(i, streams, idle) for i in node.inputs]
    return joined_up(node, inputs)


def joined_up(node: Node, inputs: Sequence[Reached]) -> Reached:
    """Give how far the output of an operator has come, where its inputs have come so far."""
    at = {name: p for name, p in effect(node, inputs).items() if p is not None}
    return Reached(at, all(i.over for i in inputs), all(i.idle for i in inputs), _joint(node, inputs))


def _joint(node: Node, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    """A pair to come has a tuple to come on at least one side, whatever the window."""
    match node:
        case Join(conditions=(condition,)):
            both = {condition.left: inputs[0].on(condition.left), condition.right: inputs[1].on(condition.right)}
            return both if all(p is not None for p in both.values()) else {}
        case Filter() | Lookup():
            return dict(inputs[0].joint)
        case Project(columns=columns):
            names = {c.expression.name: c.name for c in columns if isinstance(c.expression, exp.Column)}
            joint = inputs[0].joint
            return {names[a]: p for a, p in joint.items()} if joint.keys() <= names.keys() else {}
    return {}


@singledispatch
def effect(node: Node, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    """Give what an operator makes of the punctuation on its inputs.

    >>> sides = [Reached({"ts": 20}), Reached({"ts": 19})]
    >>> effect(Union((Source("A", (), "ts"), Source("B", (), "ts"))), sides)
    {'ts': 19}
    """
    raise NotImplementedError(f"punctuation does not go through {type(node).__name__} yet")


@effect.register(Filter)
@effect.register(Lookup)
def _pass_on(_: Filter | Lookup, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    return dict(inputs[0].at)


@effect.register
def _wait(node: Distinct, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    return {name: inputs[0].on(name) for name in node.progress}


@effect.register
def _rename(node: Project, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    return _renamed(node.columns, inputs[0])


@effect.register
def _meld(node: Union, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    found = {}
    for name in node.progress:
        awake = least(i.on(name) for i in inputs if not i.idle)
        # Where all that is awake is over, what sleeps is still to come.
        found[name] = least(i.on(name) for i in inputs) if awake == math.inf else awake
    return found


@effect.register
def _close(node: Aggregate, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    window = node.window
    if window is None:
        return _renamed(node.keys, inputs[0])
    p = inputs[0].on(window.attribute)
    return {node.progress[0]: p if p is None or isinstance(p, float) else window.answers_after(p)}


@effect.register
def _match(node: Join, inputs: Sequence[Reached]) -> dict[str, Punctuation]:
    """A pair to come has at least one tuple to come, and the other is as near to it as the window says."""
    left, right = inputs
    found: dict[str, Punctuation] = {}
    for condition in node.conditions:
        p, q = left.on(condition.left), right.on(condition.right)
        bounds = (condition.left, p, _partner(condition, q)), (condition.right, q, _partner_of(condition, p))
        for name, own, other in bounds:
            known = found.get(name, -math.inf)
            both = least((own, other))
            found[name] = both if known is None or both is None else max(known, both)
    return found


def _partner(condition: Band | SameWindow, right: Punctuation) -> Punctuation:
    """The least place of a left tuple that meets a right one from this place on."""
    if right is None or isinstance(right, float):
        return right
    return right - condition.after if isinstance(condition, Band) else right // condition.size * condition.size


def _partner_of(condition: Band | SameWindow, left: Punctuation) -> Punctuation:
    """The least place of a right tuple that meets a left one from this place on."""
    if left is None or isinstance(left, float):
        return left
    return left - condition.before if isinstance(condition, Band) else left // condition.size * condition.size


def opened(window: OnAxis, last: int) -> Number:
    """Give the punctuation on the answers of windows up to `last`: the place of the first that is still open.

    Windows of a length progress by their starts, those that only grow by their ends.

    >>> from headgate.windows import Landmark, Sliding
    >>> opened(Sliding(range=120, slide=60, attr="ts"), 1), opened(Landmark(slide=60, attr="ts"), 1)
    (120, 180)
    """
    return window.marks(last + 1)


def closed(window: OnAxis, p: Punctuation) -> int | float | None:
    """Give the number of the last window that punctuation `p` closes: it ends at `p` or before.

    >>> from headgate.windows import Sliding
    >>> minutes = Sliding(range=120, slide=60, attr="ts")
    >>> closed(minutes, 179), closed(minutes, 180), closed(minutes, math.inf)
    (0, 1, inf)
    """
    return p if p is None or isinstance(p, float) else window.type.closed_at(p)


def late_before(window: OnAxis, p: Punctuation) -> Punctuation:
    """Give the end of the last window that `p` closes: a tuple below it is too late for some window.

    >>> from headgate.windows import Sliding
    >>> late_before(Sliding(range=120, slide=60, attr="ts"), 200)
    180
    """
    last = closed(window, p)
    return last if last is None or isinstance(last, float) else window.end(last)


def _renamed(columns: Sequence[Named], below: Reached) -> dict[str, Punctuation]:
    """The punctuation on columns that are passed on as they are."""
    return {c.name: below.at.get(c.expression.name) for c in columns if isinstance(c.expression, exp.Column)}
