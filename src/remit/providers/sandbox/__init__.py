"""Tools that run code where it can do no harm."""

from remit.providers.sandbox.provider import SandboxProvider

__all__ = ["SandboxProvider"]
