"""The sqlglot dialect of the language: Spark's SQL with window clauses, unions of streams and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot.dialects.spark import Spark

from headgate.lang.generator import HeadgateGenerator
from headgate.lang.statements import HeadgateParser

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import TokenType


class Headgate(Spark):
    """The dialect, known to sqlglot as `headgate`.

    >>> import sqlglot
    >>> sqlglot.parse_one("SELECT max(p) FROM S [range 5 min]", dialect=Headgate).sql(dialect=Headgate)
    'SELECT max(p) FROM S [RANGE 5 minutes]'
    """

    # A function that sqlglot does not know keeps its name as written, so that printing loses nothing.
    NORMALIZE_FUNCTIONS = False

    class Tokenizer(Spark.Tokenizer):
        # `window` is a function and a column here, as in Spark's streaming queries, not a clause; the other two are
        # operators to others, and to Spark functions.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word not in ("WINDOW", "ISNULL", "NOTNULL")
        }
        # Spark 4 reads a doubled quote as a quote; sqlglot's Spark dialect would join two texts.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'"]

    Parser = HeadgateParser

    Generator = HeadgateGenerator
