"""From the tree back to text. The parser reads that text as the same tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator

from headgate.lang import nodes
from headgate.lang.written import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WrittenGenerator(SparkGenerator):
    """Prints what the user wrote as it was written, and the rest as Spark's generator does."""

    def sql(self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True) -> str:
        if key is None and isinstance(expression, exp.Expr):
            written = text_of(expression, self.sql)
            if written is not None:
                return written
        return super().sql(expression, key, comment)


class HeadgateGenerator(WrittenGenerator):
    """Prints our own nodes too."""

    # Spark's generator rewrites SELECT and FROM for old versions of Spark; ours prints them as they are.
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **{kind: printer for kind, printer in SparkGenerator.TRANSFORMS.items() if kind not in (exp.Select, exp.From)},
        nodes.Length: lambda self, node: self.length_text(node),
        nodes.Rank: lambda self, node: f"rank({self.sql(node, 'this')})",
        nodes.WindowClause: lambda self, node: self.clause_text(node),
        nodes.Windowed: lambda self, node: f"{self.sql(node, 'this')} {self.sql(node, 'clause')}",
        nodes.StreamUnion: lambda self, node: self.stream_union_text(node),
        nodes.Option: lambda self, node: self.option_text(node),
        nodes.Progress: lambda self, node: self.progress_text(node),
        nodes.CreateStream: lambda self, node: self.create_stream_text(node),
        nodes.CreateTable: lambda self, node: self.create_table_text(node),
        nodes.CreateQuery: lambda self, node: self.create_query_text(node),
        nodes.CreateSink: lambda self, node: self.create_sink_text(node),
    }

    def length_text(self, node: nodes.Length) -> str:
        return f"{self.sql(node, 'this')} {node.unit}" if node.unit else self.sql(node, "this")

    def clause_text(self, node: nodes.WindowClause) -> str:
        words = ["RANGE ALL" if node.all else f"RANGE {'TUMBLING ' * node.tumbling}{self.sql(node, 'range')}"]
        words += [
            f"{key.upper()} {self.sql(node, key)}" for key in ("slide", "wa", "rattr", "sattr") if node.args.get(key)
        ]
        if node.pa:
            columns = self._comma(node.pa)
            words.append(f"PA {columns}" if len(node.pa) == 1 else f"PA ({columns})")
        return f"[{', '.join(words)}]"

    def stream_union_text(self, node: nodes.StreamUnion) -> str:
        members = " UNION ".join(self.sql(member) for member in node.expressions)
        alias = self.sql(node, "alias")
        return f"{members} AS {alias}" if alias else members

    def option_text(self, node: nodes.Option) -> str:
        name = node.name if _WORD.fullmatch(node.name) else self.sql(node, "this")
        return f"{name} = {self.sql(node, 'expression')}"

    def progress_text(self, node: nodes.Progress) -> str:
        words = [f"PROGRESS ON {self.sql(node, 'on')}"]
        if node.within:
            words.append(f"WITHIN {self.sql(node, 'within')}")
        if node.ordered:
            words.append("ORDERED")
        if node.slack_rows is not None:
            words.append(f"SLACK {node.slack_rows} ROWS")
        if node.punctuated_by:
            words.append(f"PUNCTUATED BY {self.sql(node, 'punctuated_by')}")
        if node.by:
            words.append(f"BY {self.sql(node, 'by')}")
        if node.idle:
            words.append(f"IDLE {self.sql(node, 'idle')}")
        return " ".join(words)

    def create_stream_text(self, node: nodes.CreateStream) -> str:
        words = [f"CREATE STREAM {self.sql(node, 'this')} FROM", *self._place(node)]
        if node.schema:
            words.append(f"SCHEMA ({self._comma(node.schema)})")
        if node.progress:
            words.append(self.sql(node.progress))
        return " ".join(words)

    def create_table_text(self, node: nodes.CreateTable) -> str:
        schema = [f"SCHEMA ({self._comma(node.schema)})"] if node.schema else []
        return " ".join((f"CREATE TABLE {self.sql(node, 'this')} FROM", *self._place(node), *schema))

    def create_query_text(self, node: nodes.CreateQuery) -> str:
        properties = node.args.get("properties")
        with_ = f" WITH ({self._comma(properties)})" if properties else ""
        return f"CREATE QUERY {self.sql(node, 'this')}{with_} AS{self.sep()}{self.sql(node, 'expression')}"

    def create_sink_text(self, node: nodes.CreateSink) -> str:
        output = "" if node.output == "answers" else f" {node.output.upper()}"
        return " ".join((f"CREATE SINK FOR {self.sql(node, 'this')}{output} INTO", *self._place(node)))

    def _place(self, node: nodes.CreateStream | nodes.CreateTable | nodes.CreateSink) -> list[str]:
        """Where a stream comes from, or a sink writes to: format, path, options."""
        words = [self.sql(node, "format")]
        if node.path is not None:
            words.append(self.sql(node, "path"))
        if options := node.args.get("options"):
            words.append(f"OPTIONS ({self._comma(options)})")
        return words

    def _comma(self, items: Sequence[exp.Expr]) -> str:
        return ", ".join(self.sql(item) for item in items)


class NormalGenerator(HeadgateGenerator):
    """Prints everything in one form, however the user spelt it."""

    def sql(self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True) -> str:
        return SparkGenerator.sql(self, expression, key, comment)
