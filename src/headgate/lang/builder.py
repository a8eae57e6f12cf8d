"""A builder for queries in Python. It makes the same trees as the text does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlglot import exp

from headgate.errors import BindError
from headgate.given import checked, flag, number, refused, text
from headgate.lang.nodes import Length, StreamUnion, WindowClause, Windowed
from headgate.lang.parse import parse_fragment, parse_length, to_sql
from headgate.lang.statements import HeadgateParser

if TYPE_CHECKING:
    from collections.abc import Sequence


T = TypeVar("T", bound=exp.Expr)

#: What a query reads: a stream by name or text, a nested query, a tree, or one of these with an alias.
Source: TypeAlias = "str | Query | exp.Expr | tuple[str | Query | exp.Expr, str]"


@dataclass(frozen=True)
class Query:
    """A query under construction. It never changes; each call gives a new one.

    >>> query = select("srcIP", "count(*) AS n").window(range="10 minutes", wa="ts")
    >>> query.from_("Main").group_by("srcIP").sql()
    'SELECT srcIP, count(*) AS n [RANGE 10 minutes, WA ts] FROM Main GROUP BY srcIP'
    """

    _select: exp.Select

    @property
    def ast(self) -> exp.Select:
        """A copy of the tree of the query. The caller may change it."""
        return self._select.copy()

    @checked("query.sql", BindError)
    def sql(self, pretty: bool = False) -> str:
        """The text of the query."""
        return to_sql(self._select, pretty=flag("query.sql: pretty", pretty, BindError))

    @checked("query.window", BindError)
    def window(
        self,
        range: str | float,  # noqa: A002 - the word of the language
        slide: str | float | None = None,
        wa: str | None = None,
        pa: str | Sequence[str] | None = None,
        rattr: str | None = None,
        sattr: str | None = None,
        tumbling: bool = False,
    ) -> Query:
        """The query with a window clause after its last select item.

        >>> select("max(p) AS top").window(range=10, slide=5, wa="seq").from_("S").sql()
        'SELECT max(p) AS top [RANGE 10, SLIDE 5, WA seq] FROM S'
        """
        clause = window(range, slide, wa, pa, rattr, sattr, tumbling)
        query = self.ast
        *others, last = query.expressions
        if isinstance(last, Windowed):
            raise BindError(f"{to_sql(last)} has a window already")
        query.set("expressions", [*others, Windowed(this=last, clause=clause)])
        return Query(query)

    @checked("query.from_", BindError)
    def from_(self, *sources: Source) -> Query:
        """The query over these sources. Several of them are joined.

        >>> select("a").from_("A", ("B", "b")).sql()
        'SELECT a FROM A, B AS b'
        """
        if not sources:
            raise BindError("from_ takes at least one source")
        query = self.ast
        first, *others = [_source(source) for source in sources]
        query.set("from_", exp.From(this=first))
        query.set("joins", [exp.Join(this=other) for other in others] or None)
        return Query(query)

    @checked("query.where", BindError)
    def where(self, condition: str) -> Query:
        """The query with one more condition on its tuples.

        >>> select("a").from_("A").where("a > 1").where("a < 9").sql()
        'SELECT a FROM A WHERE a > 1 AND a < 9'
        """
        return Query(self._select.where(_condition(condition)))

    @checked("query.group_by", BindError)
    def group_by(self, *expressions: str) -> Query:
        """The query with more expressions to group by.

        >>> select("a", "count(*)").from_("A").group_by("a").sql()
        'SELECT a, count(*) FROM A GROUP BY a'
        """
        return Query(self._select.group_by(*(_condition(expression) for expression in expressions)))

    @checked("query.having", BindError)
    def having(self, condition: str) -> Query:
        """The query with one more condition on its groups.

        >>> select("count(*)").from_("A").having("count(*) > 1").sql()
        'SELECT count(*) FROM A HAVING count(*) > 1'
        """
        return Query(self._select.having(_condition(condition)))


@checked("hg.select", BindError)
def select(*items: str) -> Query:
    """A query that selects these items. Each is an expression, perhaps with an alias and a window clause.

    >>> select("a", "b + 1 AS c").sql()
    'SELECT a, b + 1 AS c'
    """
    if not items:
        raise BindError("select takes at least one item")
    texts = [
        text("hg.select: item", item, "the text of an expression, such as 'count(*) AS n'", BindError) for item in items
    ]
    parsed = [parse_fragment(item, HeadgateParser.parse_select_item) for item in texts]
    return Query(exp.Select(expressions=parsed))


@checked("hg.window", BindError)
def window(
    range: str | float,  # noqa: A002 - the word of the language
    slide: str | float | None = None,
    wa: str | None = None,
    pa: str | Sequence[str] | None = None,
    rattr: str | None = None,
    sattr: str | None = None,
    tumbling: bool = False,
) -> WindowClause:
    """A window clause. `range` may be "all". A number is a length without a unit.

    >>> to_sql(window(range="all", slide="1 hour", pa=["src", "dst"]))
    '[RANGE ALL, SLIDE 1 hours, PA (src, dst)]'
    """
    everything = isinstance(range, str) and range.strip().lower() == "all"
    columns: Sequence[Any] = pa if isinstance(pa, list | tuple) else [pa]
    args = {
        "range": None if everything else _length("range", range),
        "all": True if everything else None,
        "tumbling": True if flag("hg.window: tumbling", tumbling, BindError) else None,
        "slide": None if slide is None else _length("slide", slide),
        "wa": _attribute("wa", wa),
        "rattr": _attribute("rattr", rattr),
        "sattr": None if sattr is None else parse_fragment(_name("sattr", sattr), HeadgateParser.parse_slide_attribute),
        "pa": None if pa is None else [_attribute("pa", column) for column in columns],
    }
    return WindowClause(**{key: arg for key, arg in args.items() if arg is not None})


@checked("hg.stream", BindError)
def stream(source: str | Query | exp.Expr, window: WindowClause | None = None, alias: str | None = None) -> exp.Expr:
    """A stream, nested query or union to read from, with its window and alias.

    >>> to_sql(stream("Main1", window=window(range="3 minutes", wa="ts"), alias="m"))
    'Main1 AS m [RANGE 3 minutes, WA ts]'
    """
    item = _source(source)
    if alias is not None:
        item = _aliased(item, alias)
    if window is None:
        return item
    if not isinstance(window, WindowClause):
        raise refused("hg.stream: window", window, "what hg.window(...) gives", BindError)
    if isinstance(item, Windowed):
        raise BindError(f"{to_sql(item)} has a window already")
    return Windowed(this=item, clause=window.copy())


@checked("hg.union", BindError)
def union(*members: str | Query | exp.Expr, alias: str | None = None) -> StreamUnion:
    """A union of streams to read from.

    >>> to_sql(union("A", "B", alias="M1"))
    'A UNION B AS M1'
    """
    streams: list[exp.Expr] = []
    for member in members:
        item = _source(member)
        if isinstance(item, Windowed) or item.alias:
            raise BindError(f"{to_sql(item)} is in a union and can have no window or alias of its own")
        streams.extend(item.expressions if isinstance(item, StreamUnion) else [item])
    if len(streams) < 2:
        raise BindError("union takes at least two streams")
    whole = StreamUnion(expressions=streams)
    return whole if alias is None else _aliased(whole, alias)


def _source(source: Source) -> exp.Expr:
    if isinstance(source, tuple) and len(source) == 2:
        return _aliased(_source(source[0]), source[1])
    if isinstance(source, Query):
        return exp.Subquery(this=source.ast)
    if isinstance(source, str):
        return parse_fragment(source, HeadgateParser.parse_from_item)
    if not isinstance(source, exp.Expr):
        raise refused(
            "a source of hg.select", source, "the name of a stream, or a query, or one with an alias", BindError
        )
    return source.copy()


def _aliased(item: T, alias: str) -> T:
    stream = item.this if isinstance(item, Windowed) else item
    if stream.args.get("alias"):
        raise BindError(f"{to_sql(stream)} has an alias already")
    name = text("alias", alias, "a name", BindError)
    stream.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    return item


def _length(word: str, length: object) -> Length:
    if isinstance(length, Integral) and not isinstance(length, bool):
        return parse_length(str(int(length)))
    if not isinstance(length, str):
        instead = "a length, such as '10 minutes' or 100"
        length = str(number(f"hg.window: {word}", length, instead, math.isfinite, BindError))
    return parse_length(length)


def _name(word: str, column: object) -> str:
    return text(f"hg.window: {word}", column, "the name of a column", BindError)


def _attribute(word: str, column: str | None) -> exp.Column | None:
    return None if column is None else parse_fragment(_name(word, column), HeadgateParser.parse_attribute)


def _condition(sql: str) -> exp.Expr:
    return parse_fragment(
        text("hg.select: condition", sql, "the text of an expression", BindError), HeadgateParser.parse_condition
    )
