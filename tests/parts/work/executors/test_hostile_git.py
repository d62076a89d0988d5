"""What a repository, a checkout or a run names is never started by Remit's git, and decides nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.work.executors.worktree import Worktree
from remit.parts.work.order import Command, Constraints
from remit.parts.work.outbox.remote import GitRemote
from remit.parts.work.workflow import OutboxTable
from remit.process.git import git_on, reason
from tests.parts.work.executors.repository import RUN, git, make_repository, script
from tests.parts.work.executors.test_adapter import Bench

PROVED: Final = Constraints(commands=(Command(args=("sh", "-c", "grep -qr pass . || grep -q pass ~/proof")),))


class Trap:
    """A repository, a checkout of a run in it, and a file that stands for a program that was started."""

    def __init__(self, place: Path) -> None:
        self.repository = make_repository(place / "repo")
        head = git(self.repository, "rev-parse", "HEAD")
        git(self.repository, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
        git(self.repository, "commit", "--quiet", "--message", "sub")
        self.tree = Worktree(self.repository, place / "tree", "run/1/1")
        self.caught = place / "caught"
        self.word = f"touch {self.caught}; cat"

    def config(self, *words: str) -> None:
        """Set something in the repository's own settings."""
        git(self.repository, "config", *words)

    def below(self, text: str, folder: str = ".") -> None:
        """Have a program of the run do something in its checkout."""
        subprocess.run(["/bin/sh", "-c", text], cwd=self.tree.folder / folder, check=True, capture_output=True)

    async def work(self) -> None:
        """Do all that Remit does with the checkout of a run."""
        await self.tree.look()
        await self.tree.snapshot("Up to now")
        await self.tree.settle("Work")
        await self.tree.changed("main")
        await self.tree.patch("main", self.caught.with_name("patch"))
        await self.tree.proof.create(await self.tree.head())
        await self.tree.proof.remove()
        await self.tree.remove(self.caught.with_name("kept"))


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def _own_repository(trap: Trap, folder: str, attributes: str = ".gitattributes") -> None:
    make = "git init -q .; echo q > q; git add q; git -c user.name=a -c user.email=b commit -qm q; "
    filters = f"git config filter.e.process '{trap.word}'; git config filter.e.clean '{trap.word}'; "
    monitor = f"git config core.fsmonitor '{trap.word}'; echo '* filter=e' > {attributes}; echo w > q"
    trap.below(make + filters + monitor, folder)


def _by_files(trap: Trap) -> None:
    """Make a repository of files alone, as tools for files can."""
    place = trap.tree.folder / "sub" / ".git"
    for folder in ("objects", "refs/heads"):
        (place / folder).mkdir(parents=True)
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    (place / "refs" / "heads" / "main").write_text(git(trap.repository, "rev-parse", "HEAD") + "\n")
    (place / "config").write_text(f"[core]\n\tfsmonitor = {trap.word}\n[include]\n\tpath = ../../more\n")
    (trap.tree.folder / "more").write_text(f'[filter "e"]\n\tclean = {trap.word}\n')


def _redirected(trap: Trap) -> None:
    """Lead git from the checkout to a repository of the run's own."""
    trap.below("rm .git; git init -q own; cd own && echo q > q && git add q", ".")
    trap.below(f"git config core.fsmonitor '{trap.word}'; git config filter.e.clean '{trap.word}'", "own")
    (trap.tree.folder / ".git").write_text("gitdir: own/.git\n")
    (trap.tree.folder / ".gitattributes").write_text("* filter=e\n")


def _half_a_filter(trap: Trap) -> None:
    """Have the attributes name every program that the repository knows."""
    for name in ("clean", "smudge", "process"):
        trap.config(f"filter.e.{name}", trap.word)
    trap.config("diff.e.textconv", trap.word)
    trap.config("diff.e.command", trap.word)
    trap.config("merge.e.driver", trap.word)
    (trap.tree.folder / ".gitattributes").write_text("* filter=e diff=e merge=e\n")


TRAPS: Final[dict[str, Callable[[Trap], None]]] = {
    "a submodule that is a repository of the run": lambda trap: _own_repository(trap, "sub"),
    "its attributes beside it": lambda trap: _own_repository(trap, "sub", ".git/info/attributes"),
    "a submodule made of files alone": _by_files,
    "a redirected checkout": _redirected,
    "attributes, and filters in the repository's settings": _half_a_filter,
}


