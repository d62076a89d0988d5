"""Addresses, DNS answers, robots files and bodies made to harm: a row each, with what has to become of it."""

from __future__ import annotations

import gzip
import zlib
from typing import Final, NamedTuple

from remit.codes import Code

SSRF, DNS = Code.ssrf_blocked, Code.dns_failed

BLOCKED: Final[list[str]] = """
127.0.0.1 127.0.0.1:8080 127.1 127.255.255.254 0 0.0.0.0 0.0.0.1 2130706433 0x7f000001 0x7f.1 017700000001 0177.0.0.1
0x7f.0x0.0x0.0x1 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 169.254.169.254
169.254.0.1 2852039166 0xa9fea9fe 0251.0376.0251.0376 100.64.0.1 100.100.100.200 100.127.255.255 168.63.129.16
192.0.0.192 192.0.0.1 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.175.48.1 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 [::] [::1] [::ffff:127.0.0.1]
[::ffff:10.0.0.1] [::ffff:169.254.169.254] [::ffff:7f00:1] [::127.0.0.1] [::a9fe:a9fe] [64:ff9b::7f00:1]
[64:ff9b::10.0.0.1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2002:a9fe:a9fe::] [2001::1] [2001:0:7f00:1::] [2001:db8::1]
[2001:10::1] [2001:20::1] [3fff::1] [5f00::1] [100::1] [fc00::1] [fd00:ec2::254] [fd00::1] [fe80::1] [fe80::5efe:7f00:1]
[feb0::1] [fec0::1] [ff02::1] [ff0e::1] [2606:4700::5efe:7f00:1] [2606:4700::200:5efe:a00:1] [2620:4f:8000::1]
[4000::1] localhost localhost:6379 localhost.
""".split()  # noqa: SIM905 - eighty strings would fill the page
"""Hosts, with ports, that lead to private, reserved or metadata addresses."""

INVALID: Final = (
    "", "/", "//", "http://", "http:///x", "https://", "file:///etc/passwd", "file://127.0.0.1/etc/passwd",
    "ftp://8.8.8.8/", "gopher://8.8.8.8:70/_x", "dict://8.8.8.8:2628/", "ldap://8.8.8.8/", "javascript:alert(1)",
    "data:text/html,x", "jar:http://8.8.8.8!/", "ws://8.8.8.8/", "view-source:http://8.8.8.8/", "8.8.8.8", "//8.8.8.8/",
    "http:8.8.8.8", "http:/8.8.8.8", "http://user@8.8.8.8/", "http://user:pw@8.8.8.8/", "http://@8.8.8.8/",
    "http://8.8.8.8@127.0.0.1/", "http://127.0.0.1@8.8.8.8/", "http://8.8.8.8\\@127.0.0.1/", "http://8.8.8.8\\.evil/",
    "http://8.8.8.8:22/", "http://8.8.8.8:25/", "http://8.8.8.8:0/", "http://8.8.8.8:99999/", "http://8.8.8.8:x/",
    "http://8.8.8.8:-80/", "http://8.8.8.8:445/", "http://[::1/", "http://::1/", "http://[fe80::1%25eth0]/",
    "http://exa mple.org/", "http://8.8.8.8/\r\nHost: evil", "http://8.8.8.8/\x00", "http://8.8.8.8/a\tb",
    "http://8.8.8.8\x7f/", "http://.../", "http://..example/", "http://exa\x00mple/",
    "http://" + "a" * 64 + ".example/", "http://" + "a." * 200 + "example/",
    "http://8.8.8.8/" + "a" * 3_000, "http://[v1.x]/", "http://[8.8.8.8]/",
)  # fmt: skip
"""Texts that are no address of the web, or not one that every client reads alike."""

