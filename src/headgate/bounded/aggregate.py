"""Window aggregation in Spark: from tuples to answers, eagerly (a partial for each window) or by panes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from headgate.aggregates import Kept
from headgate.bounded import user
from headgate.bounded.landmark import LAST, WithLast, accumulate
from headgate.bounded.numbering import with_ranks
from headgate.bounded.rollup import PANE, WINDOW_ID, roll_up
from headgate.bounded.tuple_slide import blocks_per_range, sweep, window_ends
from headgate.plan.logical.nodes import ROW_NUM, WINDOW_END, WINDOW_START, Aggregate, Call
from headgate.plan.logical.strategy import Choice
from headgate.sql.partials import COUNT, PartialColumn, Partials, call_holes
from headgate.sql.text import Name, bound, col, floor_div, literal, others, own, position, same_keys, text
from headgate.windows import Cut, OnAxis, TupleSlide, Window, WindowType

#: What tuples have beside their own columns.
_PLACE, _PANE, _WID, _LAST, _VALUE = map(own, ("place", "pane", "wid", "last", "value"))
_BUCKET, _OWN_BUCKET = own("bucket"), own("own bucket")


@dataclass(frozen=True)
class _Input:
    """The tuples of an aggregate with their keys, and with their place on the axis, under names of our own."""

    node: Aggregate
    tuples: DataFrame
    unfiltered: DataFrame
    keys: list[Name]

    @property
    def group(self) -> list[str]:
        """The keys as functions of Spark take them."""
        return [*map(str, self.keys)]

    @property
    def placed(self) -> DataFrame:
        """The places of the tuples, and their arrival numbers where windows go by these."""
        by_number = [ROW_NUM] if self.node.window is not None and ROW_NUM in self.node.window.reads else []
        return self.tuples.select(col(_PLACE).alias(PANE), *by_number)


def aggregate(node: Aggregate, choice: Choice, df: DataFrame, unfiltered: DataFrame) -> DataFrame:
    """The answers of an aggregate over `df`; `unfiltered` is the same stream before any filter."""
    given = _prepared(node, df, unfiltered)
    if node.window is None:
        answers = _per_window(given, given.tuples, [])
    elif node.window.by == "axis" and not node.window.type.overlapping:
        slides = node.window.type.slides
        tuples = given.tuples.withColumn(_PANE.plain, _key(slides))
        answers = _numbered(slides, _per_window(given, tuples, [col(_PANE).alias(PANE)]))
        answers = answers.withColumnRenamed(PANE, WINDOW_ID)
    elif choice.strategy == "eager":
        answers = _per_window(given, _with_window_ids(given, node.window), [col(_WID).alias(WINDOW_ID)])
    else:
        answers = _by_panes(given, choice)
    keys = [col(k).alias(named.name) for k, named in zip(given.keys, node.keys, strict=True)]
    calls = [F.col(c.name) for c in node.calls]
    if node.window is None:
        return answers.select(*keys, *calls)
    return answers.select(*keys, *calls, *_bounds(node.window, df))


def _prepared(node: Aggregate, df: DataFrame, unfiltered: DataFrame) -> _Input:
    keys = {own(f"key {i}"): F.expr(text(k.expression)) for i, k in enumerate(node.keys)}
    tuples = df.withColumns({name.plain: key for name, key in keys.items()}) if keys else df
    window = node.window
    if window is not None:
        assert node.attribute is not None
        if window.by == "axis" and window.holds:
            tuples = with_ranks(tuples, partition_keys(node, window), ROW_NUM, _PLACE.plain)
        else:
            tuples = tuples.withColumn(_PLACE.plain, F.expr(position(df, node.attribute)))
        tuples = tuples.where(f"{_PLACE} IS NOT NULL")
        if window.by == "axis" and (held := window.type.held_sql(f"{_PLACE}")) is not None:
            tuples = tuples.where(held)
    return _Input(node, tuples, unfiltered, list(keys))


def _with_window_ids(given: _Input, window: Window) -> DataFrame:
    """Each tuple once for each window that holds it (the Bucket operator of the thesis, section 6.1.3.1)."""
    tuples = given.tuples
    if window.by == "tuple":
        return _with_window_ends(given, window)
    first, last = window.type.holding_sql(f"{_PLACE}")
    if window.growing:
        first, last = window.type.cut.pane_sql(f"{_PLACE}"), f"{_LAST}"
        tuples = _with_last(given, window, _LAST.plain)(tuples)
    return tuples.withColumn(_WID.plain, F.explode(F.expr(f"sequence({first}, {last})")))


def _with_window_ends(given: _Input, window: TupleSlide) -> DataFrame:
    """Each tuple once for each window that holds it, where tuples say where windows end."""
    size, placed = window.range, given.placed
    bucket = floor_div(f"{_PLACE}", size)
    tried = given.tuples.withColumn(_BUCKET.plain, F.explode(F.expr(f"array({bucket}, ({bucket}) + 1)")))
    ends = window_ends(placed, window, blocks_per_range(placed, size))
    ends = ends.select(F.col(WINDOW_ID).alias(_WID.plain), F.expr(floor_div(WINDOW_ID, size)).alias(_OWN_BUCKET.plain))
    holds = f"{_BUCKET} = {_OWN_BUCKET} AND {_WID} >= {_PLACE} AND {_WID} < {_PLACE} + {literal(size)}"
    return tried.join(ends, F.expr(holds))


def _per_window(given: _Input, tuples: DataFrame, group: Sequence[Column]) -> DataFrame:
    """All calls over tuples by their keys, and by the window or pane that they already carry."""
    partials = Partials.of(given.node, tuples, counted=not given.node.calls)
    holistic = [c for c in given.node.calls if c.kept is Kept.VALUES]
    users = [c for c in given.node.calls if c.kept is Kept.STATE]
    reduced = tuples.groupBy(*given.group, *group).agg(
        *partials.aggregates(),
        *(F.expr(_direct(c, given.node.attribute)).alias(c.name) for c in holistic),
        *(F.expr(user.collected(c)).alias(c.name) for c in users),
    )
    answers = {c.name: user.folded(c.function, c.name, len(c.arguments)) for c in users}
    finals = {name: F.expr(sql) for name, sql in partials.finals.items()}
    return reduced.withColumns({**finals, **answers}) if finals or answers else reduced


def _by_panes(given: _Input, choice: Choice) -> DataFrame:
    """Bounded calls together, each holistic argument and each user-defined call on its own, joined by window."""
    node, window = given.node, given.node.window
    assert window is not None
    to_windows = _roll(given, window)
    cut = window.type.cut if window.by == "axis" else None
    panes, pane = given.tuples.withColumn(_PANE.plain, _key(cut)), col(_PANE).alias(PANE)
    bounded = any(c.kept is Kept.PARTIALS for c in node.calls)
    partials = Partials.of(node, given.tuples, counted=not bounded or window.by == "tuple")
    reduced = panes.groupBy(*given.group, pane).agg(*partials.aggregates())
    answers = to_windows(_numbered(cut, reduced), given.group, partials.columns, choice.running)
    answers = answers.withColumns({name: F.expr(sql) for name, sql in partials.finals.items()})
    for (value, where), calls in _holistic_arguments(node).items():
        answers = joined(answers, _by_value(panes, given.group, cut, value, where, calls, to_windows), given.keys)
        # A window without any value has no row here, yet the count of its values is zero.
        answers = answers.fillna(0, [c.name for c in calls if c.function.name == "count"])
    for call in node.calls:
        if call.kept is Kept.STATE:
            assert window.by == "axis", "other windows of such a call are made eagerly"
            answers = joined(answers, _by_state(panes, given.group, call, window.type), given.keys)
    return answers


def _key(cut: Cut | None) -> Column:
    """What tells the pane of a tuple from others; without a cut, every place is a pane of its own."""
    return F.expr(f"{_PLACE}" if cut is None else cut.key_sql(f"{_PLACE}"))


def _numbered(cut: Cut | None, reduced: DataFrame) -> DataFrame:
    """The panes by number, after their tuples have been reduced."""
    return reduced if cut is None else reduced.withColumn(PANE, F.expr(cut.number_sql(PANE)))


_Roll = Callable[[DataFrame, Sequence[str], Sequence[PartialColumn], bool], DataFrame]


def _roll(given: _Input, window: Window) -> _Roll:
    """How partials of panes become partials of windows."""
    if window.by == "tuple":
        size, per_range = window.range, blocks_per_range(given.placed, window.range)
        ends = window_ends(given.placed, window, per_range)
        return lambda panes, keys, columns, _: sweep(panes, keys, columns, ends, size, per_range)
    if window.growing:
        with_last = _with_last(given, window, LAST)
        return lambda panes, keys, columns, _: accumulate(panes, keys, columns, with_last)
    spec = window.type
    # The panes of a group are few over time. Of rows or any other number there may be as many as tuples.
    few = bool(given.keys) and isinstance(given.tuples.schema[window.attr].dataType, T.DatetimeType)
    return lambda panes, keys, columns, running: roll_up(panes, keys, columns, spec, running, cut=not few)


def _with_last(given: _Input, window: OnAxis, name: str) -> WithLast:
    """Adds the last slide that any tuple of the stream falls into; the rows of a partition end with its own last."""
    if window.holds:
        keys = partition_keys(given.node, window)
        theirs = others(keys)
        columns = [col(key).alias(their.plain) for key, their in zip(keys, theirs, strict=True)]
        last = given.tuples.groupBy(*columns).agg(_latest(f"{_PLACE}", window, name))
        return lambda df: df.join(last, same_keys(keys, theirs)).drop(*(their.plain for their in theirs))
    last = given.unfiltered.agg(_latest(position(given.unfiltered, window.attr), window, name))
    return lambda df: df.crossJoin(F.broadcast(last))


def _latest(place: str, window: OnAxis, name: str) -> Column:
    return F.expr(f"max({window.type.cut.pane_sql(place)})").alias(name)


def partition_keys(node: Aggregate, window: OnAxis) -> list[Name]:
    """The key columns that the window is partitioned by."""
    keys = [k.expression.name if isinstance(k.expression, exp.Column) else None for k in node.keys]
    return [own(f"key {i}") for i, key in enumerate(keys) if key in window.partition]


def _holistic_arguments(node: Aggregate) -> dict[tuple[str, str], list[Call]]:
    found: dict[tuple[str, str], list[Call]] = {}
    for call in node.calls:
        if call.kept is Kept.VALUES:
            arguments = [text(a) for a in call.arguments]
            value = arguments[0] if len(arguments) == 1 else f"struct({', '.join(arguments)})"
            conditions = [f"({a}) IS NOT NULL" for a in arguments] + ([text(call.where)] if call.where else [])
            found.setdefault((value, " AND ".join(f"({c})" for c in conditions)), []).append(call)
    return found


def _by_value(
    panes: DataFrame,
    keys: Sequence[str],
    cut: Cut | None,
    value: str,
    where: str,
    calls: Sequence[Call],
    to_windows: _Roll,
) -> DataFrame:
    """Holistic calls over one argument: the frequency of each value is rolled up like any count."""
    valued = panes.where(where).withColumn(_VALUE.plain, F.expr(value))
    grouped = valued.groupBy(*keys, col(_PANE).alias(PANE), col(_VALUE).alias("_hg_value"))
    counts = _numbered(cut, grouped.agg(F.expr(COUNT.sql).alias(COUNT.name)))
    per_window = to_windows(counts, [*keys, "_hg_value"], [COUNT], True)
    return per_window.groupBy(*keys, WINDOW_ID).agg(*(F.expr(over_values(c)).alias(c.name) for c in calls))


def _by_state(panes: DataFrame, keys: Sequence[str], call: Call, spec: WindowType) -> DataFrame:
    """A user-defined call: a state for each pane, merged for each window."""
    function, size, step = call.function, spec.per_window, spec.per_slide
    collected = F.expr(user.collected(call)).alias("_hg_tuples")
    states = _numbered(spec.cut, panes.groupBy(*keys, col(_PANE).alias(PANE)).agg(collected))
    first, last = f"{floor_div(f'{PANE} - {size}L', step)} + 1", floor_div(PANE, step)
    windows = states.select(
        *keys, PANE, user.state(function, "_hg_tuples", len(call.arguments)).alias("_hg_state")
    ).withColumn(WINDOW_ID, F.explode(F.expr(f"sequence({first}, {last})")))
    lists = windows.groupBy(*keys, WINDOW_ID).agg(F.collect_list("_hg_state").alias("_hg_states"))
    return lists.select(*keys, WINDOW_ID, user.merged_states(function, "_hg_states").alias(call.name))


def joined(left: DataFrame, right: DataFrame, keys: Sequence[Name]) -> DataFrame:
    """Windows of a group with more of their answers, where there are any."""
    names = [*keys, Name(WINDOW_ID)]
    theirs = others(names)
    renamed = right.withColumnsRenamed({n.plain: their.plain for n, their in zip(names, theirs, strict=True)})
    same = (col(names[-1]) == col(theirs[-1])) & same_keys(keys, theirs[:-1])
    return left.join(renamed, same, "left").drop(*(their.plain for their in theirs))


def _direct(call: Call, attribute: str | None) -> str:
    """A holistic or DISTINCT call as Spark computes it over tuples."""
    holes = call_holes(call, attribute)
    template = call.function.direct or call.function.name + "({d}{x}){f}"
    return template.format(**holes)


def over_values(call: Call) -> str:
    """A holistic or DISTINCT call over values with their frequencies; none occurs at all where it is NULL."""
    if call.function.bounded:
        return f"{call.function.name}(_hg_value)"
    frequency = "1L" if call.distinct else COUNT.name
    parameter = text(call.parameter) if call.parameter is not None else ""
    return call.function.final.format(x="_hg_value", n=frequency, p=parameter)


def _bounds(window: Window, df: DataFrame) -> list[Column]:
    if window.by == "tuple":
        start, end = f"{WINDOW_ID} - {literal(window.range)}", WINDOW_ID
    else:
        start, end = window.type.bounds_sql(WINDOW_ID)
    names = ((WINDOW_START, start), (WINDOW_END, end))
    return [F.expr(bound(df, window.attribute, place)).alias(name) for name, place in names]
