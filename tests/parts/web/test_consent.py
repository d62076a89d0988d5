"""Pages that only ask to agree to something, whatever they are called, and pages that merely speak of it."""

from __future__ import annotations

import pytest

from remit.parts.web.engine import is_consent
from remit.parts.web.fetcher import FetchedPage

URL = "https://news.example/a"
STORY = (
    "<p>The council agreed on Monday to rebuild the old bridge over the river, which floods closed in spring.</p>" * 4
)


def page(body: str, final_url: str = URL, kind: str = "text/html; charset=utf-8") -> FetchedPage:
    headers = {"content-type": kind}
    return FetchedPage(url=URL, final_url=final_url, status=200, headers=headers, body=f"<body>{body}".encode())


def asking(question: str, *answers: str, around: str = "") -> str:
    buttons = "".join(f"<button>{answer}</button>" for answer in answers)
    return f"<h1>News</h1><p>{question}</p><form action=/ok><input type=hidden name=a>{buttons}</form>{around}"


ENGLISH = asking("We and our 812 partners store cookies on your device. Do you agree?", "Accept all", "Reject all")


@pytest.mark.whole
@pytest.mark.parametrize(
    "body",
    [
        ENGLISH,
        f"<script>{'var x = 1;' * 9_000}</script>{ENGLISH}",
        asking("Bevor Sie fortfahren: Wir verwenden Cookies und Daten.", "Alle akzeptieren", "Alle ablehnen"),
        asking("Nous respectons votre vie privée. Vous pouvez accepter ou refuser.", "Tout accepter"),
        asking("Usamos cookies propias y de terceros para medir la audiencia.", "Aceptar y continuar"),
        asking("Usiamo i cookie per mostrare annunci.", "Accetta tutto"),
        asking("DPG Media gebruikt cookies om deze site te verbeteren.", "Akkoord"),
        asking("Szanujemy Twoją prywatność.", "Zgadzam się"),
        asking("Before you go on, please read our terms of service.", "I agree"),
        "<p>Your privacy matters to us.</p><a role=button href=/ok>Allow all</a><a href=/more>More</a>",
    ],
)
def test_a_page_that_only_asks_is_known_by_what_it_asks(body: str) -> None:
    assert is_consent(page(body))
    assert is_consent(page(body, "https://gate.example/?back=https%3A%2F%2Fnews.example%2Fa"))


@pytest.mark.whole
@pytest.mark.parametrize(
    "body",
    [
        STORY,
        STORY + ENGLISH,
        ENGLISH + STORY,
        "<h1>Sign in</h1><p>By signing in you accept our privacy policy.</p><input type='email'><button>Go</button>",
        "<p>We use cookies, and accept cards.</p>",
        "<h1>Our privacy policy</h1>"
        + "<p>We keep personal data for a week, and accept no cookies of others.</p>" * 60,
        "<p>Press the button.</p><button>Start</button>",
        "<article><p>Cookies: what courts accept today.</p></article><button>Share</button>",
        "",
    ],
)
def test_a_page_that_speaks_of_it_and_holds_more_is_none(body: str) -> None:
    assert not is_consent(page(body))


def test_what_is_no_page_asks_nothing() -> None:
    assert not is_consent(page(ENGLISH, kind="text/plain"))
    assert not is_consent(page(ENGLISH + "<!-- -->" * 100_000))
    assert not is_consent(page("<div>" * 100_000 + ENGLISH))
