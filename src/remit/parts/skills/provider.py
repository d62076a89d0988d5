"""The tools of skills: skill.read, which gives a file of a skill, and skill.activate, which puts an agent under one.

A job reads what it took up, from its own record; what an agent took up itself is read as it is now, and refused if it
is another text by then. What is read is untrusted text like a page of the web: it instructs the model, and what it
names may be reached only as policy or a person allows. Neither tool runs anything of a skill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, ProviderError, StateError
from remit.jobs.skills import ACTIVATE, AGENT, READ
from remit.journal.kinds import JobCreated, SkillPin, decode
from remit.nearest import did_you_mean
from remit.parts.skills.loader import LoadedSkills
from remit.parts.skills.settings import SKILL_MD
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.journal.journal import Journal

_PROVIDER: Final = "skills"


class ReadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which file of which skill."""

    name: Annotated[str, msgspec.Meta(description="The skill.", min_length=1, max_length=64)]
    path: Annotated[str, msgspec.Meta(description="A file of it, such as references/api.md.", max_length=1_000)] = (
        SKILL_MD
    )
    digest: Annotated[str, msgspec.Meta(description="Refuse any other version than this.", max_length=80)] = ""


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """The text, and what else there is."""

    skill: str
    path: str
    text: str
    digest: str
    """The digest of the whole skill."""
    files: list[str]
    """Every file that can be read."""


class ActivateArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which skills."""

    names: Annotated[list[str], msgspec.Meta(description="The skills.", min_length=1, max_length=20)]


class ActivateResult(msgspec.Struct, frozen=True, kw_only=True):
    """The skills as they are taken up; what an agent does under them is limited by the job that calls."""

    skills: list[dict[str, Any]]


_tool: Final = partial(declare, provider=_PROVIDER, timeout_ms=30_000)


@cache
def _tools() -> tuple[ToolMeta, ...]:
    """Return both tools; most processes have no skills, and make no schemas for them."""
    return (
        _tool(READ, "Read a file of a skill; without a path its instructions.", ReadArgs, ReadResult),
        _tool(ACTIVATE, "Come under skills: their tools may be used from then on.", ActivateArgs, ActivateResult),
    )


class SkillProvider(Toolset):
    """Reads skills, and says what each allows."""

    def __init__(self, skills: Callable[[], LoadedSkills], journal: Journal) -> None:
        super().__init__(_PROVIDER, ())
        self._skills = skills
        self._journal = journal

    def watch(self, changed: Callable[[], None]) -> None:
        self._skills().watch(changed)

    async def list_tools(self) -> Sequence[ToolMeta]:
        """Return both tools, where anything speaks of skills."""
        self._require_open()
        return _tools() if self._skills().is_wanted else ()

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Read, or say what skills allow. Raises ProviderError."""
        self._tools = _tools()
        self._require(name)
        job = await self._pins(ctx)
        try:
            if name == READ:
                return ToolResult(msgspec.to_builtins(await self._read(arguments(ReadArgs, args), job)))
            names = arguments(ActivateArgs, args).names
            taken = [msgspec.to_builtins(await self._taken_up(skill, job)) for skill in dict.fromkeys(names)]
            return ToolResult(msgspec.to_builtins(ActivateResult(skills=taken)))
        except (NotFoundError, StateError) as error:
            raise ProviderError(f"{error.message}. {error.remedy}", cause=None, code=error.code) from error

    async def _pins(self, ctx: CallContext) -> dict[str, SkillPin]:
        """Return the skills that the calling job is under, as it took them up."""
        if ctx.job is None:
            return {}
        first = await self._journal.page(ctx.stream, 0, 1)
        created = decode(first[0].kind, first[0].data) if first else None
        return {pin.name: pin for pin in created.skills} if isinstance(created, JobCreated) else {}

    async def _read(self, request: ReadArgs, job: dict[str, SkillPin]) -> ReadResult:
        pin = job.get(request.name)
        if pin is not None:
            texts, digest = await self._kept(pin), pin.digest
        else:
            whole = await self._skills().usable(request.name, ())
            texts, digest = whole.contents.texts, whole.contents.digest
        if request.digest not in {"", digest}:
            raise ProviderError(f"The skill {request.name} has changed meanwhile.", cause=None, code=Code.SKILL_DRIFT)
        path = request.path.removeprefix("./") or SKILL_MD
        if path not in texts:
            hint = did_you_mean(path, texts) or f"It has: {', '.join(sorted(texts)[:20]) or 'no text'}."
            reason = f"The skill {request.name} has no text {path!r:.200}. {hint}"
            raise ProviderError(reason, cause=None, code=Code.SKILL_NOT_FOUND)
        return ReadResult(skill=request.name, path=path, text=texts[path], digest=digest, files=sorted(texts))

    async def _taken_up(self, name: str, job: dict[str, SkillPin]) -> SkillPin:
        pin = job.get(name)
        if pin is not None:
            skill = (await self._skills().book()).skills.get(name)
            if skill is not None and not await self._skills().is_enabled(skill):
                raise StateError(f"the skill {name} is switched off", code=Code.SKILL_DISABLED)
            return msgspec.structs.replace(pin, offered=False)
        # Its text is not kept with the job: it is read as it is when it is read, if that is the same.
        return msgspec.structs.replace((await self._skills().usable(name, (AGENT,))).pin, text_hash="")

    async def _kept(self, pin: SkillPin) -> dict[str, str]:
        if not pin.text_hash:
            return {}
        data = await self._journal.blob(pin.text_hash)
        if data is None:
            reason = f"The text of the skill {pin.name} is not kept any more."
            raise ProviderError(reason, cause=None, code=Code.SKILL_NOT_FOUND)
        return msgspec.json.decode(data, type=dict[str, str])


def open_skill_tools(opening: Opening) -> tuple[SkillProvider]:
    """The provider."""
    return (SkillProvider(opening.skills, opening.journal),)
