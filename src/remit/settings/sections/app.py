"""The section `[app]`."""

import os
import pwd
from typing import Annotated

from remit.settings.base import Base
from remit.settings.section import About, Section, Texts


def _modules(modules: tuple[str, ...], base: Base) -> tuple[str, ...]:
    return tuple(str(base.path(name)) if name.endswith(".py") or os.sep in name else name for name in modules)


def account() -> str:
    """The name of the OS user: of the account, not of the environment, which any program can set."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers run under accounts without a name
        return f"uid{os.getuid()}"


def _principal(name: str, _base: Base) -> str:
    return name or account()


class AppSettings(Section, frozen=True):
    """Your code, and who you are."""

    modules: Annotated[
        Texts,
        About(
            "Python files or dotted modules that define tools, recipes and providers. "
            "Separated as in PATH in the environment.",
            env=("REMIT_MODULES",),
            separator=os.pathsep,
            resolve=_modules,
        ),
    ] = ()
    capabilities: Annotated[
        Texts,
        About(
            "Installed parts that others made, by name (docs/extending.md). "
            "Each may have settings in a table of its name.",
            env=("REMIT_CAPABILITIES",),
        ),
    ] = ()
    principal: Annotated[
        str,
        About(
            "The name recorded with every call. Empty: the name of the OS user.",
            env=("REMIT_PRINCIPAL",),
            resolve=_principal,
        ),
    ] = ""
