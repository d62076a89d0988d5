"""Operations: what faces may do with a noun of the service, declared once, on the noun's method.

    @operation("tickets.release", "POST /v1/tickets/{ticket}/release", "work", "Return a leased ticket.")
    async def release(self, ticket: str, proof: LeaseProof, reason: str = "") -> Ticket:
        \"\"\"Return a leased ticket.\"\"\"

From the declaration and the signature follow the route with its query or body and its documentation (`remit.api`), the
method of a remote Remit (`remit.client`), and `remit api tickets.release`. The first paragraph of the docstring is
the description that clients read.

A parameter that stands in the braces of the path comes from there; the others are the fields of the query (GET) or of
the body. Markers in `Annotated` say what is otherwise. What only a process with the journal can do is not declared.
Types may be imported under TYPE_CHECKING, so that a command that only looks does not import them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from functools import cache
from importlib import import_module
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from remit.codes import Code

if TYPE_CHECKING:
    from remit.http.access import Access, Scope

    Check = Callable[[Any, Access, Mapping[str, Any]], Awaitable[None]]
    """Raises Problem unless a request may; it gets the noun, the token's access and the method's arguments."""
    Visible = Callable[[Access, Any], Any]
    """Returns what a token may see of an answer. Raises Problem if that is nothing."""

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M")

_MARK: Final = "__remit_operation__"


class ArgumentPlace(Enum):
    """The place in a request from which an argument is taken."""

    PATH = auto()
    """The braces of the path."""
    FIELD = auto()
    """A field of the query or the body, or several that make a struct."""
    BODY = auto()
    """The whole body."""
    TOKEN = auto()
    """The principal of the request's token. Only a process with the journal names another person."""
    KEY = auto()
    """The Idempotency-Key of the request: see FromKey."""
    PROOF = auto()
    """The way in which the request proves who makes it: `token`, or not at all."""
    HERE = auto()
    """Nowhere: see Here."""


class WireName(msgspec.Struct, frozen=True):
    """A parameter that requests know otherwise."""

    name: str = ""
    """Its name there; empty: the same."""
    type: Any = None
    """Its type there; None: the same."""
    looked_up: bool = False
    """True if it names a job as people do: by an ending that fits only one, or `last`."""


class Flat(msgspec.Struct, frozen=True):
    """A struct whose fields stand among those of the body."""

    fields: Mapping[str, tuple[str, Any]]
    """The name and type of each field in a request."""


class FromKey(msgspec.Struct, frozen=True):
    """An identifier that follows from the Idempotency-Key, so that a repetition meets what the first request made."""

    prefix: str
    repeats: bool = False
    """True if a remote Remit makes up a key, so that a request whose answer was lost can be sent again."""


class Here(msgspec.Struct, frozen=True):
    """A parameter that only a process with the journal can give."""

    reason: str
    """The reason why a remote Remit refuses it."""
    remedy: str = ""
    code: Code = Code.LOCAL_ONLY


Method = Literal["GET", "POST", "DELETE"]
By = Annotated[str, ArgumentPlace.TOKEN]
JobReference = Annotated[str, WireName(looked_up=True)]
Patience = Annotated[float | None, Here("a server waits for its tools as long as its settings say", "Omit the time.")]
JsonObject = Annotated[Any, WireName(type=dict[str, Any])]
Document = Annotated[Any, ArgumentPlace.BODY, WireName(type=dict[str, Any])]


class Body(msgspec.Struct, frozen=True):
    """The name and the description of a body's schema."""

    name: str
    about: str
    optional: bool = False
    """A request may come without it, and then has the defaults."""


class Declaration(msgspec.Struct, frozen=True):
    """Declares a noun's method as an operation; all that is said of it beside the method's signature."""

    name: str
    """Such as `tickets.release`."""
    address: str
    """The HTTP method and the path."""
    scope: Scope | None
    """The scope that a token needs; None: any token will do."""
    summary: str
    codes: tuple[Code, ...] = ()
    """Codes it can be refused with, beside those of every route."""
    status: int = 200
    body: Body | None = None
    """The name by which the schema of its fields is called, if it takes any in a body."""
    answer: type[msgspec.Struct] | None = None
    """A struct of one field, in which requests get what the method returns; None: they get that itself."""
    example: Any = msgspec.UNSET
    """A body that works."""
    check: Check | None = None
    visible: Visible | None = None
    invalid: Code = Code.INVALID_INPUT
    """The code with which a remote Remit refuses values that are not JSON."""
    held_s: float = 0.0
    """Seconds that the answer may take, beside the usual ones."""
    ends: bool = False
    """True if it hands in or ends work: taken also while too much waits to be written."""
    repeatable: bool | str = False
    """True if sending it again changes nothing; a name: if this argument is given."""

    def __call__(self, function: F) -> F:
        """Mark the method."""
        setattr(function, _MARK, self)
        return function

    @property
    def method(self) -> Method:
        """The HTTP method."""
        return "GET" if self.address.startswith("GET ") else "DELETE" if self.address.startswith("DELETE ") else "POST"

    @property
    def path(self) -> str:
        """Such as `/v1/tickets/{ticket}`."""
        return self.address.partition(" ")[2]


