"""A tool as the catalog holds it: what its provider said, checked, compiled and hashed."""

from __future__ import annotations

import asyncio
import hashlib
import marshal
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import msgspec

from remit.canonical import digest
from remit.errors import NameInvalidError, NotCanonicalError, RemitError, SchemaError
from remit.tools.budget import ToolBudget, parse_budget
from remit.tools.meta import JsonSchema, ToolMeta
from remit.tools.names import check_name, key_of, provider_of, wire_name
from remit.tools.provider import (
    Digests,
    LimitedProvider,
    ToolProvider,
    TypedProvider,
    UsesSecrets,
    Vouches,
    supports,
)
from remit.tools.schema import CompiledSchema, DeferredSchema, compile_schema

_READ_BY_MODELS: Final = frozenset({"description", "title", "enum", "const", "default", "examples", "$comment"})
_NOTHING: Final[JsonSchema] = {"not": {}}
"""Admits no value: what takes the place of a schema that cannot be used."""
_KEPT: Final = 4_096
"""Tools whose digests are kept for the next time they are listed; the oldest go first."""


class _Identity(msgspec.Struct, frozen=True):
    """The part of a tool that follows from its words alone, and costs most of a listing."""

    input: CompiledSchema
    output: CompiledSchema | None
    digests: Digests


