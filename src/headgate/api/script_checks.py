"""What of a script can be told to be wrong without Spark: the properties of its queries, the options of its streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from headgate.connect.files.options import FORMAT_OPTIONS, READABLE, without, wrong_reading
from headgate.errors import Error, ScriptError
from headgate.plan.logical.catalog import did_you_mean
from headgate.plan.logical.script import ScriptStream, ScriptTable
from headgate.plan.stream.stages import continuous
from headgate.shed.builtin import POLICIES, exact
from headgate.shed.fit import loss_of

if TYPE_CHECKING:
    from headgate.lang.nodes import OptionValue
    from headgate.plan.logical.script import Script, ScriptQuery
    from headgate.shed.policy import Policy

#: How many files a batch takes at most, which is an option of ours.
MOST_FILES = "max_files_per_batch"
_KINDS = {str: "a text in quotes", int: "a whole number", float: "a number"}


def check_written(script: Script) -> None:
    """Raises an error for a property or an option that is not there, or is not what it should be."""
    places: tuple[ScriptStream | ScriptTable, ...] = (*script.streams, *script.tables)
    for place in places:
        check_reading(place)
    for query in script.queries:
        policy_of(query)


def policy_of(query: ScriptQuery) -> Policy:
    """What WITH promises under overload; every property is checked."""
    what, shed = f"query {query.name}", query.properties.get("shed", "exact")
    if shed not in POLICIES:
        known = ", ".join(f"'{name}'" for name in POLICIES)
        raise ScriptError(f"{what}: unknown shed = {shed!r}: write one of {known}, or leave it out")
    promise = POLICIES[str(shed)]
    own = _properties(promise)
    given = checked(what, "property", query.properties, {"strategy": str, "shed": str} | own)
    try:
        policy: Policy = promise(**{name: value for name, value in given.items() if name in own})
    except Error as error:
        raise ScriptError(f"{what}: {str(error).removeprefix(f'hg.{shed}: ')}") from None
    if policy != exact():
        loss_of(continuous(query.name, query.plan, query.strategy), policy)
    return policy


def _properties(promise: Callable[..., Policy]) -> dict[str, type]:
    """The properties of a policy with their types, which are the arguments of the function that makes it.

    >>> _properties(POLICIES["sample"])
    {'rate': <class 'float'>, 'spread': <class 'float'>, 'weight': <class 'float'>}
    """
    found = {name: hint for name, hint in get_type_hints(promise).items() if name != "return"}
    return {name: next(t for t in get_args(hint) or (hint,) if t is not type(None)) for name, hint in found.items()}


def check_reading(given: ScriptStream | ScriptTable) -> None:
    """Raises an error about an option that is none of a format of Spark's own."""
    format_, streams = given.statement.format.lower(), isinstance(given, ScriptStream)
    if format_ not in FORMAT_OPTIONS:
        return
    own = [MOST_FILES] if streams and format_ in READABLE else []
    wrong = wrong_reading(format_, without(given.statement.options_dict, ["path", *own]), streams, own)
    if wrong is not None:
        raise ScriptError(f"{called(given)}: {wrong}")


def called(given: ScriptStream | ScriptTable) -> str:
    """What a stream or a table is called in a message."""
    return f"{'table' if given.source.table else 'stream'} {given.name}"


def checked(what: str, word: str, given: Mapping[str, OptionValue], kinds: Mapping[str, type]) -> dict[str, Any]:
    """What was given by name, or an error that names what is not known or not of its kind."""
    for name, value in given.items():
        if name not in kinds:
            raise ScriptError(f"{what}: unknown {word} {name}: {did_you_mean(name, kinds)}")
        kind = kinds[name]
        if not (type(value) is kind or (kind is float and type(value) is int)):
            raise ScriptError(f"{what}: {name} = {value!r} has to be {_KINDS[kind]}")
    return dict(given)
