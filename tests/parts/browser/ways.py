"""Ways by which a page reaches out. `URL` stands for the address that is tried, `HOST` for its host and port."""

from __future__ import annotations

from typing import Final

ELEMENTS: Final = {
    "image": "<img src='URL'>",
    "frame": "<iframe src='URL'></iframe>",
    "style sheet": "<link rel=stylesheet href='URL'>",
    "style's image": "<div style='background:url(URL);height:9px'>.</div>",
    "font": "<style>@font-face{font-family:f;src:url(URL)}</style><p style='font-family:f'>x</p>",
    "preload": "<link rel=preload as=script href='URL'>",
    "prefetch": "<link rel=prefetch href='URL'>",
    "preconnect": "<link rel=preconnect href='URL'>",
    "DNS prefetch": "<link rel=dns-prefetch href='URL'>",
    "icon": "<link rel=icon href='URL'>",
    "script": "<script src='URL'></script>",
    "module": "<script type=module src='URL'></script>",
    "object": "<object data='URL'></object>",
    "video": "<video src='URL' preload=auto></video>",
    "frame of a data: page": "<iframe src=\"data:text/html,<img src='URL'>\"></iframe>",
    "frame of a srcdoc page": "<iframe srcdoc=\"<img src='URL'>\"></iframe>",
    "image by a redirect": "<img src='/redirect?to=URL'>",
    "speculation rules": '<script type=speculationrules>{"prefetch":[{"urls":["URL"]}]}</script>',
    "form in a frame": "<iframe name=t></iframe><form id=f target=t action='URL'></form><script>f.submit()</script>",
}
"""Markup."""
SCRIPTS: Final = {
    "fetch": "fetch('URL', {mode: 'no-cors'})",
    "fetch by a redirect": "fetch('/redirect?to=URL', {mode: 'no-cors'})",
    "XMLHttpRequest": "until((end, x = new XMLHttpRequest()) => { x.onloadend = end; x.open('GET', 'URL'); x.send() })",
    "WebSocket": "until((end) => { new WebSocket('ws://HOST').onclose = end })",
    "EventSource": "until((end, e = new EventSource('URL')) => { e.onerror = () => end(e.close()) })",
    "beacon": "navigator.sendBeacon('URL', 'x')",
    "worker": "until((end) => { new Worker(code('FETCH.finally(() => postMessage(1))')).onmessage = end })",
    "shared worker": "until((end) => { new SharedWorker(code("
    "'onconnect = (e) => FETCH.finally(() => e.ports[0].postMessage(1))')).port.onmessage = end })",
    "service worker": "navigator.serviceWorker.register('/worker.js?URL').then(() => navigator.serviceWorker.ready)",
    "STUN": "connect({urls: 'stun:HOST'})",
    "TURN over TCP": "connect({urls: 'turn:HOST?transport=tcp', username: 'u', credential: 'c'})",
    "WebTransport": "new WebTransport('https://HOST/').ready",
    "window": "window.open('URL')",
    "image of a script": "until((end, i = new Image()) => { i.onerror = end; i.src = 'URL' })",
}
"""JavaScript that gives a promise, or nothing; `FETCH` stands for a fetch of the address in a text."""
PAGES: Final = {
    "meta refresh": "<meta http-equiv=refresh content='0;url=URL'>",
    "location": "<script>location = 'URL'</script>",
    "form": "<form action='URL' method=post></form><script>document.forms[0].submit()</script>",
    "link": "<a href='URL' rel=noopener id=a>x</a><script>a.click()</script>",
}
"""Whole pages that go elsewhere."""
QUIET: Final = frozenset(
    {"preconnect", "DNS prefetch", "speculation rules", "STUN", "WebTransport", "icon", "TURN over TCP"}
)
"""Those of which the proxy need not hear: the browser does not even try them, or tries them without a proxy in vain."""
_TOOLS: Final = """
const until = (begin) => new Promise((end) => begin(end));
const code = (text) => window.URL.createObjectURL(new Blob([text]));
const connect = (server) => new Promise((end) => {
  const peer = new RTCPeerConnection({iceServers: [server]});
  peer.createDataChannel('x');
  peer.onicegatheringstatechange = () => peer.iceGatheringState == 'complete' && end();
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
});
"""


def page(places: dict[str, str]) -> str:
    """A page that tries every element and script; `places` are hosts and ports by the name of the way."""
    elements = "".join(_filled(text, places[name]) for name, text in ELEMENTS.items())
    scripts = ",\n".join(f"() => {_filled(text, places[name])}" for name, text in SCRIPTS.items())
    return f"""<title>Ways</title>{elements}<script>{_TOOLS}
const within = (work) => Promise.race([work, new Promise((end) => setTimeout(end, 1500))]).catch(() => 0);
const all = [{scripts}].map((one) => {{ try {{ return within(one()) }} catch (error) {{ return 0 }} }});
Promise.all(all).then(() => document.body.append('all was tried'));
</script>"""


def single(name: str, place: str) -> str:
    """A page that goes elsewhere."""
    return f"<title>{name}</title>{_filled(PAGES[name], place)}"


def _filled(text: str, place: str) -> str:
    text = text.replace("FETCH", 'fetch("URL", {mode: "no-cors"})')
    return text.replace("URL", f"http://{place}/").replace("HOST", place)