operation = Declaration


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of an operation's method."""

    name: str
    source: ArgumentPlace
    wire: WireName = WireName()
    """The terms of a parameter in the path or among the fields."""
    key: FromKey | None = None
    here: Here | None = None
    flat: Flat | None = None
    struct: type[msgspec.Struct] | None = None
    """The struct that `flat` is the form of."""
    is_optional: bool = False
    """True if the struct may be left out."""
    default: Any = inspect.Parameter.empty

    @property
    def sent(self) -> str:
        """The name in a request."""
        return self.wire.name or self.name


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation, complete."""

    declaration: Declaration
    function: Callable[..., Any]
    description: str
    parameters: tuple[Parameter, ...]
    shape: Any
    """The type of the query or the body; None: it takes neither."""
    returns: Any
    """The type of the JSON answer; None: 204 without a body."""

    @property
    def key(self) -> Parameter | None:
        """The parameter that follows from the Idempotency-Key."""
        return next((parameter for parameter in self.parameters if parameter.source is ArgumentPlace.KEY), None)


@cache
def operations(noun: type) -> tuple[Operation, ...]:
    """Return the operations of a noun, in the order of its methods. Raise TypeError for one that does not fit."""
    declared = ((member, getattr(member, _MARK, None)) for member in vars(noun).values())
    return tuple(_operation(function, declaration) for function, declaration in declared if declaration is not None)


def _operation(function: Callable[..., Any], declaration: Declaration) -> Operation:
    hints = _hints(function)
    braces = {part[1:-1] for part in declaration.path.split("/") if part.startswith("{")}
    signature = list(inspect.signature(function).parameters.values())[1:]
    parameters = tuple(_parameter(entry, hints[entry.name], braces) for entry in signature)
    if braces != {entry.sent for entry in parameters if entry.source is ArgumentPlace.PATH}:
        raise TypeError(f"{declaration.name}: its method has not the parameters of {declaration.path}")
    return Operation(
        declaration=declaration,
        function=function,
        description=inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0],
        parameters=parameters,
        shape=_shape(declaration, parameters, hints),
        returns=_returns(declaration, hints["return"]),
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:
        return get_type_hints(function, localns=_names_for_types(function.__module__), include_extras=True)


@cache
def _names_for_types(module: str) -> dict[str, Any]:
    """Import what a noun's module imports under TYPE_CHECKING: it need not be there before routes are derived."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: getattr(import_module(node.module or ""), alias.name)
        for node in imports
        for alias in node.names
    }


def _parameter(parameter: inspect.Parameter, hint: Any, braces: set[str]) -> Parameter:
    kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    wire, flat = _mark(marks, WireName) or WireName(), _mark(marks, Flat)
    key, here = _mark(marks, FromKey), _mark(marks, Here)
    source = _mark(marks, ArgumentPlace) or ArgumentPlace.FIELD
    if key is not None or here is not None:
        source = ArgumentPlace.KEY if here is None else ArgumentPlace.HERE
    elif (wire.name or parameter.name) in braces:
        source = ArgumentPlace.PATH
    struct = next((each for each in (kind, *get_args(kind)) if is_struct(each)), None) if flat is not None else None
    if flat is not None and struct is None:
        raise TypeError(f"{parameter.name} is not a struct")
    return Parameter(
        name=parameter.name,
        source=source,
        wire=wire,
        key=key,
        here=here,
        flat=flat,
        struct=struct,
        is_optional=NoneType in get_args(kind),
        default=parameter.default,
    )


def _mark(marks: list[Any], kind: type[M]) -> M | None:
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def is_struct(kind: Any) -> bool:
    """Say whether a type is a struct."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _shape(declaration: Declaration, parameters: tuple[Parameter, ...], hints: dict[str, Any]) -> Any:
    whole = next((parameter for parameter in parameters if parameter.source is ArgumentPlace.BODY), None)
    if whole is not None:
        return whole.wire.type or hints[whole.name]
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.flat is not None:
            fields += [
                (name, str, "") if parameter.is_optional else (name, kind)
                for name, kind in parameter.flat.fields.values()
            ]
        elif parameter.source is ArgumentPlace.FIELD:
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
            fields.append((parameter.sent, parameter.wire.type or hints[parameter.name], *default))
    if not fields:
        return None
    if declaration.method == "GET":
        return msgspec.defstruct("Query", fields, frozen=True, kw_only=True)
    if declaration.body is None:
        raise TypeError(f"{declaration.name}: its body has no name")
    return _body(declaration.body, tuple(fields))


@cache
def _body(body: Body, fields: tuple[Any, ...]) -> type[msgspec.Struct]:
    """Return the type of a body; operations that take the same one have the same type."""
    about = {"__doc__": body.about}
    return msgspec.defstruct(body.name, fields, namespace=about, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _returns(declaration: Declaration, hint: Any) -> Any:
    if declaration.answer is not None:
        if len(declaration.answer.__struct_fields__) != 1:
            raise TypeError(f"{declaration.name}: its answer has not one field")
        return declaration.answer
    return None if hint is NoneType else hint
