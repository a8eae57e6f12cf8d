"""The parser of scripts: CREATE STREAM, CREATE TABLE, CREATE QUERY and CREATE SINK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headgate.lang import units
from headgate.lang.nodes import CreateQuery, CreateSink, CreateStream, CreateTable, Length, Option, Progress, Statement
from headgate.lang.queries import QueryParser, only_has

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.parser import Parser
    from sqlglot.tokenizer_core import Token

_RULES = "WITHIN, ORDERED, SLACK or PUNCTUATED BY"
_RULE_KEYS = ("within", "ordered", "slack_rows", "punctuated_by")


class HeadgateParser(QueryParser):
    """The parser of the whole language."""

    STATEMENT_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **QueryParser.STATEMENT_PARSERS,
        TokenType.CREATE: lambda self: self._parse_create_statement(),
    }

    def parse_with(
        self, method: Callable[[HeadgateParser], exp.Expr | None], tokens: list[Token], sql: str
    ) -> list[exp.Expr | None]:
        """What a method of this parser makes of each statement in a text."""
        return self._parse(cast("Callable[[Parser], exp.Expr | None]", method), tokens, sql)

    def parse_query_statement(self) -> exp.Query:
        """A SELECT or a UNION of SELECTs."""
        if self._curr.token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
            self.raise_error("expected SELECT")
        start = self._curr
        query = self._parse_statement()
        while isinstance(query, exp.Subquery) and only_has(query, "this"):
            query = query.this
        if not isinstance(query, exp.Query) or not isinstance(query.unnest(), (exp.Select, exp.Union)):
            self.raise_error("expected SELECT", start)
        return query

    def parse_script_statement(self) -> Statement | None:
        """A CREATE statement, or None for a lone semicolon."""
        self._match(TokenType.SEMICOLON)
        if not self._curr:
            return None
        if self._curr.token_type in (TokenType.SELECT, TokenType.WITH):
            self.raise_error("expected CREATE QUERY name AS before a query in a script")
        self._require(TokenType.CREATE, "CREATE STREAM, TABLE, QUERY or SINK")
        return self._parse_create_statement()

    def _parse_create_statement(self) -> Statement:
        if self._match_text_seq("STREAM"):
            return self._parse_create_stream()
        if self._match_text_seq("TABLE"):
            return self._parse_create_table()
        if self._match_text_seq("QUERY"):
            return self._parse_create_query()
        if not self._match_text_seq("SINK"):
            self.raise_error("expected STREAM, TABLE, QUERY or SINK")
        return self._parse_create_sink()

    def _parse_create_stream(self) -> CreateStream:
        return self.expression(CreateStream(**self._parse_given("a stream", ("OPTIONS", "SCHEMA", "PROGRESS"))))

    def _parse_create_table(self) -> CreateTable:
        return self.expression(CreateTable(**self._parse_given("a table", ("OPTIONS", "SCHEMA"))))

    def _parse_given(self, what: str, words: tuple[str, ...]) -> dict[str, Any]:
        """The name of a stream or table, where it comes from, and these parts. Each part may come once."""
        name = self._parse_name(f"the name of {what}")
        self._require(TokenType.FROM, "FROM")
        args: dict[str, Any] = {"this": name, **self._parse_format()}
        while self._curr:
            word = self._word()
            if word not in words:
                self.raise_error(f"expected {', '.join(words)} or the end of the statement")
            if word.lower() in args:
                self.raise_error(f"expected {word} only once")
            self._advance()
            args[word.lower()] = self._parse_stream_part(word)
        return args

    def _parse_stream_part(self, word: str) -> list[Option] | list[exp.ColumnDef] | Progress:
        match word:
            case "OPTIONS":
                return self._parse_options()
            case "SCHEMA":
                return self._parse_wrapped_csv(self._parse_schema_column)
            case _:
                return self._parse_progress()

    def _parse_schema_column(self) -> exp.ColumnDef:
        name = self._parse_name("a column")
        column = self._parse_column_def(name)
        if not isinstance(column, exp.ColumnDef) or not column.kind:
            self.raise_error(f"expected the type of column {name.name}")
        if column.args.get("constraints"):
            self.raise_error(
                f"expected the name and the type of column {name.name}, and nothing after them", self._prev
            )
        return column

    def _parse_progress(self) -> Progress:
        self._require(TokenType.ON, "ON")
        args: dict[str, Any] = {"on": self.parse_attribute()}
        while rule := self._parse_progress_rule():
            key, value, word = rule
            if key in args:
                self.raise_error(f"expected {word.text.upper()} only once", word)
            if key in _RULE_KEYS and any(other in args for other in _RULE_KEYS):
                self.raise_error(f"expected only one of {_RULES}", word)
            args[key] = value
        if not any(key in args for key in _RULE_KEYS):
            self.raise_error(f"expected {_RULES}")
        return self.expression(Progress(**args))

    def _parse_progress_rule(self) -> tuple[str, Length | exp.Column | int | bool, Any] | None:
        word = self._curr
        if self._match_text_seq("WITHIN"):
            return "within", self.parse_length(), word
        if self._match_text_seq("ORDERED"):
            return "ordered", True, word
        if self._match_text_seq("SLACK"):
            return "slack_rows", self._parse_rows(), word
        if self._match_text_seq("PUNCTUATED"):
            if not self._match_text_seq("BY"):
                self.raise_error("expected BY")
            return "punctuated_by", self.parse_attribute(), word
        if self._match_text_seq("BY"):
            return "by", self.parse_attribute(), word
        if self._match_text_seq("IDLE"):
            return "idle", self.parse_length(), word
        return None

    def _parse_rows(self) -> int:
        number = self._curr
        if number.token_type != TokenType.NUMBER or not number.text.isdigit():
            self.raise_error("expected a whole number of rows")
        self._advance()
        if units.unit_of(self._word()) != units.ROWS:
            self.raise_error("expected ROWS")
        self._advance()
        return int(number.text)

    def _parse_create_query(self) -> CreateQuery:
        name = self._parse_name("the name of a query")
        properties = self._parse_options() if self._match(TokenType.WITH) else None
        self._require(TokenType.ALIAS, "AS" if properties else "WITH or AS")
        return self.expression(CreateQuery(this=name, properties=properties, expression=self.parse_query_statement()))

    def _parse_create_sink(self) -> CreateSink:
        if not self._match_text_seq("FOR"):
            self.raise_error("expected FOR")
        name = self._parse_name("the name of a query or a stream")
        output = next((word.lower() for word in ("LATE", "SHED", "BAD") if self._match_text_seq(word)), None)
        self._require(TokenType.INTO, "INTO" if output else "LATE, SHED, BAD or INTO")
        place = self._parse_format()
        options = self._parse_options() if self._match_text_seq("OPTIONS") else None
        return self.expression(CreateSink(this=name, output=output, **place, options=options))

    def _parse_format(self) -> dict[str, exp.Expr]:
        """The name of a format, dots allowed, and the path that may follow it."""
        if not self._word() and self._curr.token_type != TokenType.IDENTIFIER:
            self.raise_error("expected a format, such as kafka or parquet")
        place: dict[str, exp.Expr] = {"format": exp.var(self._parse_dotted())}
        if self._match(TokenType.STRING):
            place["path"] = exp.Literal.string(self._prev.text)
        return place

    def _parse_dotted(self) -> str:
        self._advance()
        name = self._prev.text
        while self._match(TokenType.DOT):
            self._advance()
            name += f".{self._prev.text}"
        return name

    def _parse_options(self) -> list[Option]:
        self._require(TokenType.L_PAREN, "(")
        options: dict[str, Option] = {}
        while not options or self._match(TokenType.COMMA):
            start = self._curr
            option = self._parse_option()
            if option.name in options:
                self.raise_error(f"expected {option.name} only once", start)
            options[option.name] = option
        self._require(TokenType.R_PAREN, ", or )")
        return list(options.values())

    def _parse_option(self) -> Option:
        if not self._word() and self._curr.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            self.raise_error("expected the name of an option")
        name = exp.Literal.string(self._parse_dotted())
        self._require(TokenType.EQ, "=")
        return self.expression(Option(this=name, expression=self._parse_option_value()))

    def _parse_option_value(self) -> exp.Expr:
        if self._match(TokenType.STRING):
            return exp.Literal.string(self._prev.text)
        if self._match_set((TokenType.TRUE, TokenType.FALSE)):
            return exp.Boolean(this=self._prev.token_type == TokenType.TRUE)
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._match(TokenType.NUMBER):
            self.raise_error("expected a text in quotes, a number, true or false")
        return exp.Literal(this=f"{sign}{self._prev.text}", is_string=False)
