"""Opens a query's tree one node at a time. A part that a node has and nobody asks for is refused by its name.

So nothing that a user writes is passed over, however much of SQL sqlglot learns to read: the binder does not ask for a
part that it does not know.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from headgate.errors import BindError

#: The names of parts, where sqlglot's own word would not be understood, and what to do instead.
_SAID = {
    "all": "GROUP BY ALL: name the columns",
    "catalog": "a catalog before the name of a stream: streams have plain names",
    "cluster": "CLUSTER BY",
    "columns": "names of columns after an alias",
    "cube": "GROUP BY with CUBE: write one query for each grouping",
    "db": "a database before the name of a stream: streams have plain names",
    "distinct": "UNION DISTINCT: a UNION keeps duplicates; find them with SELECT DISTINCT ON",
    "distribute": "DISTRIBUTE BY",
    "grouping_sets": "GROUPING SETS: write one query for each grouping",
    "hint": "a hint, /*+ ... */: how a query is run is up to the planner",
    "hints": "a hint: how a query is run is up to the planner",
    "ilike": "* ILIKE: name the columns",
    "into": "SELECT ... INTO: connect a sink, flow.sink(...) or CREATE SINK FOR",
    "laterals": "LATERAL VIEW",
    "limit": "LIMIT: a continuous query has no last row",
    "locks": "FOR UPDATE and FOR SHARE: nothing that streams can be locked",
    "match": "MATCH_RECOGNIZE",
    "offset": "OFFSET: a continuous query has no first row",
    "order": "ORDER BY: results of a continuous query have no order; sort them where you read them",
    "qualify": "QUALIFY",
    "recursive": "WITH RECURSIVE",
    "replace": "* REPLACE: name the columns",
    "rename": "* RENAME: name the columns",
    "rollup": "GROUP BY with ROLLUP: write one query for each grouping",
    "sample": "TABLESAMPLE: sampling is chosen by a query's policy",
    "sort": "SORT BY",
    "using": "JOIN ... USING: write ON, as in ON a.k = b.k",
    "version": "VERSION AS OF and TIMESTAMP AS OF: a stream is read as it comes",
    "when": "VERSION AS OF and TIMESTAMP AS OF: a stream is read as it comes",
    "windows": "WINDOW: give the query a window clause",
}


def opened(node: exp.Expr, *keys: str) -> tuple[Any, ...]:
    """The parts of a node that are asked for, None where it lacks one. It is a BindError if it has any others.

    >>> from sqlglot import parse_one
    >>> opened(parse_one("SELECT a LIMIT 5"), "expressions")
    Traceback (most recent call last):
    headgate.errors.BindError: not part of the language: LIMIT: a continuous query has no last row
    """
    for key, value in node.args.items():
        if key not in keys and value is not None and value is not False and value != []:
            raise refused(said(key, value))
    return tuple(node.args.get(key) for key in keys)


def refused(what: str) -> BindError:
    """The error for a part of SQL that the language does not have."""
    return BindError(f"not part of the language: {what}")


def said(key: str, value: Any) -> str:
    """The name of a part, as those who write SQL know it.

    >>> said("method", "NATURAL"), said("grouping_sets", [])
    ('NATURAL', 'GROUPING SETS: write one query for each grouping')
    """
    if key == "pivots":
        return "UNPIVOT" if any(pivot.args.get("unpivot") for pivot in value) else "PIVOT"
    if key in _SAID:
        return _SAID[key]
    return value.upper() if isinstance(value, str) else key.strip("_").replace("_", " ").upper()