_identities: Final[dict[bytes, _Identity]] = {}


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that can be called, or the reason why not."""

    meta: ToolMeta
    provider: ToolProvider
    input: CompiledSchema
    output: CompiledSchema | None
    key: str
    """Its name in tickets and allowlists; may cover other tools as well. Empty where the name is not its to bear."""
    wire_name: str
    """Its name for models and MCP clients. Empty likewise."""
    contract_hash: str
    """As in `Digests`. Empty where name and schemas have no canonical form."""
    prompt_hash: str
    """Empty likewise."""
    quarantined: str | None = None
    """The reason why it must not be called, with what to do about it where its provider said so."""
    remedy: str = ""
    """The advice about that."""
    budget: ToolBudget | None = None
    """The budget of its calls."""
    slots: asyncio.Semaphore | None = None
    """Held by each call while it runs, if its provider runs only so many at once."""
    secrets: tuple[str, ...] = ()
    """The secrets of the settings that each call is given."""


def admit(meta: ToolMeta, provider: ToolProvider, *, closed: bool) -> Tool:
    """The tool behind what a provider listed; quarantined where it is withheld or unusable. Never raises."""
    if meta.withheld:
        return quarantine(meta, provider, meta.withheld, remedy=_last_sentence(meta.withheld))
    meta = _owned(meta, provider)
    try:
        _check_name(meta)
        typed = supports(provider, TypedProvider) and provider.typed(meta.name)
        vouches = provider if supports(provider, Vouches) else None
        digests = vouches.digests(meta.name) if vouches is not None else None
        identity = _identity_of(meta, closed=closed, typed=typed, sound=vouches is not None, digests=digests)
        return Tool(
            meta=meta,
            provider=provider,
            input=identity.input,
            output=identity.output,
            key=key_of(meta.name),
            wire_name=wire_name(meta.name),
            contract_hash=identity.digests.contract_hash,
            prompt_hash=identity.digests.prompt_hash,
            budget=parse_budget(meta.budget),
            slots=provider.slots(meta.name) if supports(provider, LimitedProvider) else None,
            secrets=provider.secrets(meta.name) if supports(provider, UsesSecrets) else (),
        )
    except RemitError as error:
        return quarantine(meta, provider, error.message)


def quarantine(meta: ToolMeta, provider: ToolProvider, reason: str, *, remedy: str = "") -> Tool:
    """The tool, withheld: it takes no arguments and gives no result.

    Without a `remedy`, it is its provider's to fix.
    """
    meta = _owned(meta, provider)
    try:
        _check_name(meta)
        key, wire = key_of(meta.name), wire_name(meta.name)
    except NameInvalidError:
        key = wire = ""
    nothing = compile_schema(_NOTHING, closed=False)
    try:
        contract, prompt = contract_hash(meta), prompt_hash(meta)
    except NotCanonicalError:
        contract = prompt = ""
    return Tool(
        meta=meta,
        provider=provider,
        input=nothing,
        output=nothing,
        key=key,
        wire_name=wire,
        contract_hash=contract,
        prompt_hash=prompt,
        quarantined=reason,
        remedy=remedy or f"Fix the tool at its provider ({meta.provider_id}), then list it again.",
    )


def _identity_of(
    meta: ToolMeta, *, closed: bool, typed: bool, sound: bool = False, digests: Digests | None = None
) -> _Identity:
    """Return the schemas and the digests of a tool, made once for the same words. Raises RemitError.

    Schemas that are known to be `sound` are compiled with their first use.
    """
    closed = closed and not meta.open
    words = meta.name, meta.description, meta.input_schema, meta.output_schema, closed, typed
    try:
        # Exact, which JSON is not: here a NaN is no null, and a set no list. The version writes equal values alike.
        exact = hashlib.sha256(marshal.dumps(words, 2)).digest()
    except ValueError:  # holds what JSON cannot: refused with its place
        exact = b""
    identity = _identities.get(exact)
    if identity is None:
        arguments = partial(_compiled, "input", meta.input_schema, closed=closed, typed=typed)
        result = partial(_compiled, "output", meta.output_schema) if meta.output_schema is not None else None
        identity = _Identity(
            DeferredSchema(arguments) if sound else arguments(),
            None if result is None else DeferredSchema(result) if sound else result(),
            digests or digests_of(meta),
        )
        if exact:
            _identities[exact] = identity
        if len(_identities) > _KEPT:
            del _identities[next(iter(_identities))]
    return identity


def digests_of(meta: ToolMeta) -> Digests:
    """Return the digests of a tool. Raises NotCanonicalError."""
    return Digests(contract_hash(meta), prompt_hash(meta))


def contract_hash(meta: ToolMeta) -> str:
    """Digest of what a call has to agree with: name and schemas. Raises NotCanonicalError."""
    return digest({"name": meta.name, "input_schema": meta.input_schema, "output_schema": meta.output_schema})


def prompt_hash(meta: ToolMeta) -> str:
    """Digest of every text a model reads of a tool. Raises NotCanonicalError."""
    schemas = {"input": meta.input_schema, "output": meta.output_schema}
    texts = [[*steps, text] for steps, text in _texts(schemas, ())]
    return digest({"name": meta.name, "description": meta.description, "texts": texts})


def _texts(value: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each text with its place, in the order of the names on the way, so that the order of writing does not count."""
    if isinstance(value, dict):
        for name in sorted(value, key=str):
            place = (*steps, str(name))
            if name in _READ_BY_MODELS:
                yield place, value[name]
            else:
                yield from _texts(value[name], place)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*steps, str(index)))


def _compiled(which: str, schema: JsonSchema | None, *, closed: bool = False, typed: bool = False) -> CompiledSchema:
    try:
        return compile_schema(schema, closed=closed, any_root=which == "output", typed=typed)
    except SchemaError as error:
        raise SchemaError(f"{which} schema: {error.message}", remedy=error.remedy) from error


def _last_sentence(text: str) -> str:
    return text.rpartition(". ")[2]


def _owned(meta: ToolMeta, provider: ToolProvider) -> ToolMeta:
    """Set the provider: the one that listed a tool is known, not claimed."""
    provider_id = provider.provider_id
    return meta if meta.provider_id == provider_id else msgspec.structs.replace(meta, provider_id=provider_id)


def _check_name(meta: ToolMeta) -> None:
    """A valid name; an MCP server's is its own, because another's may carry approvals it must not inherit."""
    check_name(meta.name)
    if meta.provider_id.startswith("mcp_") and provider_of(meta.name) != meta.provider_id:
        raise NameInvalidError(f"the provider {meta.provider_id} cannot offer {meta.name}")
