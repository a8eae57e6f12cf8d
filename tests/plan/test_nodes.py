"""Every kind of node that sqlglot knows, in every place of a query: it is done, or refused by an error of ours."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.optimizer.annotate_types import annotate_types

import headgate as hg
from headgate.lang import StreamUnion, WindowClause, Windowed, parse_query
from headgate.plan import Catalog, Field, Node, Project, Source, bind
from headgate.plan.logical.nodes import Filter
from headgate.plan.logical.spelling import Spelt

COLUMNS = (Field("ts", "timestamp"), Field("k", "string"), Field("x", "int"))
CATALOG = Catalog(
    [
        Source("S", COLUMNS, progressing="ts"),
        Source("T", COLUMNS, progressing="ts"),
        Source("hosts", (Field("k", "string"), Field("name", "string")), table=True),
    ]
)

#: Queries that have all the parts of the language between them.
QUERIES = [
    "SELECT x + 1 AS y, * FROM S AS s WHERE x > 1",
    "SELECT s.* EXCEPT (x) FROM S AS s(a, k, x)",
    "WITH q AS (SELECT k, ts FROM S), r(b, c) AS (SELECT k, ts FROM q) SELECT b FROM r",
    "SELECT k, count(*) AS n [RANGE 5 minutes, SLIDE 1 minute, WA ts] FROM S GROUP BY k HAVING count(*) > 1",
    "SELECT sum(DISTINCT x) FILTER (WHERE x > 1), first(x) IGNORE NULLS, last(x IGNORE NULLS),"
    " percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM S [RANGE TUMBLING 5 minutes, WA ts]",
    "SELECT window.start, k, max(x) FROM S GROUP BY window(ts, '5 minutes'), 2",
    "SELECT S.k AS a, t.x AS b FROM S [RANGE 1 minute] JOIN T AS t [RANGE 1 minute] ON S.k = t.k, hosts WHERE S.x > 1",
    "SELECT S.k AS a FROM S LEFT OUTER JOIN hosts ON S.k = hosts.k",
    "SELECT count(*) [RANGE 1 minute, WA ts] FROM S UNION T AS u",
    "SELECT k, ts FROM S UNION ALL SELECT k, ts FROM T",
    "SELECT DISTINCT ON (k, x) k FROM S [RANGE 1 minute, WA ts]",
    "SELECT max(n) [RANGE 5 minutes] FROM (SELECT count(*) AS n [RANGE 1 minute, WA ts] FROM S) AS q",
    "SELECT count(*) [RANGE ALL, SLIDE 1 minute, WA ts, PA k] FROM S",
    "SELECT count(*) [RANGE 5 minutes, RATTR ts, SLIDE 2 rows, SATTR rank(ts)] FROM S",
]
#: What an argument of a node might be set to.
VALUES: list[Any] = [
    True,
    "LEFT",
    exp.Literal.number(3),
    exp.to_identifier("k"),
    exp.column("k"),
    exp.to_table("T"),
    [exp.column("k")],
    [exp.to_identifier("k")],
    [exp.Join(this=exp.to_table("T"))],
    [exp.Pivot(expressions=[exp.column("k")])],
    exp.With(expressions=[exp.CTE(this=parse_query("SELECT 1 FROM S"), alias=exp.TableAlias(this="z"))]),
]
#: Parts that are asked for, and change nothing here: a name that is not used, what holds without saying.
MEANS_NOTHING_MORE = [
    (exp.Table, "alias"),
    (exp.Subquery, "alias"),
    (StreamUnion, "alias"),
    (exp.Ordered, "nulls_first"),
    (WindowClause, "all"),
    (WindowClause, "tumbling"),
    (WindowClause, "range"),
]
#: What is raised about a tree that no parser makes, such as one with a flag in the place of a query.
_NO_TREE = (AssertionError, AttributeError, IndexError, KeyError, NameError, TypeError, ValueError)
#: All but columns, which the others are made of.
KINDS = sorted(
    (
        kind
        for kind in vars(exp).values()
        if isinstance(kind, type) and issubclass(kind, exp.Expression) and not issubclass(kind, exp.Column)
    ),
    key=lambda kind: kind.__name__,
)


def bound(query: exp.Expr) -> Node | hg.Error:
    """The plan of a query, or the error that refuses it; anything else is a defect."""
    try:
        return bind(query, CATALOG)
    except hg.Error as error:
        return error


@pytest.mark.parametrize("sql", QUERIES)
def test_the_queries_are_done(sql: str) -> None:
    assert isinstance(bound(parse_query(sql)), Node)


@pytest.mark.parametrize("sql", QUERIES)
def test_nothing_that_a_part_may_have_is_passed_over(sql: str) -> None:
    plan, places = bound(parse_query(sql)), 0
    for i, node in enumerate(parse_query(sql).walk()):
        if _is_spelt(node):
            continue
        for key in node.arg_types:
            if node.args.get(key) not in (None, False, []) or (type(node), key) in MEANS_NOTHING_MORE:
                continue
            for value in VALUES:
                query = parse_query(sql)
                next(n for j, n in enumerate(query.walk()) if j == i).set(key, _copied(value))
                places += 1
                try:
                    changed = bound(query)
                except _NO_TREE:
                    continue
                assert isinstance(changed, hg.Error) or changed != plan, f"{type(node).__name__}.{key} = {value!r}"
    assert places > 100


def _is_spelt(node: exp.Expr) -> bool:
    """Whether a node is part of what Spark gets as text, where what it is made of makes no difference."""
    return isinstance(node, exp.Identifier | exp.Literal | exp.Var | exp.Column | exp.Binary | exp.Paren)


def _copied(value: Any) -> Any:
    return (
        [v.copy() for v in value] if isinstance(value, list) else value.copy() if isinstance(value, exp.Expr) else value
    )


PLACES: dict[str, str] = {
    "item": "SELECT hole, k FROM S",
    "aliased": "SELECT hole AS v FROM S",
    "argument": "SELECT sum(hole) AS v [RANGE 1 minute] FROM S",
    "where": "SELECT k FROM S WHERE hole",
    "group": "SELECT count(*) AS n [RANGE 1 minute] FROM S GROUP BY hole",
    "having": "SELECT count(*) AS n [RANGE 1 minute] FROM S HAVING hole",
    "on": "SELECT S.k AS a FROM S JOIN hosts ON hole",
    "key": "SELECT DISTINCT ON (hole) k FROM S [RANGE 1 minute]",
}


@pytest.mark.parametrize("place", PLACES)
def test_every_kind_of_node_reaches_spark_or_is_refused(place: str) -> None:
    done = 0
    for kind in KINDS:
        for node in _made(kind):
            query = parse_query(PLACES[place])
            hole = next(n for n in query.find_all(exp.Column) if n.name == "hole")
            hole.replace(node)
            plan = bound(query)
            if isinstance(plan, Node) and place in ("aliased", "where"):
                done += 1
                _check_that_it_is_there(plan, node)
    assert done or place not in ("aliased", "where")


def _check_that_it_is_there(plan: Node, node: exp.Expr) -> None:
    """What Spark gets is the node, with nothing but its names exchanged."""
    filters = [n for n in (plan, *plan.inputs) if isinstance(n, Filter)]
    assert isinstance(plan, Project)
    got = filters[0].predicate if filters else plan.columns[0].expression
    wanted = node.copy().transform(
        lambda n: exp.column(exp.to_identifier(n.name, quoted=True)) if isinstance(n, exp.Column) else n
    )
    assert str(Spelt(got)) == str(Spelt(wanted)), type(node).__name__


@pytest.mark.parametrize("kind", [exp.From, exp.Join, exp.Union, exp.Subquery, exp.CTE])
def test_a_source_is_a_stream_or_a_select(kind: type[exp.Expression]) -> None:
    for other in KINDS:
        for node in _made(other):
            query = parse_query(
                "WITH q AS (SELECT k, ts FROM S) SELECT k, ts FROM (SELECT k, ts FROM q) AS r, hosts"
                " UNION ALL SELECT k, ts FROM S"
            )
            found = query if kind is exp.Union else next(iter(query.find_all(kind)))
            found.set("this", node)
            if isinstance(bound(query), Node):
                assert isinstance(node, (exp.Select, exp.Union, exp.Subquery, exp.Table, StreamUnion, Windowed))


def _made(kind: type[exp.Expression]) -> list[exp.Expression]:
    """Nodes of a kind, with something for each of its parts."""
    if kind not in _PATTERNS:
        _PATTERNS[kind] = _patterns(kind)
    return [node.copy() for node in _PATTERNS[kind]]


_PATTERNS: dict[type[exp.Expression], list[exp.Expression]] = {}


def _patterns(kind: type[exp.Expression]) -> list[exp.Expression]:
    made = []
    for filling in (exp.column("x"), exp.Literal.number(1), exp.to_identifier("k")):
        try:
            node = kind(
                **{
                    key: [filling.copy()] if key in ("expressions", "ifs") else filling.copy()
                    for key, needed in kind.arg_types.items()
                    if needed or key in ("this", "expression", "expressions")
                }
            )
            SparkGenerator().generate(node)
            annotate_types(exp.select(node.copy()))
        except (SqlglotError, *_NO_TREE):
            continue  # It cannot be printed, so nobody can have written it.
        made.append(node)
    return made
