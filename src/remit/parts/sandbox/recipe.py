"""The recipe run_code_snippet: code in, its output and its files out, and nothing else touched."""

from __future__ import annotations

from typing import Any, Final

from remit.jobs.recipe import recipe
from remit.jobs.run import Run

_FILES: Final = {"python": "main.py", "node": "main.js", "bash": "main.sh", "ruby": "main.rb", "perl": "main.pl"}


@recipe("run_code_snippet", version="1")
async def run_code_snippet(
    run: Run,
    language: str,
    code: str,
    files: dict[str, str] | None = None,
    stdin: str = "",
    args: list[str] | None = None,
    timeout_ms: int = 0,
) -> dict[str, Any]:
    """Run `code` in the sandbox, beside `files` (texts by path), and take what it leaves in its workspace.

    `language` is the name of an allowed command (`sandbox.commands`). Returns {status: SUCCEEDED, FAILED or TIMEOUT,
    exit_code, signal, limit, stdout, stderr, artifacts [{path, bytes, sha256, media_type}], left_out [{path, why}],
    receipt}. Code that fails is a result like any other; the job fails only if it cannot be run.
    """
    main = _FILES.get(language, "main")
    texts = {**(files or {}), main: code}
    run.progress("writing files")
    await run.call("sandbox.write_files", {"files": [{"path": path, "text": text} for path, text in texts.items()]})
    run.progress(f"running {language}")
    exec_args: dict[str, Any] = {"command": [language, main, *(args or [])], "stdin": stdin}
    if timeout_ms:
        exec_args["policy"] = {"limits": {"wall_ms": timeout_ms}}
    ran = (await run.call("sandbox.exec", exec_args)).value
    paths = [file["path"] for file in ran["files"] if file["change"] != "deleted"]
    taken: dict[str, Any] = {"artifacts": [], "left_out": []}
    if paths or ran["more_files"]:
        run.progress("collecting files")
        taken = (await run.call("sandbox.collect", {"paths": paths if not ran["more_files"] else []})).value
    fields = ("status", "exit_code", "signal", "limit", "stdout", "stderr", "truncated", "lossy", "restored", "receipt")
    return {**{name: ran[name] for name in fields}, **{name: taken[name] for name in ("artifacts", "left_out")}}
