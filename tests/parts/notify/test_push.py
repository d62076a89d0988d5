"""Notices on devices: sealed for one browser, proved to its push service, and asked for on a page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec.structs import replace
from playwright.async_api import expect

from remit import Remit
from remit.errors import SettingsError, UsageError
from remit.http.access import Access
from remit.http.router import PartMount
from remit.pages.entry import NOBODY
from remit.parts.notify.devices import DEVICES
from remit.parts.notify.kinds import PushSubscribed
from remit.parts.notify.pages import SCRIPTS, Scripts
from remit.parts.notify.people import read_targets
from remit.parts.notify.push import bytes_of, public_of, sealed, server_key, text_of
from remit.parts.notify.sender import Notice
from remit.parts.notify.wiring import work_on_notifications
from remit.settings import load
from tests.pages.browsing import browsing, window
from tests.pages.conftest import serving, token

SECRET = "a secret of sixteen characters or more"
CURVE = ec.SECP256R1()


class Service:
    """A push service with one browser, whose key it does not have."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.status = 201
        self.api = ""
        self.browser, self.auth = ec.generate_private_key(CURVE), b"0123456789abcdef"

    async def take(self, request: web.Request) -> web.Response:
        self.posts.append(({key.lower(): text for key, text in request.headers.items()}, await request.read()))
        return web.Response(status=self.status)

    def asked(self, principal: str = "ann", **keys: Any) -> PushSubscribed:
        own: dict[str, Any] = {
            "principal": principal,
            "endpoint": f"{self.api}/1",
            "p256dh": text_of(public_of(self.browser)),
            "auth": text_of(self.auth),
            "key": text_of(public_of(server_key(SECRET))),
            "device": "a phone",
        }
        return PushSubscribed(**{**own, **keys})

    def opened(self, body: bytes) -> Any:
        """Read a message as the browser does (RFC 8188, RFC 8291)."""
        salt, public, data = body[:16], body[21 : 21 + body[20]], body[21 + body[20] :]
        shared = self.browser.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, public))
        info = b"WebPush: info\0" + public_of(self.browser) + public
        secret = HKDF(SHA256(), 32, self.auth, info).derive(shared)
        key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
        nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
        text = AESGCM(key).decrypt(nonce, data, None)
        assert text[-1:] == b"\2", "it is the last record"
        return json.loads(text[:-1])


