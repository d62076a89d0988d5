"""Runs every probe: `python -m tests.parts.sandbox.abuse.inside FACTS`, one JSON line for each."""

from __future__ import annotations

import json
import sys

from tests.parts.sandbox.abuse.inside import calls, files, identity, network, portable, processes
from tests.parts.sandbox.abuse.inside.kit import PROBES, verdict_of

GROUPS = (portable, files, processes, network, calls, identity)

if __name__ == "__main__":
    facts = json.loads(sys.argv[1])
    for one in PROBES:
        verdict, detail = verdict_of(one, facts)
        sys.stdout.write(json.dumps([one.group, one.title, verdict, detail]) + "\n")
        sys.stdout.flush()
