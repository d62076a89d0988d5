"""A job from Python: awaited, looked at, signalled, cancelled, whether its journal is here or behind a server."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from remit.codes import Code
from remit.errors import RemitError
from remit.record.heads import stream_named
from remit.record.views import ConfirmationView, JobRow, JobView, TaskError

if TYPE_CHECKING:
    from remit.jobs.recipe import Recipe
    from remit.service.service import Service

T = TypeVar("T")


class JobEndedError(RemitError):
    """An awaited job failed or was cancelled; `code` says why."""

    default = Code.JOB_FAILED

    def __init__(self, job: str, message: str, *, code: Code, remedy: str = "", step: str = "") -> None:
        self.job = job
        self.step = step
        super().__init__(message, code=code, remedy=remedy)


def id_of(job: str | JobHandle[Any]) -> str:
    """Return the identifier of a job that is named or held."""
    return job if isinstance(job, str) else job.id


class JobHandle(Generic[T]):
    """A job, wherever it runs. Awaiting it gives its result."""

    def __init__(self, service: Service, job: str, recipe: Recipe[..., T] | None = None) -> None:
        self.id = job
        self._service = service
        self._recipe = recipe

    def __repr__(self) -> str:
        return f"<job {self.id}{f' of {self._recipe.name}' if self._recipe else ''}>"

    def __await__(self) -> Generator[Any, None, T]:
        """Return what the recipe returned. Raise JobEndedError if the job failed or was cancelled."""
        return self.result().__await__()

    async def result(self) -> T:
        """Return what the recipe returned, once it has. Raise JobEndedError if the job failed or was cancelled."""
        await ended(self._service, self.id)
        return await self._result()

    async def _result(self) -> T:
        """Return what a job that has ended returned."""
        row = await self.row()
        if row.state == "completed":
            return self._typed(await self._service.jobs.result(self.id))
        view = await self.view()
        error = view.error or TaskError(code=Code.JOB_FAILED.name, message=f"{self.id} is {view.state}")
        code = Code.recorded(error.code, Code.JOB_FAILED)
        failure = JobEndedError(self.id, error.message, code=code, remedy=error.remedy, step=error.step)
        for frame in error.frames:
            failure.add_note(f"at {frame}")
        raise failure

    def _typed(self, value: Any) -> T:
        from remit.tools.hints import from_json  # noqa: PLC0415 - only who awaits a result needs it

        return cast("T", from_json(value, self._recipe.hints.get("return", Any) if self._recipe else Any))

    async def row(self) -> JobRow:
        """Return the state of the job."""
        return await self._service.jobs.row(self.id)

    async def view(self) -> JobView:
        """All about it: input, steps, result or error."""
        return await self._service.jobs.view(self.id)

    async def signal(self, name: str, payload: Any = None) -> None:
        """Send it a signal. Raise StateError if it has ended."""
        await self._service.jobs.signal(self.id, name, payload)

    async def cancel(self, reason: str = "") -> None:
        """Ask it to stop. Raise StateError if it has ended."""
        await self._service.jobs.cancel(self.id, reason=reason)

    async def questions(self) -> list[ConfirmationView]:
        """Return what it asks people at the moment."""
        return await self._service.confirmations.pending(self.id)


async def ended(service: Service, job: str) -> JobRow:
    """Wait until a job has ended, in whatever process; its row. Raise NotFoundError."""
    await service.jobs.row(job)
    async for _ in service.streams.follow(stream_named(job)):
        pass
    return await service.jobs.row(job)