@pytest.mark.slow
@pytest.mark.parametrize("set_up", TRAPS.values(), ids=TRAPS)
async def test_nothing_that_a_run_wrote_is_started(trap: Trap, set_up: Callable[[Trap], None]) -> None:
    await trap.tree.create("main")
    set_up(trap)
    (trap.tree.folder / "clock.txt").write_text("mended\n")
    await trap.work()
    assert not trap.caught.exists()
    assert git(trap.repository, "show", "run/1/1:clock.txt") == "mended"


SETTINGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "filters": (("filter.e.smudge", "{word}"), ("filter.e.clean", "{word}"), ("filter.e.process", "{word}")),
    "a monitor": (("core.fsmonitor", "{word}"),),
    "hooks": (("core.hooksPath", "{hooks}"),),
    "a pager, an editor, a helper": (
        ("core.pager", "{word}"),
        ("core.editor", "{word}"),
        ("credential.helper", "!{word}"),
    ),
    "signatures": (("log.showSignature", "true"), ("gpg.program", "{program}"), ("commit.gpgSign", "true")),
    "drivers": (("diff.external", "{program}"), ("diff.e.textconv", "{word}"), ("core.sshCommand", "{program}")),
    "a promisor": (
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ext::{program}"),
        ("protocol.ext.allow", "always"),
    ),
    "includes": (("include.path", "{more}"),),
    "other programs for a remote": (("remote.origin.uploadpack", "{program}"), ("remote.origin.url", "/nowhere")),
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
async def test_nothing_that_the_repository_names_is_started(
    trap: Trap, tmp_path: Path, settings: tuple[tuple[str, str], ...]
) -> None:
    (trap.repository / ".gitattributes").write_text("* filter=e diff=e\n")
    git(trap.repository, "add", ".gitattributes")
    git(trap.repository, "commit", "--quiet", "--message", "Attributes")
    program, hooks, more = tmp_path / "program", tmp_path / "hooks", tmp_path / "more"
    program.write_text(f"#!/bin/sh\n{trap.word}\nexit 1\n")
    program.chmod(0o755)
    hooks.mkdir()
    for name in (
        "post-checkout",
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "pre-push",
    ):
        (hooks / name).symlink_to(program)
    more.write_text(f'[core]\n\tfsmonitor = {program}\n[filter "e"]\n\tsmudge = {program}\n')
    for name, value in settings:
        trap.config(name, value.format(word=trap.word, program=program, hooks=hooks, more=more))
    await trap.tree.create("main")
    (trap.tree.folder / "clock.txt").write_text("mended\n")
    (trap.tree.folder / "new.txt").write_text("new\n")
    await trap.work()
    async with git_on(trap.repository) as run:
        assert not await run.commit_of("1234567890" * 4), "an object that is not here is fetched from nowhere"
    with pytest.raises(ProviderError):
        await GitRemote(trap.repository, OutboxTable(remote="origin"), {}).tip("main")
    assert not trap.caught.exists()


@pytest.mark.parametrize("url", ["evil.git", "./evil.git", "file://{repository}/evil.git", "{repository}/evil.git"])
async def test_a_remote_within_the_repository_brings_no_hooks(trap: Trap, url: str) -> None:
    git(trap.repository, "init", "--quiet", "--bare", "evil.git")
    hook = trap.repository / "evil.git" / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\n{trap.word}\n")
    hook.chmod(0o755)
    trap.config("remote.origin.url", url.format(repository=trap.repository))
    with pytest.raises(ProviderError) as refused:
        await GitRemote(trap.repository, OutboxTable(remote="origin"), {}).push("work", "HEAD")
    assert refused.value.cause is Code.permission_denied
    assert not trap.caught.exists()


