"""Whatever the OpenAPI document allows is asked of a live server: nothing breaks it, and it says what it documents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.api.openapi import openapi
from remit.api.table import ROUTES
from tests.cli.conftest import Project, project

__all__ = ["project"]

EXAMPLES = os.environ.get("REMIT_TEST_EXAMPLES", "2")
EACH = ("examples,coverage,fuzzing", EXAMPLES)
FEW = ("examples,fuzzing", "1")
"""What each boundary of each schema does is the same for whoever may ask, and looked at once."""
ASKED = [("secret-of-ann", EACH)]
if "REMIT_TEST_EXAMPLES" in os.environ:
    ASKED += [("", FEW), ("wrong", FEW)]
COMMAND = Path(sys.executable).with_name("schemathesis")
UNTOLD = "positive_data_acceptance"
"""A schema cannot say all that a request has to be: a whole number is written without a fraction, a ticket's document
has its own schema gate, and a key stands for one body."""
CLIENTS = """
[[clients]]
principal = "ann"
token = "secret-of-ann"
scopes = ["admin"]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("token", "asked"), ASKED)
def test_no_request_that_the_document_allows_breaks_the_server(
    project: Project, token: str, asked: tuple[str, str]
) -> None:
    project.configure(CLIENTS if token else "", modules=False)
    with project.start("serve", "--port", "0") as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        phases, examples = asked
        words = [str(COMMAND), "run", f"{project.folder}/openapi.json", "--url", url]
        words += ["--max-examples", examples, "--phases", phases, "--exclude-checks", UNTOLD]
        words += ["--header", f"Authorization: Bearer {token}"] if token else []
        try:
            (project.folder / "openapi.json").write_bytes(msgspec.json.encode(_document()))
            done = subprocess.run(words, cwd=project.folder, capture_output=True, text=True, check=False, timeout=200)
        finally:
            server.terminate()
            server.communicate(timeout=100)
    assert done.returncode == 0, done.stdout[-6_000:]


def _document() -> dict[str, Any]:
    """What the server documents, without the wait for a ticket: none comes here, and each would take a minute."""
    document = openapi(ROUTES)
    operation = document["paths"]["/v1/tickets/free"]["get"]
    operation["parameters"] = [one for one in operation["parameters"] if one["name"] != "wait"]
    return document
