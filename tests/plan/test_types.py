"""Types of expressions: told where they can be, unknown where they cannot, and never an error."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from headgate.plan.logical.types import type_of


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("a", "decimal(10,2)", "decimal(10,2)"),
        ("a + 1", "int", "int"),
        ("a / 2", "bigint", "double"),
        ("a > 1", "int", "boolean"),
        ("upper(a)", "string", "string"),
        ("coalesce(a, a)", "void", "unknown"),
        ("some_function(a)", "int", "unknown"),
        ("b + 1", "int", "unknown"),
    ],
)
def test_the_type_of_an_expression(text: str, column: str, expected: str) -> None:
    assert type_of(parse_one(text, dialect="spark"), {"a": column}) == expected
