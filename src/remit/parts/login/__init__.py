"""People log in at a provider of identities (OpenID Connect), in the console and at the command line.

part.py      what a browser and `remit login` meet: the way to the provider and back, and the end that it tells
provider.py  one provider: what it is asked, and what it says of a person, each word of it verified
sessions.py  sessions in the journal, so that they go on in every process; a person's groups, asked again in time
commands.py  `remit login`
"""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, kinds_of

CAPABILITIES: Final = (
    Capability(
        name="login",
        about="Let people log in at a provider of identities (OpenID Connect).",
        settings="remit.parts.login.settings:LoginSettings",
        kinds=kinds_of("remit.parts.login.kinds", "login", "begun renewal refreshed ended"),
        people="remit.parts.login.wiring:open_people",
        serves="remit.parts.login.wiring:open_mounts",
        commands=(
            Command(
                word="login",
                about="Log in at a server as a person, or out again.",
                command="remit.parts.login.commands:command",
            ),
        ),
        modules=("jwt", "cryptography"),
        extra="jwt",
    ),
)
