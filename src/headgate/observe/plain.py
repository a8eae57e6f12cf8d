"""Any value as plain JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON has it: times become text, fractions become floats, and what is not a number becomes null.

    >>> plain({"at": Fraction(1, 2), 5: (math.nan, Decimal("1.5"))})
    {'at': 0.5, '5': [None, 1.5]}
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float() | Fraction() | Decimal():
            return _finite(value)
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(name): plain(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(inner) for inner in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return plain(asdict(value))
        case _ if hasattr(value, "item"):  # A numpy number.
            return plain(value.item())
    return str(value)


def _finite(number: float | Fraction | Decimal) -> float | None:
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
