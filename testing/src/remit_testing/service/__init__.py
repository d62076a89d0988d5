"""The promises of the service wherever it is, as checks that any test suite can run.

    @pytest.mark.parametrize("check", SERVICE_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(reach)

`reach` takes the service over a journal, and opens the one under test: itself, or one that reaches it over a wire.
Each check begins with an empty journal.
"""

from __future__ import annotations

from typing import Final

from remit_testing.service.conversations import CONVERSATION_CHECKS
from remit_testing.service.jobs import JOB_CHECKS
from remit_testing.service.looking import LOOKING_CHECKS
from remit_testing.service.questions import QUESTION_CHECKS
from remit_testing.service.tickets import TICKET_CHECKS
from remit_testing.service.world import Check

SERVICE_CHECKS: Final[tuple[Check, ...]] = (
    *JOB_CHECKS,
    *QUESTION_CHECKS,
    *LOOKING_CHECKS,
    *CONVERSATION_CHECKS,
    *TICKET_CHECKS,
)
"""Every check."""
