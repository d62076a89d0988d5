"""Addresses, names and headers that try to make the console lead, show or save something else."""

from __future__ import annotations

from datetime import UTC
from urllib.parse import quote

import pytest

from remit.http.guard import Guard
from remit.http.problem import HttpProblem
from remit.pages.entry import local
from remit.pages.live import regions_of
from remit.pages.page import COOKIE, PageFile, link, zone_of
from remit.pages.part import _file
from remit_testing.clock import ManualClock


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "\\\\evil", "/\t/evil",
        "/\n/evil", " //evil", "", "evil", "/\u2215/evil", "/login?to=//evil", "/logout", "/\r\nset-cookie: a=b",
    ],
)  # fmt: skip
def test_a_login_leads_nowhere_else(path: str) -> None:
    assert local(path) == "/"


@pytest.mark.parametrize("path", ["/jobs", "/jobs/job_1?step=2", "/@evil.example", "/.//evil"])
def test_it_leads_to_pages_of_this_server(path: str) -> None:
    assert local(path) == path


@pytest.mark.parametrize("name", ["a/../b", "?x=1", "#x", "//evil", "javascript:alert(1)", "a\r\nb: c", "%2e%2e", "é"])
def test_a_name_in_an_address_stays_one_part_of_it(name: str) -> None:
    made = link("/jobs/{}", name)
    assert made.startswith("/jobs/")
    assert made.isascii()
    assert made.count("/") == 2
    assert not set(made) & set("?#\r\n \\")


@pytest.mark.parametrize("query", ['"><script>', "a&b=c", "javascript:x", "//evil", "a\r\nb"])
def test_a_saved_filter_leads_to_the_list_of_jobs(query: str) -> None:
    assert link("/jobs", text=query).startswith("/jobs?text=")
    assert not set(link("/jobs", text=query)) & set('"<>\r\n')


@pytest.mark.parametrize("name", ['x"; filename="a.exe', "a\r\nx: y", "../../a", "\u202egnp.exe", "", "a" * 500])
def test_a_file_s_name_stays_in_its_header(name: str) -> None:
    headers = _file(PageFile(name, b"<script>")).headers
    named = headers["content-disposition"].removeprefix('attachment; filename="').removesuffix('"')
    assert named
    assert named.isascii()
    assert not set(named) & set('"/\\\r\n;')
    assert len(named) <= 80
    assert headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "zone", ["../../etc/passwd", "/etc/passwd", "Europe/../../x", "\x00", "a" * 10_000, "UTC\r\nx"]
)
def test_a_zone_is_no_path(zone: str) -> None:
    assert zone_of({"cookie": f"{COOKIE}={quote(zone)}"}) is UTC


def test_text_on_a_page_is_no_region_of_it() -> None:
    page = b'<p>id="x" data-live=""&gt;&lt;!--live--&gt;evil&lt;!--/live--&gt;</p>'
    assert regions_of(page).regions == {}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1.evil.example", "localhost.evil.example", "evil.example", "127.0.0.1@evil.example",
        "localhost:8320.evil",
        "127.0.0.1:", "localhost:8320x", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.1", "localhost.", "",
        "localhost, evil.example", "localhost:\u0661",
    ],
)  # fmt: skip
def test_no_name_of_another_host_is_ours(host: str) -> None:
    guard = Guard.of("127.0.0.1", (), (), ManualClock())
    with pytest.raises(HttpProblem):
        guard.admit({"host": host})
    with pytest.raises(HttpProblem):
        guard.admit({"host": "127.0.0.1", "origin": f"http://{host or 'x'}"})
