"""The section `[telemetry]`."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from remit.settings.address import address, url_or_empty
from remit.settings.expansion import variables
from remit.settings.pictures import names, url
from remit.settings.section import About, Section


def _claims_url(value: object) -> Iterator[str]:
    yield f"send spans of calls, models and jobs to {address(str(value))}"


def _claims_headers(value: Mapping[str, object]) -> Iterator[str]:
    named = sorted({name for text in value.values() for name in variables(str(text))})
    yield f"give the collector of spans {', '.join(f'${name}' for name in named) or 'headers'}"


class TelemetrySettings(Section, frozen=True):
    """Spans to an OpenTelemetry collector, beside `remit serve` and `remit worker`."""

    otlp_url: Annotated[
        str,
        About(
            "The URL of an OTLP receiver over HTTP, such as `http://127.0.0.1:4318`; without a path, `/v1/traces`. "
            "Empty: nothing is sent.",
            picture=url,
            resolve=url_or_empty,
            claims=_claims_url,
        ),
    ] = ""
    headers: Annotated[
        dict[str, str],
        About(
            'Headers to send with the spans: `authorization = "Bearer ${NAME}"` takes the secret from the environment.',
            picture=names,
            claims=_claims_headers,
        ),
    ] = msgspec.field(default_factory=dict)
    values: Annotated[
        bool,
        About(
            "Also send the arguments and results of tool calls up to 16 KiB, with what looks like a secret masked; "
            "never those about a subject."
        ),
    ] = False
