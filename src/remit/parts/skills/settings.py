"""The section `[skills]`, and the tables `[skills.NAME]` in it: the operator's word on each skill."""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from remit.settings.file import Base
from remit.settings.section import About, Section, Texts, converted

SKILL_MD: Final = "SKILL.md"
PROJECT: Final = ("skills", ".agents/skills")
HOME: Final = "~/.agents/skills"


def _absolute(folders: tuple[str, ...], base: Base) -> tuple[str, ...]:
    return tuple(str(base.path(folder)) for folder in folders if base.home is not None or not folder.startswith("~"))


class SandboxLayer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a skill leaves of the sandbox, by the names of `[sandbox]`; what that allows is the most."""

    limits: dict[str, int] = {}
    """Its limits, by their names."""
    network: tuple[str, ...] | None = None
    """Hosts that it may reach; None: as `[sandbox]` says."""
    commands: tuple[str, ...] | None = None
    """Commands that it may run; None: as `[sandbox]` says."""
    min_isolation: str = ""
    """The weakest isolation that it may run in."""


class SkillSettings(Section, frozen=True):
    """Where skills are looked for, and what is allowed of them."""

    tables: ClassVar[str] = "named"

    folders: Annotated[
        Texts,
        About(
            "Folders of skills; of two skills of one name, that of the earlier folder counts. Those below the project "
            "folder count once its remit.toml says something in `[skills]`, and is trusted.",
            resolve=_absolute,
        ),
    ] = (*PROJECT, HOME)
    required: Annotated[
        bool, About("Whether only jobs are created whose run type an enabled skill names, also if no skill names it.")
    ] = False
    switched_off: Annotated[
        Literal["finish", "park"],
        About("Whether a job goes on if a skill of it is switched off meanwhile, or waits until it is on again."),
    ] = "finish"
    named: Annotated[
        dict[str, dict[str, Any]],
        About(
            "Written as `[skills.NAME]`: `enabled`, `run_types`, `tools`, `policy`, `sandbox`, `activate`, `trusted` "
            "of one skill, see [skills](skills.md#the-operators-word).",
            entry="remit.parts.skills.settings:Word",
        ),
    ] = {}  # noqa: RUF012 - msgspec copies it


class Word(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's word on one skill."""

    enabled: bool = True
    """Whether it may be used."""
    run_types: tuple[str, ...] | None = None
    """The run types that it allows, in place of its author's; None: as the author says."""
    tools: tuple[str, ...] = ()
    """Further tools that an agent under it may call."""
    policy: str | tuple[dict[str, Any], ...] = ""
    """`ask`, `read-only`, or rules that deny or ask; beside what the author says."""
    sandbox: SandboxLayer = SandboxLayer()
    """Limits of the sandbox under it; beside those that its author sets."""
    activate: bool = False
    """Whether the models of agents under skills may activate it."""
    trusted: str = ""
    """The digest of the folder whose text counts as the operator's own."""


def words_of(settings: SkillSettings) -> dict[str, Word]:
    """Return the operator's word on each skill that there is one on. Raises SettingsError."""
    return {name: converted(table, Word, f"skills.{name}") for name, table in settings.named.items()}
