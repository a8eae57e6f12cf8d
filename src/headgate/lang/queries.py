"""The parser of queries: window clauses after select items and from-items, and unions of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headgate.lang.brackets import CLAUSE_START, WORDS, mark_clauses
from headgate.lang.expressions import ExpressionParser
from headgate.lang.nodes import StreamUnion, WindowClause, Windowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.parser import Parser
    from sqlglot.tokenizer_core import Token

T = TypeVar("T")

_ANY_WORD = "RANGE, SLIDE, WA, RATTR, SATTR or PA"
_ONLY_AFTER_THE_LAST = "expected an alias or window clause only after the last stream of a union"

_OPENING = (CLAUSE_START, TokenType.L_BRACKET)
_STREAMS = (exp.Table, exp.Subquery, StreamUnion)
_NO_TYPES = {TokenType.RANGE, TokenType.UNION}
_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM)


class QueryParser(ExpressionParser):
    """Spark's SELECT with window clauses, and with UNION between streams.

    After FROM, `UNION SELECT` begins another query, as in SQL. `UNION` before a name or a parenthesis adds a stream
    to the one before it.
    """

    # Streams after FROM that commas separate stay as they are, and do not turn into CROSS JOIN.
    JOINS_HAVE_EQUAL_PRECEDENCE = False

    # In Spark 4 a CAST that cannot be done is an error, and TRY_CAST gives a null.
    STRICT_CAST = True

    # Other dialects have a type `range<...>` and a type `union<...>`; here `range < 5` is a comparison.
    TYPE_TOKENS: ClassVar[set[TokenType]] = ExpressionParser.TYPE_TOKENS - _NO_TYPES
    NESTED_TYPE_TOKENS: ClassVar[set[TokenType]] = ExpressionParser.NESTED_TYPE_TOKENS - _NO_TYPES

    RESERVED_TOKENS: ClassVar[set[TokenType]] = {*ExpressionParser.RESERVED_TOKENS, CLAUSE_START}

    def _parse(
        self,
        parse_method: Callable[[Parser], exp.Expr | None],
        raw_tokens: list[Token],
        sql: str | None = None,
    ) -> list[exp.Expr | None]:
        return super()._parse(parse_method, mark_clauses(raw_tokens), sql)

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        # Other dialects let a query begin with FROM. Here that is a missing SELECT.
        if self._curr.token_type == TokenType.FROM:
            return None
        return super()._parse_select_query(*args, **kwargs)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        return self._parse_csv(self.parse_select_item), None

    def parse_select_item(self) -> exp.Expr:
        """An expression with its alias. A window clause may follow either."""
        if self._curr.token_type == TokenType.FROM:
            self.raise_error("expected a column or an expression")
        item = self._parse_expression()
        if item is None:
            self.raise_error("expected a column or an expression")
        if self._prev.token_type == TokenType.ALIAS:
            self.raise_error("expected an alias")
        if self._curr.token_type != CLAUSE_START:
            return item
        clause = self.parse_clause()
        if not isinstance(item, exp.Alias):
            item = self._parse_alias(item)
        return self.expression(Windowed(this=item, clause=clause))

    def parse_from_item(self) -> exp.Expr:
        """A stream, a nested query or a union of streams, with its alias and its window clause."""
        item = self._parse_table()
        if not isinstance(item, (*_STREAMS, Windowed)):
            self.raise_error("expected a stream")
        return item

    def parse_condition(self) -> exp.Expr:
        """An expression without an alias, as WHERE, GROUP BY and HAVING have it."""
        condition = self._parse_disjunction()
        if condition is None:
            self.raise_error("expected an expression")
        return condition

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        # A stream has no subscripts, so any bracket after it opens a clause.
        return this if isinstance(this, exp.Table) else super()._parse_bracket(this)

    def parse_clause(self) -> WindowClause:
        """A window clause, brackets included."""
        if not self._match_set(_OPENING):
            self.raise_error("expected [")
        args: dict[str, Any] = {}
        more = True
        while more or not self._match(TokenType.R_BRACKET):
            word = self._word()
            if word not in WORDS:
                self.raise_error(f"expected {_ANY_WORD}" if more else f"expected {_ANY_WORD}, or ]")
            key = "wa" if word == "WATTR" else word.lower()
            if key in args:
                self.raise_error(f"expected {word} only once in a window clause")
            self._advance()
            args |= self._clause_argument(key)
            more = self._match(TokenType.COMMA)
        if "range" not in args:
            self.raise_error("expected RANGE in a window clause", self._prev)
        return self.expression(WindowClause(**{key: arg for key, arg in args.items() if arg is not None}))

    def _clause_argument(self, key: str) -> dict[str, Any]:
        match key:
            case "range" if self._match_text_seq("ALL"):
                return {"range": None, "all": True}
            case "range" if self._match_text_seq("TUMBLING"):
                return {"range": self.parse_length(), "tumbling": True}
            case "range" | "slide":
                return {key: self.parse_length()}
            case "sattr":
                return {key: self.parse_slide_attribute()}
            case "pa" if self._match(TokenType.L_PAREN):
                columns = self._parse_csv(self.parse_attribute)
                self._require(TokenType.R_PAREN, ")")
                return {key: columns}
            case "pa":
                return {key: [self.parse_attribute()]}
            case _:
                return {key: self.parse_attribute()}

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        item = self._without_parentheses(super()._parse_table(*args, **kwargs))
        if not isinstance(item, (*_STREAMS, Windowed)):
            return item
        item = self._parse_stream_union(item)
        if isinstance(item, Windowed) or not self._match_set(_OPENING, advance=False):
            return item
        clause = self.parse_clause()
        if not item.args.get("alias") and (alias := self._parse_table_alias()):
            item.set("alias", alias)
        if self._at_stream_union():
            self.raise_error(_ONLY_AFTER_THE_LAST)
        return self.expression(Windowed(this=item, clause=clause))

    def _parse_stream_union(self, first: exp.Expr) -> exp.Expr:
        members = [first]
        while self._at_stream_union():
            if isinstance(members[-1], Windowed) or members[-1].args.get("alias"):
                self.raise_error(_ONLY_AFTER_THE_LAST)
            self._advance()
            self._match(TokenType.ALL)
            member = self._without_parentheses(super()._parse_table())
            if not isinstance(member, _STREAMS):
                self.raise_error("expected a stream")
            members.append(member)
        if len(members) == 1:
            return first
        alias = members[-1].args.get("alias")
        members[-1].set("alias", None)
        streams = [stream for member in members for stream in _flat(member)]
        return self.expression(StreamUnion(expressions=streams, alias=alias))

    def _at_stream_union(self) -> bool:
        if self._curr.token_type != TokenType.UNION:
            return False
        quantified = self._next.token_type in (TokenType.ALL, TokenType.DISTINCT)
        following = self._ahead(2) if quantified else self._next
        if following.token_type in _QUERY_STARTS:
            return False
        if self._next.token_type == TokenType.DISTINCT:
            self.raise_error("expected ALL or a stream", self._next)
        return True

    def _without_parentheses(self, item: exp.Expr | None) -> exp.Expr | None:
        """The from-item without its parentheses, if they are around a stream or a union and not around a query."""
        while isinstance(item, exp.Subquery) and isinstance(item.this, (exp.Table, StreamUnion, Windowed)):
            if item.this.args.get("joins") or not only_has(item, "this", "alias"):
                return item
            alias, item = item.args.get("alias"), item.this
            stream = item.this if isinstance(item, Windowed) else item
            if alias and stream.args.get("alias"):
                self.raise_error("expected one alias for a stream", self._prev)
            if alias:
                stream.set("alias", alias)
        return item

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        comma = self._curr.token_type == TokenType.COMMA
        join = super()._parse_join(*args, **kwargs)
        if comma and join is None:
            self.raise_error("expected a stream")
        if join and self._prev.token_type == TokenType.ON:
            self.raise_error("expected an expression")
        if join and isinstance(join.this, (Windowed, StreamUnion)) and join.this.args.get("joins"):
            self.raise_error("expected ON directly after each JOIN")
        return join

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        group = super()._parse_group(skip_group_by_token)
        if group and not any(group.args.values()):
            self.raise_error("expected an expression")
        return group

    def _parse_csv(self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA) -> list[T]:
        def item() -> T | None:
            parsed = parse_method()
            if parsed is None and self._prev.token_type == sep:
                self.raise_error("expected an expression")
            return parsed

        return super()._parse_csv(item, sep)

    def _parse_set_operations(self, this: exp.Expr | None) -> exp.Expr | None:
        if this and self._curr.token_type in (TokenType.EXCEPT, TokenType.INTERSECT):
            self.raise_error("expected UNION or the end of the statement")
        if this and self._curr.token_type == TokenType.UNION and self._next.token_type == TokenType.DISTINCT:
            self.raise_error("expected ALL or a SELECT: a UNION keeps duplicates", self._next)
        union = super()._parse_set_operations(this)
        side = union
        while isinstance(side, exp.Union):
            side.set("distinct", False)  # With or without ALL.
            side = side.this
        return union

    def _parse_pipe_syntax_query(self, _: exp.Query) -> exp.Query | None:
        self.raise_error("expected the end of the statement")


def only_has(node: exp.Expr, *keys: str) -> bool:
    """Whether a node has only these parts, so that nothing is lost when it is taken apart."""
    return not any(value for key, value in node.args.items() if key not in keys)


def _flat(member: exp.Expr) -> list[exp.Expr]:
    return list(member.expressions) if isinstance(member, StreamUnion) else [member]