ANSWERS: Final[tuple[tuple[tuple[str, ...], Code], ...]] = (
    ((), DNS),
    (("10.0.0.1",), SSRF), (("8.8.8.8", "10.0.0.1"), SSRF), (("10.0.0.1", "8.8.8.8"), SSRF),
    (("8.8.8.8", "::1"), SSRF), (("2606:4700::1111", "fe80::1%eth0"), SSRF), (("::ffff:127.0.0.1",), SSRF),
    (("169.254.169.254",), SSRF), (("168.63.129.16",), SSRF), (("fd00:ec2::254",), SSRF), (("100.64.0.1",), SSRF),
    (("64:ff9b::a9fe:a9fe",), SSRF), (("2002:a00:1::",), SSRF), (("2001:0:a00:1::",), SSRF), (("0.0.0.1",), SSRF),
    (("not-an-address",), SSRF), (("",), SSRF), (("127.0.0.1",) * 50, SSRF), (("8.8.8.8",) * 20 + ("127.0.0.1",), SSRF),
    (("255.255.255.255",), SSRF), (("224.0.0.251",), SSRF), (("::",), SSRF), (("0x7f.1",), SSRF),
    (("2130706433",), SSRF),
    (("192.168.1.1", "192.168.1.2"), SSRF), (("fec0::1",), SSRF), (("2606:4700::5efe:a00:1",), SSRF),
    (("192.0.0.192",), SSRF),
)  # fmt: skip
"""What a name server says of a public name."""


class Robots(NamedTuple):
    """A robots file and a path."""

    text: bytes
    path: str
    allowed: bool


_STAR: Final = b"User-agent: *\n"
ROBOTS: Final = (
    Robots(b"", "/a", True),
    Robots(_STAR + b"Disallow: /", "/a", False),
    Robots(_STAR + b"Disallow:", "/a", True),
    Robots(b"\xef\xbb\xbf" + _STAR + b"Disallow: /", "/a", False),
    Robots((_STAR + b"Disallow: /").replace(b"\n", b"\r\n"), "/a", False),
    Robots((_STAR + b"Disallow: /").replace(b"\n", b"\r"), "/a", False),
    Robots(b"user-AGENT : *\ndisALLOW : /", "/a", False),
    Robots(b"User-agent: remit\nDisallow: /", "/a", False),
    Robots(b"User-agent: REMIT/9.9\nDisallow: /", "/a", False),
    Robots(b"User-agent: remitbot\nDisallow: /", "/a", True),
    Robots(b"User-agent: Googlebot\nDisallow: /\n\n" + _STAR + b"Allow: /", "/a", True),
    Robots(b"User-agent: remit\nAllow: /\n\n" + _STAR + b"Disallow: /", "/a", True),
    Robots(b"User-agent: remit\nUser-agent: other\nDisallow: /", "/a", False),
    Robots(_STAR + b"Crawl-delay: 1\nDisallow: /", "/a", False),
    Robots(_STAR + b"Noindex: /x\nDisallow: /", "/a", False),
    Robots(_STAR + b"Sitemap: https://a.example/s.xml\nDisallow: /", "/a", False),
    Robots(_STAR + b"# words\nDisallow: /a # words", "/a", False),
    Robots(_STAR + b"Disallow: /a$", "/a", False),
    Robots(_STAR + b"Disallow: /a$", "/ab", True),
    Robots(_STAR + b"Disallow: /*.pdf", "/x/y.pdf?z", False),
    Robots(_STAR + b"Disallow: /a/*/c", "/a/b/c", False),
    Robots(_STAR + b"Disallow: /\nAllow: /a", "/a", True),
    Robots(_STAR + b"Allow: /a\nDisallow: /ab", "/abc", False),
    Robots(_STAR + b"Disallow: /%61", "/a", False),
    Robots(_STAR + "Disallow: /\u00e4".encode(), "/%C3%A4", False),
    Robots(_STAR + b"Disallow: /" + b"*" * 5_000 + b"z", "/" + "a" * 1_500, True),
    Robots(_STAR + b"Disallow: /" + b"*a" * 500 + b"$", "/" + "a" * 1_500 + "b", True),
    Robots((_STAR + b"Disallow: /x\n") * 3_000, "/x", False),
    Robots(b"\x00" * 1_000 + b"\n" + _STAR + b"Disallow: /", "/a", False),
    Robots(b"\xff\xfe\xfd\n" + _STAR + b"Disallow: /\xff", "/a", True),
    Robots(b"<!doctype html><html>Disallow: /</html>", "/a", True),
    Robots(_STAR + b"Disallow", "/a", True),
    Robots(_STAR + b"Disallow /", "/a", True),
    Robots(b"Disallow: /\n" + _STAR, "/a", True),
    Robots(b"x" * 100_000, "/a", True),
)
"""What sites say to robots, and what that means (RFC 9309)."""


