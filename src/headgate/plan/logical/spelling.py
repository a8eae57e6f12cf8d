"""Expressions as SQL for Spark: as they were written, and in a normal form that tells which ones are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.lang.generator import WrittenGenerator

if TYPE_CHECKING:
    from sqlglot import exp


class Spelt(str):
    """The SQL of an expression as the user wrote it. Two are equal if they differ in spelling only.

    What is kept on disk goes by the normal form. So a query may be spelt another way when it is started again.

    >>> from headgate.lang import parse_query
    >>> one, other = (Spelt(parse_query(f"SELECT {text} FROM S").selects[0]) for text in ("Log10( x )", "LOG10(x)"))
    >>> one == other, str(one), one.normal
    (True, 'Log10( x )', 'LOG10(x)')
    """

    _of: exp.Expr
    _normal: str | None

    def __new__(cls, expression: exp.Expr) -> Spelt:
        """The SQL of an expression."""
        own = super().__new__(cls, WrittenGenerator(dialect="spark").generate(expression))
        own._of, own._normal = expression, None
        return own

    @property
    def normal(self) -> str:
        """The normal form."""
        if self._normal is None:
            self._normal = self._of.sql(dialect="spark")
        return self._normal

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.normal == normal(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.normal)


def normal(text: str) -> str:
    """The normal form of SQL. SQL that no user wrote is its own normal form."""
    return text.normal if isinstance(text, Spelt) else text
