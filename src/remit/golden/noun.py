"""Golden jobs: made of recorded ones, and checked against the code, tools and policy of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.golden.check import Checking, report_of
from remit.golden.export import golden_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remit.golden.check import Checked, CheckReport, Class
    from remit.golden.file import Golden
    from remit.service.opening import NounOpening


class Goldens:
    """The golden jobs of one process; only one with the journal makes or checks them."""

    def __init__(self, opening: NounOpening) -> None:
        self._opening = opening

    async def export(self, job: str, name: str = "", *, secrets: Iterable[str] = ()) -> Golden:
        """Make a golden job of a recorded one, without secrets: those that are found, and the texts in `secrets`.

        Raises NotFoundError, StateError, UsageError or PayloadErasedError.
        """
        return await golden_of(self._opening.parts.journal, job, name or job, secrets)

    async def check(
        self, goldens: Iterable[Golden | Checked], *, warn: Class = "breaking", fail: Class = "failed"
    ) -> CheckReport:
        """Check golden jobs; the journal has to be in memory. Raises StateError."""
        checking = Checking(self._opening.parts, self._opening.service.jobs)
        return report_of([await checking.check(golden) for golden in goldens], warn=warn, fail=fail)


def open_goldens(opening: NounOpening) -> Goldens:
    """Return the golden jobs of a process."""
    return Goldens(opening)
