"""The section `[telemetry]`, and where spans go by it, or by OpenTelemetry's own variables."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, NamedTuple

import msgspec

from remit.errors import SettingsError
from remit.settings.expansion import expand, headers_by, sendable, variables
from remit.settings.pictures import address, is_url, names, url, url_or_empty
from remit.settings.section import About, Section


def _claims_url(value: object) -> Iterator[str]:
    yield f"send spans of calls, models and jobs to {address(str(value))}"


def _claims_headers(value: Mapping[str, object]) -> Iterator[str]:
    named = sorted({name for text in value.values() for name in variables(str(text))})
    yield f"give the collector of spans {', '.join(f'${name}' for name in named) or 'headers'}"


class TelemetrySettings(Section, frozen=True):
    """Spans to an OpenTelemetry collector, of what this process and those before it recorded."""

    otlp_url: Annotated[
        str,
        About(
            "The URL of an OTLP receiver over HTTP, such as `http://127.0.0.1:4318`; without a path, `/v1/traces`. "
            "Empty: what `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` says; without them "
            "nothing is sent.",
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


_OTLP: Final = "OTEL_EXPORTER_OTLP_"


class SpanTarget(NamedTuple):
    """Where spans go."""

    url: str
    source: str
    """The setting or the variable that says so."""
    headers: Mapping[str, str]


def target_of(own: TelemetrySettings, environ: Mapping[str, str]) -> SpanTarget | None:
    """Return where spans go, with the headers as they are sent; None: nowhere.

    The settings come before the variables by which other programs of the machine find their collector. Raise
    SettingsError, which quotes no value, for what cannot be sent, or not in the way that a variable wants.
    """
    if own.otlp_url:
        return SpanTarget(own.otlp_url, "telemetry.otlp_url", _expanded(own.headers, environ))
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    source, url = _first(environ, "ENDPOINT")
    if not url:
        return None
    if not is_url(url):
        raise SettingsError(f"{source} is no URL of HTTP", remedy="Correct it, or set telemetry.otlp_url.")
    which, protocol = _first(environ, "PROTOCOL")
    if protocol not in {"", "http/protobuf"}:
        remedy = "Set telemetry.otlp_url, which comes first, to a receiver over HTTP: often port 4318 of the same host."
        raise SettingsError(f"{which} asks for {protocol}: spans are sent as http/protobuf alone", remedy=remedy)
    if "TRACES" not in source:
        url = f"{url.rstrip('/')}/v1/traces"
    headers = {
        **headers_by(environ.get(f"{_OTLP}HEADERS", "")),
        **headers_by(environ.get(f"{_OTLP}TRACES_HEADERS", "")),
    }
    return SpanTarget(url, source, _expanded(own.headers, environ) or headers)


def _first(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the variable that counts, that of traces before that of all signals, and its value."""
    own, every = f"{_OTLP}TRACES_{name}", f"{_OTLP}{name}"
    return (own, environ[own]) if environ.get(own) else (every, environ.get(every, ""))


def _expanded(headers: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    who = "telemetry"
    return {name: sendable(expand(text, environ, who), f"{who}: {name}") for name, text in headers.items()}
