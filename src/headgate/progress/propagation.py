"""How punctuation goes through the operators of a plan: each operator's effect is one function here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import NamedTuple

from headgate.plan.nodes import ROW_NUM, Aggregate, Filter, Node, Project, Source, Union
from headgate.progress.place import Punctuation, least
from headgate.windows import Sliding


class Arriving(NamedTuple):
    """What an operator knows of an input: its punctuation, and whether all streams behind it are idle."""

    punctuation: Punctuation
    idle: bool


def punctuation(node: Node, streams: Mapping[str, Punctuation], idle: frozenset[str] = frozenset()) -> Punctuation:
    """Give the punctuation on the progressing attribute of a plan's output, from that of its streams.

    It looks at this moment only, and falls back where an idle stream wakes up behind the others: who keeps
    state by it keeps the greatest that there was.

    >>> from headgate.plan import Field
    >>> main = Source("Main", (Field("ts", "timestamp"),), progressing="ts")
    >>> minutes = Aggregate(main, Sliding(range=120, slide=60, attr="ts"), keys=(), calls=())
    >>> punctuation(minutes, {"Main": 200})  # the window [60, 180) is closed
    120
    """
    return _leaving(node, streams, idle).punctuation


def _leaving(node: Node, streams: Mapping[str, Punctuation], idle: frozenset[str]) -> Arriving:
    if isinstance(node, Source):
        return Arriving(_on(node.progress, streams.get(node.name)), node.name in idle)
    inputs = [_leaving(i, streams, idle) for i in node.inputs]
    return Arriving(_on(node.progress, effect(node, inputs)), all(i.idle for i in inputs))


@singledispatch
def effect(node: Node, inputs: Sequence[Arriving]) -> Punctuation:
    """Give what an operator makes of the punctuation on its inputs.

    >>> effect(Union((Source("A", ()), Source("B", ()))), [Arriving(20, idle=False), Arriving(19, idle=False)])
    19
    """
    raise NotImplementedError(f"punctuation does not go through {type(node).__name__} yet")


@effect.register
def _pass_on(_: Filter | Project, inputs: Sequence[Arriving]) -> Punctuation:
    return inputs[0].punctuation


@effect.register
def _meld(_: Union, inputs: Sequence[Arriving]) -> Punctuation:
    awake = least(i.punctuation for i in inputs if not i.idle)
    # Where all that is awake is over, what sleeps is still to come.
    return least(i.punctuation for i in inputs) if awake == math.inf else awake


@effect.register
def _close(node: Aggregate, inputs: Sequence[Arriving]) -> Punctuation:
    match node.window:
        case None:
            return inputs[0].punctuation
        case Sliding(attr=attr) as window if attr != ROW_NUM:
            progressing = [name for name in node.input.progress if name == attr]
            last = closed(window, _on(progressing, inputs[0].punctuation))
            return last if last is None or isinstance(last, float) else window.bounds(last + 1)[0]
        case window:
            raise NotImplementedError(f"punctuation does not close windows {window} yet")


def closed(window: Sliding, p: Punctuation) -> int | float | None:
    """Give the number of the last window that punctuation `p` closes: it ends at `p` or before.

    >>> minutes = Sliding(range=120, slide=60, attr="ts")
    >>> closed(minutes, 179), closed(minutes, 180), closed(minutes, math.inf)
    (0, 1, inf)
    """
    if p is None or isinstance(p, float):
        return p
    return (p - window.range - window.origin) // window.slide


def late_before(window: Sliding, p: Punctuation) -> Punctuation:
    """Give the end of the last window that `p` closes: a tuple below it is too late for some window.

    >>> late_before(Sliding(range=120, slide=60, attr="ts"), 200)
    180
    """
    last = closed(window, p)
    return last if last is None or isinstance(last, float) else window.bounds(last)[1]


def _on(attributes: Sequence[str], p: Punctuation) -> Punctuation:
    """The punctuation on these attributes: without one, all that can be told is that the input is over."""
    return p if attributes or p == math.inf else None
