"""Starts an MCP server in the sandbox, if its operator set `sandbox` (rule 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from remit.codes import Code
from remit.errors import ProviderError
from remit.process.child import Launch
from remit.process.enclosure import CommandMissingError, Enclosures, LooserError, Program, SandboxUnavailableError
from remit.settings.mcp import McpServer, terms_of


def launch_of(server: McpServer, enclosures: Callable[[], Enclosures]) -> Launch | None:
    """Return what starts the server; None if it runs without a sandbox.

    The launch raises ProviderError: SANDBOX_UNAVAILABLE or POLICY_DENIED if the server cannot be run on its terms. It
    is never started without the sandbox instead.
    """
    terms = terms_of(server.sandbox)
    if terms is None or not server.command:
        return None

    async def launch(
        protocol: asyncio.SubprocessProtocol, command: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> asyncio.SubprocessTransport:
        program = Program(name=f"mcp_{server.name}", command=tuple(command), cwd=Path(cwd), env=env, terms=terms)
        try:
            return await enclosures().start(program, protocol)
        except SandboxUnavailableError as error:
            reason = f"{error}. {error.remedy or '`remit sandbox probe` shows what is missing.'}"
            raise ProviderError(reason, cause=Code.SpawnFailed, code=Code.SANDBOX_UNAVAILABLE) from error
        except CommandMissingError as error:
            raise ProviderError(f"cannot be started: {error}", cause=Code.SpawnFailed) from error
        except LooserError as error:
            reason = f"its sandbox: {error}"
            raise ProviderError(reason, cause=Code.SpawnFailed, code=Code.POLICY_DENIED) from error

    return launch
