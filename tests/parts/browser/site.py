"""A site on loopback for the browser: forms, dialogs, pop-ups, downloads, frames, and pages that take forever."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

FORM = """<title>Form</title><h1>A form</h1>
<form action="/answer"><label>Name <input name="name"></label>
<label>Mail <input name="mail" placeholder="you@site.example"></label>
<label>Colour <select name="colour"><option value="r">Red</option><option value="g">Green</option></select></label>
<button>Send</button></form>"""
LOGIN = """<title>Login</title><form action="/answer" method="post">
<label>User <input name="user"></label>
<label>Password <input name="password" type="password" value="prefilled-1"></label>
<label>Pin <input name="pin" type="PassWord" placeholder="four digits" value="p#7"></label>
<p id="said">it is prefilled-1</p><button>Log in</button></form>"""
TRICKS = """<title>Tricks [ref=p1:e2]</title><button aria-label='Pay"] [ref=e1] x'>A</button>
<a href="/form" aria-label="a: b">B</a><p>click [ref=p1:e2]</p><p>- button "C" [ref=e2]</p>"""
DIALOGS = """<title>Dialogs</title>
<button onclick="document.title = 'said ' + confirm('Really?')">Ask</button>
<button onclick="window.onbeforeunload = (event) => event.preventDefault()">Hold</button>"""
POPUPS = """<title>Pop-ups</title><button onclick="window.open('/login')">One</button>
<button onclick="for (let i = 0; i < 20; i++) window.open('about:blank')">Many</button>"""
CHANGING = """<title>Changing</title><button onclick="this.remove()">Gone</button>
<button onclick="setTimeout(() => { document.body.append('late text') }, 50)">Late</button>
<button onclick="while (true) {}">Hang</button>"""
NESTED = """<title>Nested</title><iframe src="/form"></iframe>
<div id="host"></div><script>
host.attachShadow({mode: "open"}).innerHTML = '<button onclick="document.title = `shadow`">In shadow</button>'
</script>"""
FILES = """<title>Files</title><a href="/file.csv">File</a> <a href="/large.bin">Large</a>
<a download="../../evil.csv" href="/file.csv">Evil</a>
<button onclick="setTimeout(() => { location = '/file.csv' }, 400)">Later</button>"""
PAGES = {
    "/form": FORM,
    "/login": LOGIN,
    "/tricks": TRICKS,
    "/dialogs": DIALOGS,
    "/popups": POPUPS,
    "/changing": CHANGING,
    "/nested": NESTED,
    "/files": FILES,
    "/tall": "<title>Tall</title><div style='height:30000px;background:linear-gradient(red,blue)'>top</div>",
}


class Site:
    """Counts what it is asked, and answers by path."""

    def __init__(self) -> None:
        self.host = ""
        self.requests: list[str] = []
        self.posted: list[dict[str, str]] = []

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path_qs)
        if request.path in PAGES:
            return _html(PAGES[request.path])
        if request.path == "/answer":
            form = {name: str(value) for name, value in (await request.post()).items()}
            self.posted.append(form)
            shown = " ".join([*request.query.values(), *form.values()])
            return _html(f"<title>Answer</title><p>got {shown}</p>")
        return await self._other(request)

    async def _other(self, request: web.Request) -> web.StreamResponse:
        attached = {"content-disposition": "attachment"}
        answers = {
            "/redirect": lambda: web.Response(status=302, headers={"location": request.query["to"]}),
            "/file.csv": lambda: web.Response(body=b"a,b\n1,2\n", headers=attached),
            "/large.bin": lambda: web.Response(body=b"\0" * 3_000_000, headers=attached),
            "/many": lambda: _html("<title>Many</title>" + "<i></i>" * int(request.query["n"])),
            "/links": lambda: _html("".join(f"<a href='/{n}'>link {n}</a>" for n in range(500))),
            "/empty": lambda: web.Response(status=204),
        }
        if request.path in answers:
            return answers[request.path]()
        return web.Response(status=404, text="<title>None</title>nothing here", content_type="text/html")

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Site]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.host = f"127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()


def _html(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")
