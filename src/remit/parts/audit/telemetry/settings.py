"""The section `[telemetry]`, and where spans and metrics go by it, or by OpenTelemetry's own variables."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit, urlunsplit

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
    """Spans and metrics to an OpenTelemetry collector: what was recorded, and the numbers of this process."""

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

    metrics_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=86_400)],
        About(
            "Seconds between two sendings of the numbers of `/metrics` to the same receiver, at `/v1/metrics`, or to "
            "`OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`; 60 is usual. 0: none are sent."
        ),
    ] = 0


Signal = Literal["traces", "metrics"]
_OTLP: Final = "OTEL_EXPORTER_OTLP_"
_THINGS: Final = {"traces": "spans", "metrics": "metrics"}


class TelemetryTarget(msgspec.Struct, frozen=True):
    """Where spans, or metrics, go."""

    url: str
    source: str
    """The setting or the variable that says so."""
    headers: Mapping[str, str]


def target_of(own: TelemetrySettings, environ: Mapping[str, str], signal: Signal = "traces") -> TelemetryTarget | None:
    """Return where spans or metrics go, with the headers as they are sent; None: nowhere.

    The settings come before the variables by which other programs of the machine find their collector. Raise
    SettingsError, which quotes no value, for what cannot be sent, or not in the way that a variable wants.
    """
    if signal == "metrics" and not own.metrics_seconds:
        return None
    if own.otlp_url:
        url = own.otlp_url if signal == "traces" else _beside(own.otlp_url)
        return TelemetryTarget(url, "telemetry.otlp_url", _expanded(own.headers, environ))
    name = signal.upper()
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get(f"OTEL_{name}_EXPORTER") == "none":
        return None
    source, url = _first(environ, name, "ENDPOINT")
    if not url:
        return None
    if not is_url(url):
        raise SettingsError(f"{source} is no URL of HTTP", remedy="Correct it, or set telemetry.otlp_url.")
    which, protocol = _first(environ, name, "PROTOCOL")
    if protocol not in {"", "http/protobuf"}:
        remedy = "Set telemetry.otlp_url, which comes first, to a receiver over HTTP: often port 4318 of the same host."
        raise SettingsError(
            f"{which} asks for {protocol}: {_THINGS[signal]} are sent as http/protobuf alone", remedy=remedy
        )
    if name not in source:
        url = f"{url.rstrip('/')}/v1/{signal}"
    headers = {
        **headers_by(environ.get(f"{_OTLP}HEADERS", "")),
        **headers_by(environ.get(f"{_OTLP}{name}_HEADERS", "")),
    }
    return TelemetryTarget(url, source, _expanded(own.headers, environ) or headers)


def _beside(url: str) -> str:
    """Return where metrics go if spans go to this URL. Raise SettingsError if its path does not say so."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix("/v1/traces")
    if path == parts.path.rstrip("/") != "":
        remedy = "Leave the path out or end it with /v1/traces; or set OTEL_EXPORTER_OTLP_METRICS_ENDPOINT alone."
        raise SettingsError("telemetry.otlp_url has a path that does not say where metrics go", remedy=remedy)
    return urlunsplit(parts._replace(path=f"{path}/v1/metrics"))


def _first(environ: Mapping[str, str], signal: str, name: str) -> tuple[str, str]:
    """Return the variable that counts, that of the signal before that of all signals, and its value."""
    own, every = f"{_OTLP}{signal}_{name}", f"{_OTLP}{name}"
    return (own, environ[own]) if environ.get(own) else (every, environ.get(every, ""))


def _expanded(headers: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    who = "telemetry"
    return {name: sendable(expand(text, environ, who), f"{who}: {name}") for name, text in headers.items()}
