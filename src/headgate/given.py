"""Checks of what users pass to the public calls. A wrong value is one error that says what to write."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterable
from functools import wraps
from numbers import Integral, Real
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from headgate.errors import Error, FlowError

P = ParamSpec("P")
T = TypeVar("T")

#: A message cuts a value whose text is longer.
_LONGEST = 60


def checked(
    name: str, error: type[Error] = FlowError, like: Callable[..., Any] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Makes a function refuse arguments that it does not have, and calls that lack one that it needs.

    A function that passes its arguments on to another one has the arguments of that one: name it as `like`.

    >>> @checked("hg.double")
    ... def double(number): return 2 * number
    >>> double(2)
    4
    >>> double(nubmer=2)
    Traceback (most recent call last):
    headgate.errors.FlowError: hg.double has no argument nubmer: did you mean number?
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(like or function)
        misfit = _misfit

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as wrong:
                raise error(f"{name} {misfit(signature, args, kwargs, str(wrong))}") from None
            return function(*args, **kwargs)

        # Doctest finds the module of a function by its globals.
        return wraps(function)(FunctionType(call.__code__, function.__globals__, closure=call.__closure__))

    return decorated


def _misfit(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], wrong: str) -> str:
    known = {n: p for n, p in signature.parameters.items() if n != "self"}
    if unknown := [n for n in kwargs if n not in known]:
        near = difflib.get_close_matches(unknown[0].lower(), known, n=1, cutoff=0.6)
        there = f"there are {', '.join(known)}" if known else "it takes none"
        return f"has no argument {unknown[0]}: {f'did you mean {near[0]}?' if near else there}"
    positional = [n for n, p in known.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    passed = positional[: len(args) - ("self" in signature.parameters)]
    needed = [n for n, p in known.items() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if missing := [n for n in needed if n not in passed and n not in kwargs]:
        return f"needs {', '.join(missing)}: give {'it' if len(missing) == 1 else 'them'} too"
    named = [f"**{n}" if p.kind is p.VAR_KEYWORD else n for n, p in known.items()]
    return f"cannot be called so ({wrong}): its arguments are {', '.join(named) or 'none'}"


def refused(what: str, value: object, instead: str, error: type[Error] = FlowError) -> Error:
    """The error for a value: where it was given, and what to give instead.

    >>> raise refused("flow.start: trigger", 5, "a time, such as '5 seconds'")
    Traceback (most recent call last):
    headgate.errors.FlowError: flow.start: trigger=5: give a time, such as '5 seconds'
    """
    return error(f"{what}={shown(value)}: give {instead}")


def shown(value: object) -> str:
    """A value for a message: on one line, and not too long. Functions and classes have their names.

    >>> shown("talkers"), shown(int)
    ("'talkers'", 'int')
    """
    text = value.__name__ if inspect.isroutine(value) or inspect.isclass(value) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def named(name: object) -> str:
    """For a message: what should have been a name."""
    return name if isinstance(name, str) and name.isprintable() and name else shown(name)


def text(what: str, value: object, instead: str, error: type[Error] = FlowError) -> str:
    """Checks a text that may not be empty."""
    if not isinstance(value, str) or not value.strip():
        raise refused(what, value, instead, error)
    return value


def place(what: str, value: object, error: type[Error] = FlowError) -> str:
    """Checks a path: a text or a pathlib.Path."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    return text(what, path, "the path of a folder, such as 'out/talkers'", error)


def flag(what: str, value: object, error: type[Error] = FlowError) -> bool:
    """Checks for True or False. What only counts as one of them is refused."""
    if not isinstance(value, bool):
        raise refused(what, value, "True or False", error)
    return value


def whole(what: str, value: object, instead: str, least: int | None = None, error: type[Error] = FlowError) -> int:
    """Checks a whole number that is at least so large. True and False are no numbers.

    >>> whole("gap", 3, "one or more", least=1)
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or (least is not None and value < least):
        raise refused(what, value, instead, error)
    return int(value)


def number(
    what: str, value: object, instead: str, holds: Callable[[float], bool], error: type[Error] = FlowError
) -> float:
    """Checks a number for which something holds. True, False and NaN are no numbers.

    >>> number("rate", 1.5, "a share up to 1", lambda rate: 0 < rate <= 1)
    Traceback (most recent call last):
    headgate.errors.FlowError: rate=1.5: give a share up to 1
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refused(what, value, instead, error)
    try:
        found = float(value)
    except OverflowError:
        raise refused(what, value, instead, error) from None
    if not holds(found):
        raise refused(what, value, instead, error)
    return found


def one_of(what: str, value: object, words: Iterable[str], error: type[Error] = FlowError) -> str:
    """Checks for one of some words. The error names the nearest of them, or all.

    >>> one_of("output", "ansers", ["answers", "late"])
    Traceback (most recent call last):
    headgate.errors.FlowError: output='ansers': did you mean 'answers'?
    """
    known = list(words)
    if isinstance(value, str) and value in known:
        return value
    near = difflib.get_close_matches(value.lower(), known, n=1, cutoff=0.7) if isinstance(value, str) else []
    if near:
        raise error(f"{what}={shown(value)}: did you mean {near[0]!r}?")
    raise refused(what, value, " or ".join(filter(None, [", ".join(map(repr, known[:-1])), repr(known[-1])])), error)


def settled(thing: object, **values: object) -> None:
    """Replaces fields of a frozen dataclass by their checked values."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)
