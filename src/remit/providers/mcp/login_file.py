"""A login's file as the SDK keeps tokens in it."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.auth_utils import calculate_token_expiry
from pydantic import BaseModel, ValidationError

from remit.settings.logins import EXPIRY, LoginFile

TOKENS: Final = "tokens"
_CLIENT: Final = "client"
_M = TypeVar("_M", bound=BaseModel)


class TokenFile:
    """Tokens and registration of one server, as the SDK keeps them (`mcp.client.auth.TokenStorage`)."""

    def __init__(self, file: LoginFile) -> None:
        self._file = file

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens of the last login."""
        return read(OAuthToken, self._file.read().get(TOKENS))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep these from now on, and until when they count."""
        plain = tokens.model_dump(mode="json", exclude_none=True)
        self._file.keep(**{TOKENS: plain, EXPIRY: calculate_token_expiry(tokens.expires_in)})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what the authorization server knows us as."""
        return read(OAuthClientInformationFull, self._file.read().get(_CLIENT))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it from now on."""
        self._file.keep(**{_CLIENT: client_info.model_dump(mode="json", exclude_none=True)})


def read(model: type[_M], content: Any) -> _M | None:
    """Return the value; None for no content, or a damaged one."""
    try:
        return model.model_validate(content) if content else None
    except ValidationError:
        return None
