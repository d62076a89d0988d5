"""What Remit itself tells a model is a part of recorded conversations."""

from __future__ import annotations

import hashlib

from remit.gateway import outcome as words
from remit.models import thread as shortening
from remit.models.message import user


def test_the_words_stay_as_they_are_recorded() -> None:
    """A job that was parked asks its questions again from the record: in other words, they are other questions.

    Before you change one, see that jobs which recorded the old one go on, for example by asking which one they have.
    """
    told = {name: text for name, text in vars(words).items() if name.isupper() and isinstance(text, str) and text}
    told |= {name: text for name, text in vars(shortening).items() if name.isupper() and isinstance(text, str) and text}
    digests = {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in sorted(told.items())}
    assert digests == {
        "BRIEF": "4432f385e9da",
        "CONTINUE": "0dff953fd10c",
        "CUT_SHORT": "05ff6a39545b",
        "DENIED": "4a2f8851c29b",
        "HAPPENED": "b0e6718e72dc",
        "HEAD": "6ea5b2b6e3a9",
        "NOT_OFFERED": "3e998785e921",
        "REFUSED": "40af4e198a97",
        "REPEATED": "79e49b02d111",
        "STOPPED": "2b3651773bcd",
        "TOO_OFTEN": "dd4682c29d8a",
        "UNANSWERED": "2fbde4fce883",
        "UNKNOWN": "270de5c6404b",
        "UNTRUSTED": "985f5e64c73b",
    }
    assert shortening.is_brief(user(shortening.BRIEF))
