"""Uses a session as a server does whose provider has to be asked again: FILE ISSUER SECRET MOMENT."""

from __future__ import annotations

import asyncio
import sys

from remit import Remit
from remit.parts.login.provider import LoginProvider
from remit.parts.login.sessions import LoginSessions
from remit.parts.login.settings import LoginSettings
from remit_testing.clock import ManualClock
from tests.parts.login.conftest import GRANTS


async def main(file: str, issuer: str, secret: str, moment: str) -> None:
    clock = ManualClock(int(moment))
    async with Remit(file, clock=clock, work=False) as remit:
        provider = LoginProvider(LoginSettings(issuer=issuer, client_id="remit"), "", clock)
        await LoginSessions(remit.runtime.journal, provider, GRANTS).session(secret)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
