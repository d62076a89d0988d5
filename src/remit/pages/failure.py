"""A request that was refused, as a page: what happened, its code, and what to do."""

from __future__ import annotations

from typing import ClassVar, Final

from remit.codes import Code
from remit.http.problem import Problem
from remit.pages.page import View

_TITLES: Final = {
    403: "This is not allowed",
    404: "There is no such page",
    405: "This cannot be done here",
    409: "Someone was faster, or it is over",
    410: "It is over",
    429: "Too many requests at once",
}
_ADVICE: Final = {
    Code.PATH_UNKNOWN: "Check the address, or begin with the overview.",
    Code.SCOPE_REQUIRED: "Log in with a token that has this scope, or ask the person who runs the server.",
    Code.TOO_MANY_REQUESTS: "Close some pages and load this one again.",
}
_OURS: Final = 500


class Failure(View, frozen=True, kw_only=True):
    """What went wrong, and what to do."""

    template: ClassVar[str] = "failure.html"
    code: str
    detail: str
    remedy: str
    here: str
    retry: bool
    """Whether loading the page again may help."""

    @classmethod
    def of(cls, problem: Problem, here: str) -> Failure:
        """The page of a refusal."""
        ours = problem.status >= _OURS
        return cls(
            title=_TITLES.get(problem.status, "Something is wrong here" if ours else "This could not be done"),
            status=problem.status,
            code=problem.code.name,
            detail=problem.detail,
            remedy=problem.remedy or _ADVICE.get(problem.code, ""),
            here=here,
            retry=ours,
        )