HIDDEN: Final = {
    "notes of a tool": "mkdir .aider.x; echo pass > .aider.x/proof",
    "a file that is ignored": "echo proof > .gitignore; echo pass > proof",
    "a repository of its own": "git init -q own; echo pass > own/proof",
    "a submodule": "mkdir -p sub; echo pass > sub/proof",
    "excluded by the repository": "echo proof >> $(git rev-parse --git-common-dir)/info/exclude; echo pass > proof",
    "its home": "echo pass > ~/proof",
    "under a filter": "echo pass > a.bin",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
async def test_a_proof_that_no_commit_holds_proves_nothing(bench: Bench, text: str) -> None:
    result = await bench.run(script(f"echo mended > clock.txt; {text}"), PROVED)
    assert (result.status, result.result_code) == ("fail", "test_failed"), result.summary
    assert ("Left out of the commit: " in result.summary) == ("~" not in text), result.summary


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "echo pass > clock.txt; git update-index --skip-worktree clock.txt",
        "echo pass > clock.txt; git update-index --assume-unchanged clock.txt",
    ],
)
async def test_marks_in_the_index_of_a_run_hide_nothing(bench: Bench, text: str) -> None:
    result = await bench.run(script(text), PROVED)
    assert result.status == "ok", result.summary
    assert git(bench.repository, "show", f"{result.changes.commit}:clock.txt") == "pass"


