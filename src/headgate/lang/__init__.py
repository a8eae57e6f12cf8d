"""The language: SQL with window clauses, read into a tree and printed from it."""

from headgate.lang.builder import Query, select, stream, union, window
from headgate.lang.dialect import Headgate
from headgate.lang.nodes import (
    CreateQuery,
    CreateSink,
    CreateStream,
    CreateTable,
    Length,
    Option,
    Progress,
    Rank,
    Statement,
    StreamUnion,
    WindowClause,
    Windowed,
)
from headgate.lang.parse import normal_text, parse_length, parse_query, parse_script, to_sql

__all__ = [
    "CreateQuery",
    "CreateSink",
    "CreateStream",
    "CreateTable",
    "Headgate",
    "Length",
    "Option",
    "Progress",
    "Query",
    "Rank",
    "Statement",
    "StreamUnion",
    "WindowClause",
    "Windowed",
    "normal_text",
    "parse_length",
    "parse_query",
    "parse_script",
    "select",
    "stream",
    "to_sql",
    "union",
    "window",
]
