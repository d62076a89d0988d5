"""The provider of report.write: a report as files, kept beside the record, for `remit artifacts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import sha256
from remit.parts.recipes.report import Report, page
from remit.tools.provider import CallContext, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from remit.capability import Opening

_PROVIDER: Final = "report"


class WriteArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which report to lay out."""

    report: Report


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is kept."""

    path: str
    bytes: int
    sha256: str
    media_type: str


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The report as Markdown, as JSON and as one HTML page."""

    artifacts: list[Written]


WRITE: Final = declare(
    "report.write",
    "Keep a report as report.md, report.json and report.html, which `remit artifacts` lists.",
    WriteArgs,
    WriteResult,
    provider=_PROVIDER,
    timeout_ms=30_000,
)


class ReportProvider(Toolset):
    """Lays out reports, and keeps them in the record alone."""

    def __init__(self) -> None:
        super().__init__(_PROVIDER, (WRITE,))

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Keep the files. Raises ProviderError."""
        self._require(name)
        report = arguments(WriteArgs, args).report
        files = (
            ("report.md", report.report.encode(), "text/markdown"),
            ("report.json", msgspec.json.format(msgspec.json.encode(report), indent=2), "application/json"),
            ("report.html", page(report).encode(), "text/html"),
        )
        if ctx.keeper is not None:
            for _, data, _ in files:
                await ctx.keeper.put(data)
        artifacts = [
            Written(path=path, bytes=len(data), sha256=sha256(data), media_type=kind) for path, data, kind in files
        ]
        return ToolResult(msgspec.to_builtins(WriteResult(artifacts=artifacts)))


def open_report(_opening: Opening) -> tuple[ReportProvider]:
    """The provider."""
    return (ReportProvider(),)