@pytest.mark.slow
async def test_another_object_in_the_place_of_a_commit_proves_nothing(bench: Bench) -> None:
    text = "echo x > clock.txt; git commit -qam x; a=$(git rev-parse HEAD); echo pass > clock.txt; git commit -qam y; "
    result = await bench.run(script(f"{text} git replace $a HEAD; git reset -q $a; echo x > clock.txt"), PROVED)
    assert result.result_code == "test_failed"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    head = git(made.repository, "rev-parse", "HEAD")
    (made.repository / ".gitattributes").write_text("*.bin filter=lfs\n")
    git(made.repository, "add", ".gitattributes")
    git(made.repository, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    git(made.repository, "commit", "--quiet", "--message", "More")
    return made


LEFT: Final = {
    "own (a repository of its own)": "mkdir own; cd own; git init -q .; echo app > app.js; git add .; git commit -qm x",
    "sub (a submodule)": "echo app > sub/app.js",
    "a.bin (under the filter lfs, which is not run)": "echo app > a.bin",
    ".aider.x (notes of its tool)": "mkdir .aider.x; echo app > .aider.x/app.js",
}


@pytest.mark.slow
@pytest.mark.parametrize(("named", "text"), LEFT.items(), ids=LEFT)
async def test_what_is_left_out_is_named_and_kept(bench: Bench, tmp_path: Path, named: str, text: str) -> None:
    result = await bench.run(script(text))
    assert f"Left out of the commit: {named}." in result.summary
    assert result.status == ("ok" if "notes" in named else "blocked")
    assert not result.changes.commit
    tree = Worktree.of(bench.repository, bench.tree, bench.order().issue, RUN)
    await tree.remove(tmp_path / "kept")
    assert not bench.tree.exists()
    assert [path.read_text() for path in (tmp_path / "kept").rglob("a*") if path.is_file() and path.stat().st_size == 4]


_TWO: Final = "git checkout -qb o; echo a > clock.txt; git commit -qam a; git checkout -qB p HEAD~1; "
_CONFLICT: Final = f"{_TWO} echo b > clock.txt; git commit -qam b; "
HALF_DONE: Final = {
    "the lock index.lock": "> $(git rev-parse --git-dir)/index.lock",
    "the lock HEAD.lock": "> $(git rev-parse --git-dir)/HEAD.lock",
    "the lock refs/heads/own.lock": "> $(git rev-parse --git-common-dir)/refs/heads/own.lock",
    "the lock refs/heads/run/local%231": "cd $(git rev-parse --git-common-dir)/refs/heads/run/*; > $REMIT_RUN_ID.lock",
    "a merge that was not finished": f"{_CONFLICT} git merge o",
    "a rebase that was not finished": f"{_CONFLICT} git rebase o",
}


@pytest.mark.slow
@pytest.mark.parametrize(("named", "text"), HALF_DONE.items(), ids=HALF_DONE)
async def test_what_a_dead_program_left_half_done_is_cleared_and_said(bench: Bench, named: str, text: str) -> None:
    result = await bench.run(script(f"echo z > out.txt; {text}; exit 3"))
    assert named in result.summary, result.summary
    assert "could not be started" not in result.summary
    assert git(bench.repository, "show", f"{result.changes.commit}:out.txt") == "z"
    assert git(bench.tree, "status", "--porcelain") == ""
    tree = Worktree.of(bench.repository, bench.tree.with_name("second"), bench.order().issue, f"{RUN[:-1]}2")
    assert await tree.create(result.changes.commit) == result.changes.commit


@pytest.mark.slow
async def test_what_a_rebase_had_not_come_to_stays_on_a_branch(bench: Bench) -> None:
    more = "git checkout -qb o HEAD~1; echo b > clock.txt; git commit -qam b; git checkout -q -; "
    text = "echo a > clock.txt; git commit -qam a; echo z > z; git add z; git commit -qm z; "
    await bench.run(script(f"{text} {more.replace('HEAD~1', 'HEAD~2')} git rebase o; exit 3"))
    assert git(bench.repository, "show", f"run/local%231/{RUN}.before:z") == "z"


@pytest.mark.slow
async def test_the_locks_of_others_stay(bench: Bench) -> None:
    lock = bench.repository / ".git" / "refs" / "heads" / "theirs.lock"
    lock.touch()
    result = await bench.run(script("echo mended > clock.txt"))
    assert (result.status, "cleared" in result.summary) == ("ok", False)
    assert lock.exists()


@pytest.mark.slow
async def test_a_lock_that_a_process_holds_stays(bench: Bench) -> None:
    tree = Worktree.of(bench.repository, bench.tree, bench.order().issue, RUN)
    await tree.create("main")
    with (bench.repository / ".git" / "refs" / "heads" / "theirs.lock").open("w") as lock:
        assert (await tree.settle("Work")).cleared == ()
        assert Path(lock.name).exists()
    assert (await tree.settle("Work")).cleared == ("the lock refs/heads/theirs.lock",)


@pytest.mark.slow
async def test_a_checkout_that_the_repository_does_not_know_is_set_aside(bench: Bench) -> None:
    bench.tree.mkdir()
    (bench.tree / ".git").write_text("gitdir: /nowhere/.git/worktrees/x\n")
    (bench.tree / "old.txt").write_text("old\n")
    result = await bench.run(script("echo mended > clock.txt"))
    assert result.status == "ok", result.summary
    assert (bench.tree.with_name("tree.aside1") / "old.txt").read_text() == "old\n"
    assert b"tree.aside1" in bench.shown


async def test_a_checkout_moves_with_its_project(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "a")
    tree = Worktree(repository, repository / ".remit" / "trees" / "1" / "1", "run/1/1")
    start = await tree.create("main")
    repository.rename(tmp_path / "b")
    moved = Worktree(tmp_path / "b", tmp_path / "b" / ".remit" / "trees" / "1" / "1", "run/1/1")
    (moved.folder / "clock.txt").write_text("mended\n")
    assert await moved.create("main") == start
    await moved.settle("Work")
    assert git(moved.folder, "show", "HEAD:clock.txt") == "mended"


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (
            "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git seems to run.\nremove it.\n",
            ("/r/.git/index.lock", "remove the file if none is"),
        ),
        (
            "git-lfs filter-process: 1: git-lfs: not found\nfatal: the remote end hung up unexpectedly\n",
            ("git-lfs: not found", "fatal: the remote end", "Install git-lfs"),
        ),
        ("hint: x\nodd\n", ("odd",)),
        ("fatal: could not read from 'https://u:ghp_0123456789012345678901234567890123456@h/x'", ("fatal",)),
    ],
)
def test_the_reason_of_a_failed_git_is_what_tells(said: str, parts: tuple[str, ...]) -> None:
    why = reason(said)
    assert all(part in why for part in parts), why
    assert "ghp_" not in why
    assert "hint" not in why


@pytest.mark.slow
async def test_a_pack_of_a_project_that_was_there_before_gives_no_result(bench: Bench) -> None:
    first = await bench.run(script("echo mended > clock.txt; echo mine > ~/mine"))
    bench.tree.rename(bench.tree.with_name("gone"))
    git(bench.repository, "worktree", "prune")
    second = await bench.run(script("test ! -e ~/mine && echo other > clock.txt"))
    assert second.status == "ok"
    assert second.changes.commit != first.changes.commit
    assert git(bench.repository, "show", f"{second.changes.commit}:clock.txt") == "other"
