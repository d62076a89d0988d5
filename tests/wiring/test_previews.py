"""Every tool of ours that writes or runs something shows, before it is approved, what a call would do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remit import Remit
from remit.canonical import sha256
from remit.service.job_tools import JobsProvider
from remit.settings import load
from remit.tools.meta import Level
from remit.tools.provider import Previews, ToolProvider

TEXT = "one\ntwo\n"
EDIT = [{"search": "two", "replace": "2"}]
CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "browser.navigate": ({"url": "https://shop.example/"}, "Opens https://shop.example/ in the browser"),
    "browser.click": ({"ref": "p1:e4"}, "Clicks p1:e4 of the page"),
    "browser.type": ({"ref": "p1:e4", "text": "lamp"}, "Types into p1:e4"),
    "browser.select": ({"ref": "p1:e4", "options": ["blue"]}, "Chooses ['blue'] in p1:e4"),
    "browser.press": ({"key": "Enter"}, "Presses Enter"),
    "browser.snapshot": ({}, ""),
    "browser.wait_for": ({}, ""),
    "browser.screenshot": ({}, ""),
    "browser.extract": ({}, ""),
    "browser.close": ({}, ""),
    "doc.apply_edit": ({"path": "a.md", "sha256": sha256(TEXT.encode()), "edits": EDIT}, "Edits a.md: 2 lines"),
    "doc.undo_edit": ({"path": "a.md", "sha256": sha256(TEXT.encode()), "back_to": sha256(b"old\n")}, "Edits a.md"),
    "fs.edit": ({"path": "a.md", "edits": EDIT}, "Edits a.md"),
    "fs.write": ({"path": "b.md", "content": "x"}, "Creates b.md, 1 line."),
    "sandbox.write_files": ({"files": [{"path": "m.py", "text": "12"}]}, "below /workspace: m.py (2 bytes)."),
    "sandbox.exec": (
        {"command": ["python", "my file.py"], "policy": {"limits": {"wall_ms": 5_000}}},
        "Runs python 'my file.py' in the sandbox, with 5 s and 1024 MB at most, without a network.",
    ),
    "sandbox.collect": ({"paths": ["*.png"]}, "Takes '*.png' out of the sandbox's workspace"),
    "job.cancel": ({"job": "job_1"}, "Asks job_1 to stop; it is not there."),
}
"""A call of each tool, and what its preview says of it."""


async def test_every_tool_of_ours_that_is_not_read_only_has_a_preview(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(TEXT)
    kept = tmp_path / ".remit/undo"
    settings = load(cwd=tmp_path, file=None, env={}, flags={"journal.url": ":memory:", "fs.roots": [str(tmp_path)]})
    async with Remit(settings=settings) as remit:
        jobs = JobsProvider(remit.service, ["*"])
        providers: dict[str, ToolProvider] = {one.provider_id: one for one in remit.runtime.providers}
        providers[jobs.provider_id] = jobs
        undo: Any = providers["doc"]
        undo._provider()._editing._contents.put(f"{tmp_path.resolve()}/a.md", b"old\n")
        assert kept.is_dir()
        previewed = set()
        for provider in providers.values():
            for meta in await provider.list_tools():
                if meta.capability_level is Level.L0 and not meta.side_effects:
                    continue
                assert isinstance(provider, Previews), f"{meta.name}: {provider.provider_id} previews nothing"
                starts = meta.name.startswith("recipe.")
                args, words = ({}, "Starts a job of the recipe ") if starts else CALLS[meta.name]
                preview = await provider.preview(meta.name, args)
                assert preview is not None, f"{meta.name} has no preview"
                assert preview.what
                assert words in preview.what, f"{meta.name}: {preview.what}"
                previewed.add(meta.name)
        assert previewed >= CALLS.keys()
        assert "recipe.edit_docs" in previewed
        assert (tmp_path / "a.md").read_text() == TEXT
