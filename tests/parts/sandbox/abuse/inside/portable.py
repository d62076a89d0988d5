"""Probes of plain files, which `attempts` tries."""

from __future__ import annotations

import os

from tests.parts.sandbox.abuse.inside.attempts import ATTEMPTS, attempt
from tests.parts.sandbox.abuse.inside.kit import Facts, Try, probe


def _run(title: str) -> Try:
    def run(facts: Facts) -> str:
        return str(attempt(title, facts, os))  # type: ignore[no-untyped-call]

    return run


for _title in ATTEMPTS:
    probe("plain files", _title)(_run(_title))
