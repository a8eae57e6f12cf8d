"""What all parts of the parser use: errors with a place, names, attributes, lengths."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from headgate.lang import units
from headgate.lang.brackets import WORDS, word_of
from headgate.lang.nodes import Length, Rank
from headgate.lang.wording import position, quoted, worded

_UNIT = f"a unit of fixed length ({', '.join(units.MICROSECONDS)} or {units.ROWS})"
_LENGTH_PART = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))(?:\s*([A-Za-z]+))?")
_NOTHING = Token(TokenType.SENTINEL, "")

_RULE_WORDS = ("WITHIN", "ORDERED", "SLACK", "PUNCTUATED", "BY", "IDLE")

#: Words that may follow a bare number. They are not a wrong unit.
_BEHIND_A_LENGTH = frozenset((*WORDS, *_RULE_WORDS, "OPTIONS", "SCHEMA", "PROGRESS", "FROM"))


class Failure(NamedTuple):
    """An error, and the offset in the text that it is about."""

    offset: int
    message: str


class Reader(SparkParser):
    """Spark's parser with errors that say what was expected, and with the smallest parts of our language."""

    # sqlglot tries several readings, and drops the error of each that fails. The text is most likely wrong where the
    # reading that came farthest stopped, so that is the error to show.
    _farthest: Failure | None = None

    def reset(self) -> None:
        super().reset()
        self._farthest = None

    def raise_error(self, message: str, token: Token = _NOTHING) -> NoReturn:
        """Stop with an error at a token, by default the current one."""
        token = token or self._curr
        offset = token.start if token else self._end_of_statement()
        text = self.sql[token.start : token.end + 1] if token else self.sql[offset : offset + 1].strip()
        failure = Failure(offset, worded(message, quoted(text) if text else "the end of the text"))
        if self._farthest is None or offset > self._farthest.offset:
            self._farthest = failure
        line, column = position(self.sql, self._farthest.offset)
        raise ParseError.new(self._farthest.message, description=self._farthest.message, line=line, col=column)

    def stuck_at(self, sql: str) -> tuple[str, int, int]:
        """The message, line and column of the error, where the text could not be read any further."""
        token = self._curr or self._prev
        if not token:
            return "expected a query", 1, 1
        text = sql[token.start : token.end + 1]
        return f"this cannot be read from {quoted(text)} on", *position(sql, token.start)

    def _end_of_statement(self) -> int:
        """The offset of the semicolon after the last token, or of the end of the text."""
        end = self._prev.end + 1 if self._prev else 0
        semicolon = re.compile(r"\s*;").match(self.sql, end)
        return semicolon.end() - 1 if semicolon else len(self.sql.rstrip())

    def _ahead(self, steps: int) -> Token:
        """The token so many steps ahead of the current one."""
        index = self._index + steps
        return self._tokens[index] if index < len(self._tokens) else _NOTHING

    def _word(self) -> str:
        """The current token in upper case if it is a bare word, else ""."""
        return word_of(self._curr)

    def _require(self, token_type: TokenType, text: str) -> None:
        if not self._match(token_type):
            self.raise_error(f"expected {text}")

    def _parse_name(self, what: str) -> exp.Identifier:
        name = self._parse_id_var(any_token=False)
        if not isinstance(name, exp.Identifier):
            self.raise_error(f"expected {what}")
        return name

    def parse_attribute(self) -> exp.Column:
        """A column, possibly qualified: `ts`, `M1.ts`, `row_num`; also `row-num`."""
        if self._word() == "ROW" and self._ahead(1).text == "-" and self._ahead(2).text.upper() == "NUM":
            self._advance(3)
            return self.expression(exp.Column(this=exp.to_identifier("row_num")))
        parts = [self._parse_name("a column")]
        while len(parts) < 4 and self._match(TokenType.DOT):
            parts.append(self._parse_name("a column"))
        keys = ("this", "table", "db", "catalog")
        return self.expression(exp.Column(**dict(zip(keys, reversed(parts), strict=False))))

    def parse_slide_attribute(self) -> exp.Column | Rank:
        """What may follow SATTR: `row_num`, a column, or `rank(column)`."""
        if self._word() == "RANK" and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            rank = Rank(this=self.parse_attribute())
            self._require(TokenType.R_PAREN, ")")
            return self.expression(rank)
        return self.parse_attribute()

    def parse_length(self) -> Length:
        """A number with or without a unit. Several are added up. INTERVAL and quotes change nothing."""
        self._match(TokenType.INTERVAL)
        start = self._curr
        parts = self._quoted_parts() if self._match(TokenType.STRING) else self._bare_parts()
        if len(parts) == 1:
            number, unit = parts[0]
        else:
            total = units.add_up([(number, unit or "") for number, unit in parts])
            if total is None:
                self.raise_error("expected either rows or time", start)
            number, unit = total
        literal = exp.Literal(this=units.plain(number), is_string=False)
        return self.expression(Length(this=literal, unit=exp.var(unit) if unit else None))

    def _bare_parts(self) -> list[tuple[Decimal, str | None]]:
        parts: list[tuple[Decimal, str | None]] = []
        while not parts or (parts[-1][1] and self._curr.token_type == TokenType.NUMBER):
            sign = -1 if self._match(TokenType.DASH) else 1
            number = units.number_of(self._curr.text) if self._curr.token_type == TokenType.NUMBER else None
            # Spark reads `10s` as a number and its type: two tokens at one place.
            if number is None or (self._next and self._next.start == self._curr.start):
                self.raise_error("expected a length, such as 10 minutes or 1000 rows")
            self._advance()
            unit = self._parse_unit()
            if parts and unit is None:
                self.raise_error(f"expected {_UNIT}")
            parts.append((sign * number, unit))
        return parts

    def _quoted_parts(self) -> list[tuple[Decimal, str | None]]:
        """The parts of a length in quotes. Its unit may follow the quotes."""
        token = self._prev
        text = re.sub(r"^\s*interval\b", "", token.text, flags=re.IGNORECASE).rstrip()
        parts: list[tuple[Decimal, str | None]] = []
        offset = 0
        while match := _LENGTH_PART.match(text, offset):
            offset = match.end()
            word = match[2]
            unit = units.unit_of(word) if word else None
            if word and unit is None:
                self.raise_error(f"expected {_UNIT}", token)
            parts.append((Decimal(match[1]), unit))
        if not parts or offset < len(text):
            self.raise_error("expected a length, such as '10 minutes'", token)
        if len(parts) == 1 and parts[0][1] is None:
            return [(parts[0][0], self._parse_unit())]
        if any(unit is None for _, unit in parts):
            self.raise_error(f"expected {_UNIT} after each number", token)
        return parts

    def _parse_unit(self) -> str | None:
        word = self._word()
        if not word or word in _BEHIND_A_LENGTH:
            return None
        unit = units.unit_of(word)
        if unit is None:
            self.raise_error(f"expected {_UNIT}")
        self._advance()
        return unit
