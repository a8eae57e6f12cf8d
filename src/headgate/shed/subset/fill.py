"""Which queries can have the gaps between their answers filled."""

from __future__ import annotations

from sqlglot import exp

from headgate import given
from headgate.errors import FlowError
from headgate.plan.logical.nodes import WINDOW_END, WINDOW_START
from headgate.plan.stream.stages import Continuous

LINEAR = "linear"
#: The column that says whether a row was filled in.
FILLED = "filled"


def check_fill(what: str, fill: object) -> None:
    """Raises an error if there is no such way to fill gaps.

    >>> check_fill("hg.subset", "cubic")
    Traceback (most recent call last):
    headgate.errors.FlowError: hg.subset: fill='cubic': give 'linear', or leave it out
    """
    if fill is not None and not (isinstance(fill, str) and fill == LINEAR):
        raise given.refused(f"{what}: fill", fill, f"{LINEAR!r}, or leave it out")


def group_columns(query: Continuous) -> list[str]:
    """The columns that tell the groups of a query's answers apart, or an error if nothing does."""
    what, stage = f"query {query.name} cannot be filled", query.stages[-1]
    if stage.aggregate is None or stage.above is None:
        raise FlowError(f"{what}: its answers are not those of an aggregate; look at them as they are")
    if FILLED in stage.above.columns:
        raise FlowError(f"{what}: it has a column {FILLED} of its own; call it something else")
    keys = {key.name for key in stage.aggregate.keys}
    read = {name: {c.name for c in e.find_all(exp.Column)} for name, e in stage.above.columns.items()}
    shown = {e.name for e in stage.above.columns.values() if isinstance(e, exp.Column)}
    if hidden := sorted(keys - shown):
        raise FlowError(f"{what}: it groups by {', '.join(hidden)} and does not select that; select it too")
    return [name for name, own in read.items() if own <= keys and name not in (WINDOW_START, WINDOW_END)]