class Body(NamedTuple):
    """An answer of a server, as bytes on the wire after the status line; and what has to become of it."""

    name: str
    head: bytes
    data: bytes
    cause: Code | None = None
    """None: it is read, whole or cut."""
    truncated: bool = False


_CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
_GZIP: Final = b"Content-Encoding: gzip\r\n"


def _deflated(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(data) + deflate.flush()


def _pieces(*pieces: bytes, end: bool = True) -> bytes:
    framed = b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces)
    return framed + (b"0\r\n\r\n" if end else b"")


LIMIT: Final = 200_000
"""Bytes of a decoded body that the fetcher of the table reads."""
_ZEROS: Final = b"\0" * 20_000_000
_PARSE, _BROKEN = Code.parse_failed, Code.NetworkError
BODIES: Final = (
    Body("as it should be", b"", b"hello"),
    Body("gzip bomb", _GZIP, gzip.compress(_ZEROS), truncated=True),
    Body("gzip bomb of a thousand members", _GZIP, gzip.compress(b"\0" * 20_000) * 1_000, truncated=True),
    Body("gzip bomb within gzip", _GZIP, gzip.compress(gzip.compress(_ZEROS))),
    Body("gzip without an end", _GZIP, gzip.compress(b"words " * 5_000)[:-20]),
    Body("gzip without its checksum", _GZIP, gzip.compress(b"hello")[:-8]),
    Body("gzip with a wrong checksum", _GZIP, gzip.compress(b"hello")[:-8] + b"\1" * 8, _PARSE),
    Body("gzip that is none", _GZIP, b"hello, I am text", _PARSE),
    Body("gzip and then text", _GZIP, gzip.compress(b"hello") + b"and then text"),
    Body("empty gzip", _GZIP, b""),
    Body("deflate bomb", b"Content-Encoding: deflate\r\n", zlib.compress(_ZEROS), truncated=True),
    Body("raw deflate bomb", b"Content-Encoding: deflate\r\n", _deflated(_ZEROS), truncated=True),
    Body("brotli that nobody asked for", b"Content-Encoding: br\r\n", b"\x0b\x02\x80hello\x03", _PARSE),
    Body("two encodings", b"Content-Encoding: gzip, gzip\r\n", gzip.compress(gzip.compress(_ZEROS)), _PARSE),
    Body("an encoding with a control character", b"Content-Encoding: gz\x01ip\r\n", b"hello", _PARSE),
    Body("too long", b"", b"x" * 300_000, truncated=True),
    Body("chunks of one byte", _CHUNKED, _pieces(*[b"x"] * 5_000)),
    Body("chunks that do not end", _CHUNKED, _pieces(b"hello", end=False), _BROKEN),
    Body("a chunk of a wrong size", _CHUNKED, b"ffffffff\r\nhello", _BROKEN),
    Body("a chunk of no size", _CHUNKED, b"zz\r\nhello\r\n0\r\n\r\n", _BROKEN),
    Body("a chunk of a negative size", _CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n", _BROKEN),
    Body("chunks and a length", _CHUNKED + b"Content-Length: 3\r\n", _pieces(b"hello"), _BROKEN),
    Body("a length that is too long", b"Content-Length: 50\r\n", b"hello", _BROKEN),
    Body("a length that is too short", b"Content-Length: 2\r\n", b"hello", _BROKEN),
    Body("a negative length", b"Content-Length: -2\r\n", b"hello", _BROKEN),
    Body("a length that is no number", b"Content-Length: many\r\n", b"hello", _BROKEN),
    Body("two lengths", b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello!", _BROKEN),
    Body("a header of 100 kB", b"X-Long: " + b"a" * 100_000 + b"\r\n", b"hello", _BROKEN),
    Body("a header without a name", b": x\r\n", b"hello", _BROKEN),
    Body("a header over two lines", b"X-A: b\r\n c\r\n", b"hello"),
    Body("a header with a NUL", b"X-A: b\0c\r\n", b"hello", _BROKEN),
    Body("a header that is no text", b"X-A: \xff\xfe\r\n", b"hello"),
    Body("a redirect to nothing", b"Location: \r\n", b"hello"),
    Body("no body at all", b"Content-Length: 0\r\n", b""),
)
"""What servers send."""
