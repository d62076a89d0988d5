"""Declares the settings of the parts that ship: imported by who loads settings, and not with the list of the parts.

`remit --help` reads that list, and needs no settings.
"""

from __future__ import annotations

from remit.settings.table import declare
from remit.trust.claims import declare_files
from remit.wiring.capabilities import FIRST_PARTY

declare_files({name: struct for part in FIRST_PARTY for name, struct in part.files.items()})
declare({part.name: part.settings for part in FIRST_PARTY if part.settings})
