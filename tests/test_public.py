"""The public surface: what stands here stays, and nothing joins it by accident."""

from __future__ import annotations

import subprocess
import sys

import pytest

import remit

SURFACE = [
    "About",
    "Budget",
    "RecipeCall",
    "CallContext",
    "CallError",
    "Capability",
    "Check",
    "Code",
    "Command",
    "Confirmed",
    "EvidenceCandidate",
    "FunctionTool",
    "Job",
    "JobEndedError",
    "Level",
    "Look",
    "Migration",
    "ModelAnswer",
    "Noun",
    "NounOpening",
    "Opening",
    "Options",
    "Outcome",
    "ProviderError",
    "Recipe",
    "Remit",
    "RemitError",
    "Retry",
    "Risk",
    "Run",
    "Sampling",
    "Section",
    "Settings",
    "ToolMeta",
    "ToolProvider",
    "ToolResult",
    "__version__",
    "migration",
    "recipe",
    "run_sync",
    "tool",
]


def test_the_public_names_are_these() -> None:
    assert sorted(remit.__all__) == sorted(SURFACE)
    assert dir(remit) == sorted(SURFACE)


def test_every_public_name_can_be_imported_and_says_what_it_is() -> None:
    for name in SURFACE:
        value = getattr(remit, name)
        assert name == "__version__" or value.__doc__, name


def test_an_old_name_is_the_new_one_and_says_so() -> None:
    with pytest.warns(DeprecationWarning, match=r"remit\.Bound is now remit\.RecipeCall"):
        assert remit.Bound is remit.RecipeCall


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(remit, "Remittance")


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"apsw", "asyncio", "msgspec", "click", "rich", "jsonschema_rs", "yaml"}
    code = f"import remit, sys; print(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
