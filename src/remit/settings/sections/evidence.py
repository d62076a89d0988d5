"""The section `[evidence]`."""

from typing import Annotated

import msgspec

from remit.settings.section import About, Count, Section

EvidenceBytes = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class EvidenceSettings(Section, frozen=True):
    """What is kept of what tools found."""

    inline_limit_bytes: Annotated[
        EvidenceBytes,
        About("The largest piece of evidence kept within a report.", env=("EVIDENCE_INLINE_LIMIT_BYTES",)),
    ] = 4_096
    raw_limit_bytes: Annotated[
        EvidenceBytes,
        About("The largest piece of evidence stored beside a report.", env=("EVIDENCE_RAW_LIMIT_BYTES",)),
    ] = 1_000_000
    max_items_per_report: Annotated[
        Count,
        About("How many pieces of evidence a report may list.", env=("EVIDENCE_MAX_ITEMS_PER_REPORT",)),
    ] = 50
    retention_days: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=36_500)],
        About(
            "Days to keep the evidence stored beside a report; 0: forever. Digests are kept forever.",
            env=("EVIDENCE_RETENTION_DAYS",),
        ),
    ] = 183
