"""The sections `[[notify]]` and `[[people]]`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

from remit.regex import regex
from remit.settings.pictures import HIDDEN, address, command, names, plain, tables
from remit.settings.section import About, Section, Tables

_VARIABLE: Final = regex(r"(?<!\$)\$\{([A-Za-z_]\w*)")
_FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(
        (
            "name",
            "on",
            "recipes",
            "labels",
            "tools",
            "levels",
            "ask",
            "after",
            "quiet",
            "digest",
            "details",
            "format",
            "email",
            "from",
            "slack",
            "telegram",
            "push",
        ),
        plain,
    ),
    **dict.fromkeys(("env", "headers"), names),
    "command": command,
    "api": lambda value: address(value) if isinstance(value, str) else HIDDEN,
    "url": lambda value: address(value) if isinstance(value, str) else HIDDEN,
    "smtp": lambda value: value.rpartition("@")[2] if isinstance(value, str) else HIDDEN,
}


def _shown(value: Any) -> Any:
    """Targets as people may see them: a URL may itself be a secret."""
    return tables(value, _FIELDS)


def _claims(value: Tables) -> Iterator[str]:
    import shlex  # noqa: PLC0415 - only a folder that is not trusted yet needs it

    for table in value:
        name, program, email = table.get("name"), table.get("command"), table.get("email")
        if isinstance(program, list | tuple):
            yield f"run, to tell {name} of questions and jobs: {shlex.join(map(str, program))}"
        else:
            where = ", ".join(map(str, email)) if isinstance(email, list | tuple) else _place(table)
            yield f"tell {name} of questions and jobs at {where}"
        secrets = sorted(set(_VARIABLE.findall(str(table))))
        if secrets:
            yield f"give {name} {', '.join(f'${secret}' for secret in secrets)} of your environment"


def _place(table: Mapping[str, Any]) -> str:
    if "slack" in table:
        return f"Slack's channel {table['slack']}"
    if "push" in table:
        return "their own devices"
    return f"Telegram's chat {table['telegram']}" if "telegram" in table else address(str(table.get("url")))


class NotifySettings(Section, frozen=True):
    """Targets: who is told when a question waits or a job cannot go on: each `[[notify]]` table is one target."""

    array: ClassVar[str] = "targets"

    targets: Annotated[
        Tables,
        About(
            "The targets, one `[[notify]]` table each; [notifications.md](notifications.md) explains their keys. "
            "A JSON array in the environment.",
            env=("REMIT_NOTIFY",),
            entry="remit.parts.notify.target:NotifyTarget",
            picture=_shown,
            claims=_claims,
        ),
    ] = ()


class PeopleSettings(Section, frozen=True):
    """People, their accounts on channels, and who stands in for them."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "People, one `[[people]]` table each: `principal`, `slack`, `telegram`, `email`, `absent`, `delegate` "
            "([notifications](notifications.md#people)). A JSON array in the environment.",
            env=("REMIT_PEOPLE",),
            entry="remit.parts.notify.people:PersonEntry",
        ),
    ] = ()
