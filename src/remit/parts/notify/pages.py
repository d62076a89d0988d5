"""The page of the devices on which a person is told, by Web Push, what waits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import msgspec

from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.http.router import StatelessPart
from remit.pages.page import SAFE, Page, PageRequest, PageView, See
from remit.parts.notify.kinds import PushSubscribed
from remit.redact import line

if TYPE_CHECKING:
    from starlette.types import Receive, Send


class DeviceRow(NamedTuple):
    """A device that takes notices."""

    stream: str
    device: str
    since: int


class DevicesPage(PageView, frozen=True, kw_only=True):
    """Page of the reader's own devices."""

    template: ClassVar[str] = "devices.html"
    rows: tuple[DeviceRow, ...]
    key: str
    """The public key that a browser asks with; empty: no target tells devices."""
    who: str
    """The reader; empty: the server knows no people."""


class DeviceForm(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that takes notices."""

    endpoint: str
    p256dh: str
    auth: str
    device: str = ""

    def __repr__(self) -> str:
        """Leave out what is the browser's."""
        return "DeviceForm(…)"


class EndForm(msgspec.Struct, frozen=True, kw_only=True):
    """A device that is to take notices no more."""

    stream: str


async def devices(request: PageRequest) -> DevicesPage:
    """Show them."""
    noun = request.service.devices
    own = await noun.of(request.principal) if request.principal else []
    rows = tuple(DeviceRow(device.head.stream, device.subscription.device, device.head.created_at) for device in own)
    return DevicesPage(title="Devices", rows=rows, key=noun.key, who=request.principal)


async def subscribe(request: PageRequest) -> See:
    """Let this browser take notices. Raises UsageError."""
    noun, form = request.service.devices, request.form
    subscription = PushSubscribed(
        principal=request.principal,
        endpoint=form.endpoint,
        p256dh=form.p256dh,
        auth=form.auth,
        key=noun.key,
        device=line(form.device, 100),
    )
    await noun.add(subscription)
    return See("/devices")


async def end(request: PageRequest) -> See:
    """Let one of the reader's devices take notices no more."""
    noun = request.service.devices
    for device in await noun.of(request.principal):
        if device.head.stream == request.form.stream:
            await noun.end(device, "its person took it out")
    return See("/devices")


PAGES: Final = (
    Page(
        path="/devices",
        scope="read",
        handler=devices,
        name="Devices",
        key="v",
        under="What runs where?",
        about="phones and browsers that are told what waits",
    ),
    Page(path="/devices/add", scope="read", handler=subscribe, form=DeviceForm),
    Page(path="/devices/end", scope="read", handler=end, form=EndForm),
)


SCRIPTS: Final = "/channels/push"
_FOLDER: Final = Path(__file__).parent / "static"
_NAMES: Final = ("page.js", "worker.js")


class Scripts(StatelessPart):
    """Serves them to everyone (remit.http.router.ServerPart)."""

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the port's
        name = scope["path"].removeprefix(f"{SCRIPTS}/")
        if name not in _NAMES or scope["method"] != "GET":
            raise HttpProblem(Code.PATH_UNKNOWN)
        data = (_FOLDER / name).read_bytes()
        own = {"content-type": "text/javascript; charset=utf-8", "cache-control": "no-cache"}
        headers = {**SAFE, **own, "content-length": str(len(data))}
        encoded = [(key.encode(), text.encode()) for key, text in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        await send({"type": "http.response.body", "body": data})