@asynccontextmanager
async def told(**keys: Any) -> AsyncIterator[tuple[Remit, Service]]:
    """A Remit that tells ann on her devices, and their push service."""
    service = Service()
    app = web.Application()
    app.router.add_post("/push/{device}", service.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.api = f"http://127.0.0.1:{runner.addresses[0][1]}/push"
    target = {"name": "phones", "push": "person", "ask": ["ann"], "secret": SECRET, "api": service.api, **keys}
    env = {"REMIT_NOTIFY": json.dumps([target]), "REMIT_PRINCIPAL": "robot"}
    flags = {"journal.url": ":memory:", "serve.public_url": "https://remit.example"}
    try:
        async with Remit(settings=load(env=env, flags=flags)) as remit:
            yield remit, service
    finally:
        await runner.cleanup()


def test_a_message_is_sealed_as_the_example_of_rfc_8291() -> None:
    private = int.from_bytes(bytes_of("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    body = sealed(
        b"When I grow up, I want to be a watermelon",
        bytes_of("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
        bytes_of("BTBZMqHH6r4Tts7J_aSIgg"),
        ec.derive_private_key(private, CURVE),
        bytes_of("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert text_of(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_y"
        "l95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


async def test_a_message_comes_to_the_device_sealed_and_proved() -> None:
    async with told() as (remit, service):
        await remit.service.devices.add(service.asked())
        (answer,) = await remit.service.notifications.test()
        assert answer.ok, answer.said
        ((headers, body),) = service.posts
        assert service.opened(body)["title"] == "A test message: notifications arrive here"
        assert b"test message" not in body
        words = dict(word.strip().split("=", 1) for word in headers["authorization"].removeprefix("vapid ").split(","))
        public = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, bytes_of(words["k"]))
        claims = jwt.decode(words["t"], public, algorithms=["ES256"], audience=service.api.removesuffix("/push"))
        assert claims["sub"] == "https://remit.example"
        assert (headers["content-encoding"], headers["ttl"]) == ("aes128gcm", "86400")


async def test_a_device_that_is_gone_is_told_no_more() -> None:
    async with told() as (remit, service):
        await remit.service.devices.add(service.asked())
        service.status = 410
        (answer,) = await remit.service.notifications.test()
        assert (answer.ok, answer.said) == (False, "127.0.0.1 answers HTTP 410")
        (answer,) = await remit.service.notifications.test()
        assert answer.said == "ann has no device that takes notices: /devices in the console"
        for _ in range(2):
            await remit.service.devices.add(service.asked())
            assert len(await remit.service.devices.of("ann")) == 1, "it may come back, once"
        assert len(service.posts) == 1


@pytest.mark.parametrize(
    "keys",
    [
        {"endpoint": "https://127.0.0.1/internal"},
        {"endpoint": "https://fcm.googleapis.com.evil.example/"},
        {"endpoint": "{api}/../secret"},
        {"endpoint": "{api}/x/%2e%2E/../secret"},
        {"endpoint": "{api}/1 \r\nx: y"},
        {"endpoint": "{api}/é"},
        {"endpoint": "{api}/" + "a" * 3_000},
        {"p256dh": "AAAA"},
        {"p256dh": "not base64 !"},
        {"auth": "AAAA"},
    ],
    ids=str,
)
async def test_what_no_browser_says_is_refused(keys: dict[str, str]) -> None:
    async with told() as (remit, service):
        placed = {key: text.replace("{api}", service.api) for key, text in keys.items()}
        with pytest.raises(UsageError):
            await remit.service.devices.add(service.asked(**placed))
        assert await remit.service.devices.of("ann") == []


async def test_a_person_has_so_many_devices() -> None:
    async with told() as (remit, service):
        for number in range(DEVICES):
            await remit.service.devices.add(service.asked(endpoint=f"{service.api}/{number}"))
        with pytest.raises(UsageError, match="20 devices are told already"):
            await remit.service.devices.add(service.asked(endpoint=f"{service.api}/more"))
        await remit.service.devices.add(service.asked(endpoint=f"{service.api}/0"))
        assert len(await remit.service.devices.of("ann")) == DEVICES
        await remit.service.devices.add(service.asked("bob"))


async def test_who_asks_later_on_a_browser_takes_it_over() -> None:
    async with told(ask=["ann", "bob"]) as (remit, service):
        for principal in ("ann", "bob", "bob"):
            await remit.service.devices.add(service.asked(principal))
        await remit.service.devices.add(service.asked(endpoint=f"{service.api}/2"))
        counts = [len(await remit.service.devices.of(principal)) for principal in ("ann", "bob")]
        assert counts == [1, 1]
        await remit.service.devices.add(service.asked())
        assert [len(await remit.service.devices.of(principal)) for principal in ("ann", "bob")] == [2, 0]


@pytest.mark.parametrize("secret", ["too short", "${SHORT}"])
async def test_a_secret_that_is_too_short_is_refused_before_anything_is_sent(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "too short")
    async with told(secret=secret) as (remit, _):
        with pytest.raises(SettingsError, match="shorter than 16 characters"):
            work_on_notifications(remit, asyncio.Event(), "worker")
        with pytest.raises(SettingsError, match="shorter than 16 characters"):
            _ = remit.service.devices
    monkeypatch.delenv("SHORT")
    async with told(secret="${SHORT}") as (remit, _):  # what is not there is named by an attempt
        assert work_on_notifications(remit, asyncio.Event(), "worker") is not None
        (answer,) = await remit.service.notifications.test()
        assert "SHORT, which is not set" in answer.said


async def test_a_long_message_fits_and_its_service_learns_no_question() -> None:
    async with told() as (remit, service):
        await remit.service.devices.add(service.asked())
        (target,) = read_targets(remit.settings)
        address = "https://remit.example/inbox/c_1"
        notice = Notice(id="n_1", event="question", at="", title="?", url=address, question='"' * 9_000)
        answer = await remit.service.devices.send(replace(target, push="ann"), notice)
        ((headers, body),) = service.posts
        token = headers["authorization"].removeprefix("vapid t=").partition(",")[0]
        assert answer.ok
        assert jwt.decode(token, options={"verify_signature": False})["sub"] == "https://remit.example"
        assert service.opened(body)["path"] == "/inbox/c_1"
        assert len(body) <= 4_096


async def test_a_device_asked_with_another_key_is_not_told() -> None:
    async with told() as (remit, service):
        await remit.service.devices.add(service.asked(key="another"))
        (answer,) = await remit.service.notifications.test()
        assert not answer.ok
        assert service.posts == []


@pytest.mark.parametrize("keys", [{"push": "ann"}, {"secret": ""}, {"ask": []}])
def test_a_target_without_people_or_secret_is_refused(keys: dict[str, Any]) -> None:
    table = {"name": "phones", "push": "person", "ask": ["ann"], "secret": SECRET, **keys}
    with pytest.raises(SettingsError):
        read_targets(load(env={"REMIT_NOTIFY": json.dumps([table])}))


async def stranger(_headers: Mapping[str, str]) -> Access:
    return NOBODY


async def test_a_person_adds_and_ends_devices_of_their_own_alone() -> None:
    async with told() as (remit, service), serving(remit, [token("ann", "read"), token("bob", "read")]) as browser:
        await browser.log_in("secret-ann")
        page = await browser.get("/devices")
        fields = {"endpoint": f"{service.api}/1", "p256dh": service.asked().p256dh, "auth": service.asked().auth}
        form = [("csrf", page.csrf), *fields.items(), ("device", "my phone")]
        assert (await browser.send("/devices/add", form)).status == HTTPStatus.SEE_OTHER
        assert "my phone" in (await browser.get("/devices")).text
        (device,) = await remit.service.devices.of("ann")
        ended = [("stream", device.head.stream)]
        await browser.log_in("secret-bob")
        page = await browser.get("/devices")
        await browser.send("/devices/end", [("csrf", page.csrf), *ended])
        assert len(await remit.service.devices.of("ann")) == 1
        await browser.log_in("secret-ann")
        page = await browser.get("/devices")
        await browser.send("/devices/end", [("csrf", page.csrf), *ended])
        assert await remit.service.devices.of("ann") == []


@pytest.mark.slow
async def test_the_page_asks_the_browser_and_its_worker_shows_what_comes() -> None:
    """As far as it goes without a push service: the browser is asked, and given a message as one would give it."""
    async with (
        told() as (remit, _service),
        serving(remit, [token("ann", "read")], beside=[PartMount(SCRIPTS, Scripts(), None, stranger)]) as server,
        browsing() as browser,
        window(browser, server.url, permissions=["notifications"]) as shown,
    ):
        page = await shown.open("/login?to=/devices")
        await page.get_by_label("Token").fill("secret-ann")
        await page.get_by_role("button", name="Log in").click()
        await shown.open("/devices")
        await page.get_by_role("button", name="Tell this device").click()
        await expect(page.locator("#device-note")).to_contain_text("The browser refused:")
        protocol = await page.context.new_cdp_session(page)
        versions: list[dict[str, Any]] = []
        protocol.on("ServiceWorker.workerVersionUpdated", lambda event: versions.extend(event["versions"]))
        registered: list[dict[str, Any]] = []
        protocol.on("ServiceWorker.workerRegistrationUpdated", lambda event: registered.extend(event["registrations"]))
        await protocol.send("ServiceWorker.enable")
        state = "navigator.serviceWorker.getRegistration('/channels/push/').then((found) => found.active?.state)"
        await page.wait_for_function(f"{state}.then((word) => word === 'activated')")
        notice = json.dumps({"id": "n_1", "title": "pay.wire waits", "body": "Tool: pay.wire", "path": "/inbox/c_1"})
        worker = next(one for one in registered if one["scopeURL"].endswith("/channels/push/"))
        await protocol.send(
            "ServiceWorker.deliverPushMessage",
            {"origin": server.url, "registrationId": worker["registrationId"], "data": notice},
        )
        notices = "navigator.serviceWorker.getRegistration('/channels/push/').then((found) => found.getNotifications())"
        await page.wait_for_function(f"{notices}.then((all) => all.some((one) => one.data === '/inbox/c_1'))")


async def test_a_device_that_comes_and_goes_is_told_each_time() -> None:
    async with told(ask=["ann", "bob"]) as (remit, service):
        for _ in range(4):
            for principal, counts in (("ann", [1, 0]), ("bob", [0, 1])):
                await remit.service.devices.add(service.asked(principal))
                assert [len(await remit.service.devices.of(each)) for each in ("ann", "bob")] == counts
