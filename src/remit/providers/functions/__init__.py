"""Tools that are functions: of this process, or run in the sandbox."""

from remit.providers.functions.provider import FunctionProvider

__all__ = ["FunctionProvider"]
