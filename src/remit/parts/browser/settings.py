"""The section `[browser]`."""

from typing import Annotated

import msgspec

from remit.settings.file import Base
from remit.settings.section import About, Bytes, Count, Seconds, Section, Texts


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class BrowserSettings(Section, frozen=True):
    """What the browser tools may do."""

    program: Annotated[
        str,
        About(
            "The browser's own program, not a script that starts it. Empty: the system's chromium-headless-shell, "
            "else its chromium.",
            resolve=_path,
        ),
    ] = ""
    hosts: Annotated[
        Texts,
        About(
            "Hosts that pages may reach, as `host`, `*.domain` or `*` for any public one; other ports as `host:port`."
        ),
    ] = ("*",)
    private: Annotated[
        Texts, About("Hosts with their ports, such as `127.0.0.1:8080`, that may have private addresses.")
    ] = ()
    secrets: Annotated[
        Texts,
        About(
            "What `browser.type` may type without seeing it, as `NAME=VARIABLE@HOST`: the variable's value, on pages "
            "of that host alone (`host`, or `host:port` if the port is not 443)."
        ),
    ] = ()
    inner_sandbox: Annotated[
        bool,
        About("Whether each page also runs in Chromium's own sandbox, within Remit's. False: where it cannot start."),
    ] = True
    browsers: Annotated[Count, About("Browsers at the same time, one for each job or session.")] = 4
    pages: Annotated[Count, About("Open pages of one browser; those that a page opens beyond it are closed.")] = 10
    idle_seconds: Annotated[Seconds, About("Seconds after which a browser that is not used is closed.")] = 300
    memory_bytes: Annotated[
        Annotated[int, msgspec.Meta(ge=256 * 1024 * 1024, le=2**40)],
        About("Memory of one browser, all pages together."),
    ] = 1_073_741_824
    download_bytes: Annotated[Bytes, About("The largest file that is downloaded.")] = 20_000_000
    snapshot_chars: Annotated[
        Count, About("Characters of a page that `browser.snapshot` and `browser.extract` return; the rest is cut.")
    ] = 50_000
