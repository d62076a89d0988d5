"""The conversation of an agent's last run: the next run of the same agent continues it, in a home of its own.

Agents keep their conversations in their home, some by the folder that they worked in. The file of one conversation is
copied into the home of the new run, and nothing else: what the agent may have left there to be started stays behind.
"""

from __future__ import annotations

import glob
import re
import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from remit.work.executors.port import Site
    from remit.work.executors.row import Cli
    from remit.work.workflow import Mode

_ID: Final = re.compile(r"[A-Za-z0-9][\w-]{0,99}")
_MAX_FILE: Final = 64_000_000


def carry(cli: Cli, site: Site, mode: Mode, version: str) -> bool:
    """Copy the last conversation of a site's agent into its home; return whether it can continue there.

    It cannot in another mode or version, nor if its file is not there, is a link, or is long.
    """
    last = site.last
    if last is None or not (cli.conversation and version and (last.mode, last.version) == (mode, version)):
        return False
    if not _ID.fullmatch(last.session):
        return False
    before, after = cli.place(last.folder), cli.place(site.folder)
    pattern = cli.conversation.format(session=last.session, place=glob.escape(before))
    path = next(iter(last.home.glob(pattern)), None)
    if path is None or path.resolve() != last.home.resolve() / path.relative_to(last.home):
        return False
    if not path.is_file() or path.stat().st_size > _MAX_FILE:
        return False
    place = site.home.joinpath(*(after if part == before else part for part in path.relative_to(last.home).parts))
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
    if site.enclosures is not None:
        site.enclosures.own(site.home)
    return True
