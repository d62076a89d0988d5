"""A noun of a server: each declared operation of the noun (`remit.operation`) is one request.

A twin is a subclass of the noun in which every public method is replaced: what is declared asks the server, and what is
not is refused with LOCAL_ONLY. A subclass of its own says what a request cannot say by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, TypeVar, cast

import msgspec

from remit.client.connection import ServerConnection, only_oneself
from remit.codes import Code
from remit.errors import UsageError
from remit.ids import new_id
from remit.operation import ArgumentPlace, Operation, Parameter, operations
from remit.record.values import encoded

N = TypeVar("N")
_REMEDY: Final = "Run it on the machine with the journal."


class Twin:
    """The base of every twin; it comes before the noun among the bases."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def __init_subclass__(cls) -> None:
        noun = cls.__bases__[-1]
        declared = {operation.function.__name__: operation for operation in operations(noun)}
        for name, member in vars(noun).items():
            if name in vars(cls) or name.startswith("_"):
                continue
            if name in declared:
                setattr(cls, name, _request(declared[name]))
            elif callable(member):
                setattr(cls, name, _refusal(noun, name))
            else:
                setattr(cls, name, property(_refusal(noun, name)))


def twin(noun: type[N], connection: ServerConnection) -> N:
    """Return the twin of a noun all of whose remote methods are declared."""
    return cast("N", _twin_of(cast("type", noun))(connection))


@cache
def _twin_of(noun: type) -> type[Twin]:
    return cast("type[Twin]", type(f"Remote{noun.__name__}", (Twin, noun), {"__doc__": noun.__doc__}))


def _request(operation: Operation) -> Callable[..., Any]:
    """Return the method that makes an operation's request."""
    signature, declared = cache(partial(inspect.signature, operation.function)), operation.declaration
    parameters = {parameter.name: parameter for parameter in operation.parameters}
    path = [parameter.name for parameter in operation.parameters if parameter.source is ArgumentPlace.PATH]

    async def ask(*args: Any, **more: Any) -> Any:
        bound = signature().bind(*args, **more)
        bound.apply_defaults()
        twin, *_ = bound.args
        values = {name: value for name, value in bound.arguments.items() if name in parameters}
        key = _key(operation, values)
        _check_people(operation, values)
        sent = _sent(operation, values)
        answer = await twin._connection.ask(  # noqa: SLF001 - this is a method of it
            declared.name,
            *(values[name] for name in path),
            key=key,
            held_s=declared.held_s,
            repeatable=bool(values.get(declared.repeatable))
            if isinstance(declared.repeatable, str)
            else declared.repeatable,
            **sent,
        )
        return answer if declared.answer is None else getattr(answer, declared.answer.__struct_fields__[0])

    ask.__name__ = operation.function.__name__
    ask.__doc__ = operation.function.__doc__ or declared.summary
    return ask


def _check_people(operation: Operation, values: dict[str, Any]) -> None:
    """Raise UsageError (LOCAL_ONLY) for an argument that only a process with the journal can give."""
    for parameter in operation.parameters:
        if parameter.source is ArgumentPlace.TOKEN:
            only_oneself(values[parameter.name])
        elif parameter.here is not None and values[parameter.name] != parameter.default:
            raise UsageError(parameter.here.reason, code=parameter.here.code, remedy=parameter.here.remedy or _REMEDY)


def _key(operation: Operation, values: dict[str, Any]) -> str:
    parameter = operation.key
    if parameter is None or parameter.key is None:
        return ""
    return str(values[parameter.name] or (new_id(parameter.key.prefix) if parameter.key.repeats else ""))


def _sent(operation: Operation, values: dict[str, Any]) -> dict[str, Any]:
    """Return the query or the body of a request. Raise UsageError for values that are not JSON."""
    if operation.shape is None:
        return {}
    whole = next((parameter for parameter in operation.parameters if parameter.source is ArgumentPlace.BODY), None)
    if whole is not None:
        _check_object(operation, whole, values[whole.name])
        return {"body": msgspec.Raw(encoded(values[whole.name], operation.declaration.invalid))}
    fields: dict[str, Any] = {}
    for parameter in operation.parameters:
        if parameter.source is ArgumentPlace.FIELD:
            _check_object(operation, parameter, values[parameter.name])
            fields |= _fields(parameter, values[parameter.name])
    shape = operation.shape(**fields)
    if operation.declaration.method == "GET":
        return {"query": shape}
    return {"body": msgspec.Raw(encoded(shape, operation.declaration.invalid))}


def _check_object(operation: Operation, parameter: Parameter, value: Any) -> None:
    kind = getattr(parameter.wire.type, "__origin__", None)
    if kind is dict and not isinstance(value, dict):
        raise UsageError(f"{parameter.name} is a JSON object", code=operation.declaration.invalid)


def _fields(parameter: Parameter, value: Any) -> dict[str, Any]:
    if parameter.flat is None:
        return {parameter.sent: value}
    if value is None:
        return {}
    return {sent: getattr(value, name) for name, (sent, _) in parameter.flat.fields.items()}


def _refusal(noun: type, name: str) -> Callable[..., Any]:
    def refuse(*_args: Any, **_more: Any) -> Any:
        reason = f"a server does not answer {noun.__name__}.{name}"
        raise UsageError(reason, code=Code.LOCAL_ONLY, remedy=_REMEDY)

    return refuse
