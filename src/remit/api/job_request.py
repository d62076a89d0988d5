"""The common part of requests that start a job: how it is filed, what it may do, and that a repetition meets it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Self

import msgspec

from remit.api.route import ApiRequest
from remit.codes import Code
from remit.errors import AppendConflictError
from remit.http.problem import HttpProblem
from remit.policy.overlay import within
from remit.service.options import Options


class Filing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a job is filed, and what it may do."""

    title: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    priority: int = 0
    policy: tuple[dict[str, Any], ...] = ()
    """Rules for this job's calls; they may deny or ask, never allow."""
    tools: tuple[str, ...] | None = None
    """The only tools that it may call; null: whatever policy, or the conversation that it answers, lets it."""
    skills: tuple[str, ...] = ()
    """The skills that it is under: it may call their tools alone, and keeps to their rules."""
    budget: dict[str, int] = msgspec.field(default_factory=dict)
    untrusted: bool = False
    """Whether its input is untrusted text, such as a message that anyone may have written."""
    job: str = ""
    """Its identifier: `job_` and 26 digits; empty: a new one."""

    @classmethod
    def of(cls, options: Options, **more: Any) -> Self:
        """Return the body of a request that files its job so; `more` are the body's other fields."""
        filed = {name: getattr(options, name) for name in Filing.__struct_fields__}
        plain = {"policy": tuple(dict(rule) for rule in options.policy), "budget": dict(options.budget)}
        return cls(**filed | plain | more)

    def options(self, request: ApiRequest, **more: Any) -> Options:
        """The options of the job that a request starts. Raises Problem if it asks for tools that its token is not for.

        `more` are further options.
        """
        return Options(
            title=self.title,
            labels={"trace_id": request.trace.trace_id, **self.labels} if request.trace.named else self.labels,
            priority=self.priority,
            principal=request.principal,
            policy=self.policy,
            tools=_narrowed(request, self.tools),
            skills=self.skills,
            budget=self.budget,
            untrusted=self.untrusted,
            job=self.job or request.identifier("job"),
            **more,
        )

    async def met(self, options: Options, starting: Awaitable[str]) -> str:
        """The job that was started, or that an earlier attempt at the same request has started."""
        try:
            return await starting
        except AppendConflictError:
            if self.job or not options.job:
                raise
            return options.job


def _narrowed(request: ApiRequest, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The only tools of a new job: never more than the request's token is for."""
    held = request.access.tools
    if not held or wanted is None:
        return held or wanted
    outside = [tool for tool in wanted if not within(tool, held)]
    if outside:
        raise HttpProblem(Code.SCOPE_REQUIRED, f"The token is not for {', '.join(outside)}.")
    return wanted
