"""The words of an error: what was expected, what was found, and where."""

from __future__ import annotations

import re

_LONGEST = 30

#: What sqlglot says, and how we say it. The first pattern that fits is used.
_WORDINGS = (
    (re.compile(r"Expected table name"), "expected a stream"),
    (re.compile(r".*CTE"), "expected name AS (SELECT ...) and a SELECT after WITH"),
    (re.compile(r"Invalid expression"), "expected the end of the statement"),
    (re.compile(r"Required (?:keyword|argument)"), "expected an expression"),
    (re.compile(r"(?:Expecting|Expected) (.+)", re.DOTALL), r"expected \1"),
    (re.compile(r"(expected .+)", re.DOTALL), r"\1"),
)


def worded(message: str, found: str) -> str:
    """The message to show: `expected X, found Y` wherever the parser's own message says what was expected.

    >>> worded("Expecting )", "FROM")
    'expected ), found FROM'
    >>> worded("Cannot specify both ALL and DISTINCT after SELECT", "x")
    'Cannot specify both ALL and DISTINCT after SELECT'
    """
    for pattern, ours in _WORDINGS:
        if match := pattern.match(message):
            return f"{match.expand(ours)}, found {found}"
    return message


def quoted(text: str) -> str:
    """A piece of the user's text for a message: on one line, and not too long.

    >>> quoted("month")
    "'month'"
    >>> quoted("'1 year'")
    "'1 year'"
    """
    line = " ".join(text.split())
    if len(line) > _LONGEST:
        line = f"{line[:_LONGEST]}..."
    return line if line[:1] in ("'", '"', "`") else f"'{line}'"


def position(sql: str, offset: int) -> tuple[int, int]:
    r"""Line and column, both from 1, of an offset into the text.

    >>> position("SELECT a\nFROM S", 9)
    (2, 1)
    """
    return sql.count("\n", 0, offset) + 1, offset - sql.rfind("\n", 0, offset)
