"""What Remit, or its client, does not give a server is never taken for the server's own word."""

from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.jsonrpc.protocol import INVALID_REQUEST, UnansweredError
from remit.providers.mcp.answers import ServerAnswers
from remit.providers.mcp.session import translated
from remit.tools.peer import ELICIT, SAMPLE, PeerError


class Silent:
    """A client that gives no answer."""

    def can(self, method: str) -> bool:
        """Return that it could."""
        return method == ELICIT

    async def ask(self, requests: Any) -> dict[str, dict[str, Any]]:
        """Give none."""
        raise PeerError(f"it does not answer {', '.join(requests)}")


@pytest.mark.parametrize("method", [ELICIT, SAMPLE])
async def test_what_a_server_is_refused_is_a_failure_of_our_own(method: str) -> None:
    answers = ServerAnswers("books", "forward", "refuse")
    request = {"method": method, "params": {"message": "Which?"}}
    with pytest.raises(UnansweredError) as refused:
        await answers.all({"a": request}, Silent())  # type: ignore[arg-type]
    assert refused.value.code == INVALID_REQUEST, "the number that the server is told"
    error = translated(refused.value, "books")
    assert (error.cause, error.detail) == (Code.permission_denied, None)
