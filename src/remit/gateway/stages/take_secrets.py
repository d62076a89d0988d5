"""TakeSecrets: the secrets that a tool declares are read just before its call is announced, or it is refused."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome

if TYPE_CHECKING:
    from remit.gateway.services import Services


class TakeSecrets:
    """Reads them: nothing has happened yet where one is missing."""

    def __init__(self, services: Services) -> None:
        self._secrets = services.secrets

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Set `secrets`. Refuse with SECRET_MISSING or SECRET_DENIED.

        Where reading took so long that policy decides again, the call keeps what was read.
        """
        call.stage = "take_secrets"
        return self._take(call, proceed) if call.tool.secrets and call.secrets is None else proceed(call)

    async def _take(self, call: Call, proceed: Proceed) -> Outcome:
        secrets = await self._secrets.take(call.tool.meta.name, call.tool.secrets)
        if isinstance(secrets, Outcome):
            return secrets
        call.secrets = secrets
        return await proceed(call)
