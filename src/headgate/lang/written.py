"""Expressions as they were written: where each stands in the user's text, and that text with parts replaced.

sqlglot reads many functions as others that mean about the same: `log10(x)` as `log(10, x)`. So Spark gets the text that
the user wrote. Only what the planner has replaced (names, aggregates, keys) is exchanged in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The path from a node to one below it: for each step the argument, and the place in it if it is a list.
Path = tuple[tuple[str, int | None], ...]

_SPAN, _WRITTEN, _PART = "headgate_span", "headgate_written", "headgate_part"
#: What can replace a column without parentheses around it.
_ATOMS = (exp.Column, exp.Dot, exp.Paren, exp.Literal, exp.Null, exp.Boolean, exp.Func, exp.Case, exp.Alias)
_OPERATIONS = (exp.Binary, exp.Unary, exp.Predicate, exp.Between, exp.In, exp.Interval)


@dataclass(frozen=True)
class Cut:
    """The text of a node, cut where the nodes below it stand."""

    pieces: tuple[str, ...]
    slots: tuple[Path, ...]

    def __deepcopy__(self, memo: dict[int, Any]) -> Cut:
        return self  # It never changes, and trees are copied often, so copies share it.


def spans(node: exp.Expr, start: int, end: int) -> None:
    """Notes where a node stands in the text. The first note stays: it is the best."""
    node.meta.setdefault(_SPAN, (start, end))


def start_of(node: exp.Expr) -> int | None:
    """Where the text of a node starts, if known."""
    span = node.meta_get(_SPAN)
    return None if span is None else int(span[0])


def keep_text(root: exp.Expr, sql: str) -> None:
    """Gives each node of a new tree its own part of the text that the tree was read from."""
    nodes = list(root.walk())
    for node in nodes:
        if isinstance(node, exp.Column) and node.meta_get(_SPAN) is None:
            _place_by_names(node)
    for node in nodes:
        _drop_doubles(node)
    cuts = [_cut(node, sql) for node in nodes]
    for node, cut in zip(nodes, cuts, strict=True):
        placed = node.meta.pop(_SPAN, None) is not None
        if cut is not None:
            node.meta[_WRITTEN] = cut
        elif not placed:
            node.meta[_PART] = True


def text_of(node: exp.Expr, render: Callable[[exp.Expr], str]) -> str | None:
    """The text of a node as it was written, with the nodes that are now below it rendered. None if it has no text."""
    written = node.meta_get(_WRITTEN)
    if not isinstance(written, Cut):
        return None
    parts = [written.pieces[0]]
    for path, piece in zip(written.slots, written.pieces[1:], strict=True):
        below = _follow(node, path)
        if below is None:
            return None
        text = render(below)
        parts += [f"({text})" if _is_loose(below) else text, piece]
    return "".join(parts)


def is_named(field: exp.PropertyEQ) -> bool:
    """Whether a field of struct() or named_struct() has a name of its own, other than the name of its column."""
    call = field.parent.meta_get(_WRITTEN) if field.parent is not None else None
    if not isinstance(call, Cut) or call.pieces[0].lower().startswith("named_struct"):
        return True
    place: Path = (("expressions", field.index), ("expression", None))
    after = call.pieces[call.slots.index(place) + 1] if place in call.slots else " AS"
    return after.strip(" \t\r\n,)") != ""


def _is_loose(node: exp.Expr) -> bool:
    """Whether the operators around a new node might tear it apart."""
    return node.meta_get(_WRITTEN) is None and isinstance(node, _OPERATIONS) and not isinstance(node, _ATOMS)


def _place_by_names(column: exp.Column) -> None:
    """Finds a column that is the beginning of something longer. It goes by the names: sqlglot knows where each is."""
    ends = [name.meta_get(end) for name, end in ((column.parts[0], "start"), (column.parts[-1], "end"))]
    if None not in ends:
        spans(column, ends[0], ends[1] + 1)


def _drop_doubles(node: exp.Expr) -> None:
    """Leaves a text to the outermost of the nodes that share it: `a IS NOT NULL` belongs to NOT, not to IS."""
    span = node.meta_get(_SPAN)
    for _, _, child in _below(node, ()) if span is not None else ():
        if child.meta_get(_SPAN) == span:
            del child.meta[_SPAN]
            _drop_doubles(node)


def _cut(node: exp.Expr, sql: str) -> Cut | None:
    span = node.meta_get(_SPAN)
    if span is None:
        return None
    pieces, slots, at = [], [], span[0]
    for place, path, _ in sorted(_below(node, ()), key=lambda found: found[0] or (-1, -1)):
        if place is None or place[0] < at or place[1] > span[1]:
            return None  # sqlglot has moved it, or made it.
        pieces.append(sql[at : place[0]])
        slots.append(path)
        at = place[1]
    return Cut((*pieces, sql[at : span[1]]), tuple(slots))


def _below(node: exp.Expr, path: Path) -> Iterator[tuple[tuple[int, int] | None, Path, exp.Expr]]:
    """The nearest nodes below a node with a known place in the text, and columns without one."""
    for key, value in node.args.items():
        several = isinstance(value, list)
        for i, child in enumerate(value if several else [value]):
            if isinstance(child, exp.Expr):
                step = (*path, (key, i if several else None))
                span = child.meta_get(_SPAN)
                if span is None and not isinstance(child, exp.Column):
                    yield from _below(child, step)
                else:
                    yield span, step, child


def _follow(node: exp.Expr, path: Path) -> exp.Expr | None:
    """The node at the end of a path, unless a node on the path has been exchanged for another."""
    *before, last = path
    for step in before:
        found = _step(node, step)
        if found is None or not found.meta_get(_PART):
            return None
        node = found
    return _step(node, last)


def _step(node: exp.Expr, step: tuple[str, int | None]) -> exp.Expr | None:
    key, i = step
    value = node.args.get(key)
    if i is not None:
        value = value[i] if isinstance(value, list) and i < len(value) else None
    return value if isinstance(value, exp.Expr) else None
