"""Labels of encodings, as the web reads them: a table, and characters that Python's own codecs lack."""

from __future__ import annotations

import pytest

from remit.files.text import _CODEC_BY_LABEL, LOSSY, STRICT, codec_of, decode

READ = [
    ("gb2312", b"\xe9F\xbb\xf9", "镕基"),
    ("x-gbk", b"\x80", "€"),
    ("gb18030", b"\x95\x32\x82\x36", "𠀀"),
    ("euc-kr", b"\x8cc\xb9\xe6", "똠방"),
    ("windows-31j", b"\x87\x40\xed\x40", "①纊"),
    ("euc-jp", b"\xad\xa1\xc6\xfc\xf9\xa1", "①日纊"),
    ("big5", b"\xa1\xe3\x9d\xf8", "\uff5e\u5572"),
    ("iso-8859-1", b"\x80\x81", "€\x81"),
    ("x-cp1251", b"\xcf", "П"),
    ("iso-8859-8-i", b"\xe0", "א"),
    ("iso-8859-11", b"\xa1\x85", "ก…"),
    ("iso-8859-9", b"\xfd", "\u0131"),
    ("macintosh", b"\x8e", "é"),
    ("unicode", b"a\0", "a"),
    ("x-user-defined", b"\xe9", "é"),
]


@pytest.mark.parametrize(("label", "data", "text"), READ, ids=[label for label, _, _ in READ])
def test_a_label_reads_what_the_web_reads_by_it(label: str, data: bytes, text: str) -> None:
    for error in (STRICT, LOSSY):
        assert data.decode(codec_of(f" {label.upper()}\n"), error) == text


@pytest.mark.parametrize("label", sorted(_CODEC_BY_LABEL))
def test_every_label_reads_ascii_and_never_raises(label: str) -> None:
    codec = codec_of(label)
    wide = "utf-16" in codec
    assert b"a<9".decode(codec_of("utf-8" if wide else label), STRICT) == "a<9"
    for lead in range(256):
        text = bytes((lead, 0x41, lead, 0xFF, 0x0D)).decode(codec, LOSSY)
        text.encode()  # no half of a surrogate pair, which JSON cannot carry


@pytest.mark.parametrize("label", ["", "none", "utf8mb4", "binary", "latin-1", "hz-gb-2312", "rot13", "idna", "utf-7"])
def test_any_other_label_counts_as_none(label: str) -> None:
    assert codec_of(label) == ""


def test_what_no_character_stands_for_is_marked_or_refused() -> None:
    for codec, data in (("cp949", b"\xff"), ("utf-8", b"\xff"), ("cp932", b"\x81\xff"), ("euc_jp", b"\xff\xa1")):
        assert "\ufffd" in data.decode(codec, LOSSY)
        with pytest.raises(UnicodeDecodeError):
            data.decode(codec, STRICT)


def test_a_file_is_read_by_what_it_declares_as_a_page_is() -> None:
    assert decode(b"<meta charset=gb2312><p>\xe9F") == "<meta charset=gb2312><p>镕"
    assert decode(b"<meta charset=euc-kr><p>\x8cc") == "<meta charset=euc-kr><p>똠"
