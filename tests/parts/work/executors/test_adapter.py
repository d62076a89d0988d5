"""The adapter: what it takes of programs that commit, lie, fail, hang, or leave things behind; with real git."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import ProviderError, StateError, UsageError
from remit.parts.work.executors import program
from remit.parts.work.executors.adapter import Adapter, GiveSkills, RunPlaces
from remit.parts.work.executors.program import ProgramExecutor
from remit.parts.work.executors.worktree import Beginning, Worktree
from remit.parts.work.order import Command, Constraints, WorkOrder
from remit.parts.work.pack import Contents, ContextPack
from remit.parts.work.result import WorkResult
from remit.parts.work.workflow import ExecutorTable
from tests.parts.work.executors.repository import RUN, git, make_repository, order_in, script

MENDED: Final = Constraints(commands=(Command(args=("grep", "-q", "mended", "clock.txt")),))
INTERFACES: Final = Constraints(interface_paths=("migrations/**",))
GUARDED: Final = Constraints(forbidden_paths=("migrations/**",))
RESULT: Final = (
    """printf '{{"issue_ref":"local#1","run_id":"{run}","status":"{status}","summary":"I did it."}}' """
    """> "$REMIT_CONTEXT_PACK/work_result.json";"""
)


class Bench:
    """A repository, and what a run leaves there."""

    def __init__(self, tmp_path: Path) -> None:
        self.repository = make_repository(tmp_path / "repo")
        self.tree = tmp_path / "tree"
        self.root = tmp_path / "work"
        self.shown = b""

    def order(self, constraints: Constraints | None = None) -> WorkOrder:
        """Return the order."""
        return order_in(self.tree, constraints)

    @property
    def pack(self) -> ContextPack:
        """Return the pack."""
        return ContextPack.of(self.root, self.order().issue, RUN)

    async def run(
        self,
        table: ExecutorTable,
        constraints: Constraints | None = None,
        skills: GiveSkills | None = None,
        contents: Contents | None = None,
    ) -> WorkResult:
        """Run an executor on the repository."""
        order = self.order(constraints)
        tree = Worktree.of(self.repository, self.tree, order.issue, RUN)
        executor = ProgramExecutor((table.program, *table.args))
        adapter = Adapter(
            order, executor, table, tree, self.pack, RunPlaces(SystemClock(), skills=skills, show=self._see)
        )
        return await adapter.run(Beginning("main"), contents or Contents(), lambda _: None)

    def _see(self, stream: str, data: bytes) -> None:
        self.shown += data if stream == "stderr" else b""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


ENDS: Final = {
    "commits itself": ("echo mended > clock.txt; git commit -qam Mend", MENDED, "ok", ""),
    "leaves it dirty": ("echo mended > clock.txt", MENDED, "ok", ""),
    "lies": ("true; " + RESULT.format(run=RUN, status="ok"), MENDED, "fail", "test_failed"),
    "fails": ("exit 3", None, "fail", ""),
    "fails, and says ok": (RESULT.format(run=RUN, status="ok") + "exit 3", None, "fail", ""),
    "says that it is blocked": (RESULT.format(run=RUN, status="blocked"), None, "blocked", ""),
    "is not there": ("exec no-such-program", None, "fail", ""),
    "changes what it may not": ("echo drop > migrations/1.sql", GUARDED, "fail", "permission_denied"),
    "commits what it may not": ("git rm -q migrations/1.sql; git commit -qm x", GUARDED, "fail", "permission_denied"),
    "leaves its branch for no commit of ours": (
        "git checkout -q --orphan other; echo x > clock.txt; git commit -qam x",
        None,
        "fail",
        "permission_denied",
    ),
    "commits on a branch of its own": ("git checkout -qb own; echo mended > clock.txt", MENDED, "ok", ""),
    "changes an interface without contracts": (
        "echo drop > migrations/1.sql",
        INTERFACES,
        "blocked",
        "manual_intervention",
    ),
    "hangs": ("sleep 86400", None, "fail", "outcome_unknown"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "constraints", "status", "code"), ENDS.values(), ids=ENDS)
async def test_what_is_proved_is_what_counts(
    bench: Bench,
    text: str,
    constraints: Constraints | None,
    status: str,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "_GRACE_S", 0.2)
    result = await bench.run(script(text, timeout_seconds=1 if "sleep" in text else 60), constraints)
    assert (result.status, result.result_code) == (status, code)
    assert bench.pack.result() == result
    bench.pack.verify()


@pytest.mark.slow
async def test_skills_lie_in_the_pack_and_the_home_and_are_no_part_of_the_change(bench: Bench) -> None:
    async def give(names: Sequence[str]) -> dict[str, bytes]:
        return {f"{name}/{path}": name.encode() for name in names for path in ("SKILL.md", "references/more.md")}

    seen = "cat ~/.agents/skills/a/SKILL.md ~/.claude/skills/b/references/more.md"
    seen += ' "$REMIT_CONTEXT_PACK/.agents/skills/a/references/more.md" "$REMIT_CONTEXT_PACK"/runs/*/work_result.json'
    before = {
        f"runs/{number}/{name}": number.encode() for number in "12" for name in ("work_result.json", "stdout.log")
    }
    table = replace(script(f"{seen} > clock.txt"), skills=("a", "b"))
    result = await bench.run(table, skills=give, contents=Contents(files=before))
    assert result.status == "ok"
    assert git(bench.tree, "diff", "--name-only", "main", "HEAD") == "clock.txt"
    assert git(bench.tree, "show", "HEAD:clock.txt") == "aba12", "skills, and the runs before"
    bench.pack.verify()
    (bench.pack.folder / "runs" / "1" / "stdout.log").chmod(0o644)
    (bench.pack.folder / "runs" / "1" / "stdout.log").write_text("x")
    with pytest.raises(UsageError, match=r"runs/1/stdout\.log was changed"):
        bench.pack.verify()


@pytest.mark.parametrize("code", [Code.SKILL_DISABLED, Code.SKILL_NOT_FOUND])
async def test_a_skill_that_cannot_be_used_is_not_handed_out(bench: Bench, code: Code) -> None:
    async def give(_names: Sequence[str]) -> dict[str, bytes]:
        raise StateError("it is switched off", code=code)

    with pytest.raises(ProviderError) as caught:
        await bench.run(replace(script("true"), skills=("a",)), skills=give if code is Code.SKILL_DISABLED else None)
    assert caught.value.code is code


@pytest.mark.slow
async def test_the_adapter_commits_what_was_left_and_no_droppings(bench: Bench) -> None:
    (bench.repository / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (bench.repository / ".git" / "hooks" / "pre-commit").chmod(0o755)
    result = await bench.run(script("echo mended > clock.txt; echo x > .aider.log; mkdir d; echo y > d/new.txt"))
    assert result.changes.commit == git(bench.tree, "rev-parse", "HEAD")
    assert git(bench.tree, "show", "--name-only", "--format=%an", "HEAD").split() == ["Remit", "clock.txt", "d/new.txt"]
    message = git(bench.tree, "log", "-1", "--format=%B")
    assert "local#1" in message
    assert RUN in message
    assert git(bench.repository, "status", "--porcelain") == "", "the repository itself is as it was"
    assert git(bench.repository, "rev-parse", f"refs/heads/run/local%231/{RUN}") == result.changes.commit


@pytest.mark.slow
async def test_acceptance_runs_on_what_was_committed_and_its_output_is_kept(bench: Bench) -> None:
    constraints = Constraints(commands=(Command(args=("cat", "clock.txt")), Command(args=("false",))))
    result = await bench.run(script("echo mended > clock.txt"), constraints)
    assert [(test.command, test.result) for test in result.tests] == [("cat clock.txt", "pass"), ("false", "fail")]
    assert (bench.pack.folder / result.tests[0].evidence).read_text() == "mended\n"


async def test_a_test_suite_passes_or_fails_and_changes_nothing(bench: Bench) -> None:
    head = git(bench.repository, "rev-parse", "HEAD")
    result = await bench.run(script("echo fine", commits=False))
    assert (result.status, result.changes.commit) == ("ok", head)
    assert [test.result for test in result.tests] == ["pass"]


@pytest.mark.parametrize("exit_code", [0, 1])
@pytest.mark.parametrize("words", ["go test ./...", "buf lint", "pnpm test"])
async def test_a_tool_chain_is_an_executor_that_passes_or_fails(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, exit_code: int
) -> None:
    name, *args = words.split()
    chain = tmp_path / "bin" / name
    chain.parent.mkdir()
    chain.write_text(f'#!/bin/sh\necho "$0 $*"\nexit {exit_code}\n')
    chain.chmod(0o755)
    monkeypatch.setenv("PATH", f"{chain.parent}:/usr/bin:/bin")
    result = await bench.run(ExecutorTable(program=name, args=tuple(args), commits=False))
    assert (result.status, result.result_code) == (("ok", "") if exit_code == 0 else ("fail", "test_failed"))
    (test,) = result.tests
    assert (test.command, test.result) == (words, "pass" if exit_code == 0 else "fail")
    assert (bench.pack.folder / test.evidence).read_text().split(maxsplit=1)[1] == f"{' '.join(args)}\n"
    assert result.changes.commit == git(bench.repository, "rev-parse", "HEAD"), "it says what was tested"


@pytest.mark.slow
async def test_the_handover_follows_a_program_to_a_branch_of_its_own(bench: Bench) -> None:
    result = await bench.run(script("git checkout -qb own; echo mended > clock.txt; git commit -qam Mend"))
    assert git(bench.repository, "rev-parse", f"refs/heads/run/local%231/{RUN}") == result.changes.commit


@pytest.mark.slow
async def test_setup_comes_first_and_ends_the_run_if_it_fails(bench: Bench) -> None:
    ready = await bench.run(script("cat made.txt", setup=("sh", "-c", "echo x > made.txt")))
    assert ready.status == "ok"


async def test_a_setup_that_fails_ends_the_run(bench: Bench) -> None:
    result = await bench.run(script("true", setup=("false",)))
    assert (result.status, result.result_code) == ("fail", "env_unavailable")


@pytest.mark.slow
async def test_the_program_sees_its_own_home_its_names_and_no_secret(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("MODEL_KEY", "k3y")
    await bench.run(script("env; pwd", env=("MODEL_KEY",)))
    seen = (bench.pack.folder / "stdout.log").read_text()
    assert "s3cret" not in seen
    assert "MODEL_KEY=k3y" in seen
    assert f"REMIT_RUN_ID={RUN}" in seen
    assert f"HOME={bench.tree}.home" in seen
    assert seen.splitlines()[-1] == str(bench.tree)


@pytest.mark.parametrize(
    "text",
    [
        """printf '{"issue_ref":"local#2","run_id":"2026-02-14-work-0001","status":"ok"}'""",
        "printf 'Status: ok\\n\\nfine'",
        "printf '{'",
    ],
)
async def test_a_result_that_names_no_run_or_another_is_never_taken(bench: Bench, text: str) -> None:
    name = "work_result.txt" if "Status:" in text else "work_result.json"
    with pytest.raises(UsageError) as refused:
        await bench.run(script(f'{text} > "$REMIT_CONTEXT_PACK/{name}"'))
    assert refused.value.code is Code.output_unparseable


@pytest.mark.slow
@pytest.mark.parametrize(
    "trap",
    [
        "ln -s {outside} tests-1.stdout.log",
        "ln -s {outside} tests-1.stderr.log",
        "mkfifo tests-1.stdout.log",
        "rm work_audit.json; mkdir -p work_audit.json/deep",
        "mkdir -p tests-1.stdout.log/deep; ln -s {outside} tests-1.stdout.log/deep/x",
    ],
)
async def test_what_stands_in_the_place_of_what_remit_writes_leads_nowhere(
    bench: Bench, tmp_path: Path, trap: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("precious\n")
    text = f'echo mended > clock.txt; cd "$REMIT_CONTEXT_PACK"; {trap.format(outside=outside)}'
    result = await bench.run(script(text), Constraints(commands=(Command(args=("cat", "clock.txt")),)))
    assert outside.read_text() == "precious\n"
    assert result.status == "ok"
    bench.pack.verify()


async def test_a_folder_in_the_place_of_the_result_is_replaced(bench: Bench) -> None:
    trap = 'mkdir -p "$REMIT_CONTEXT_PACK/work_result.json/deep"; exit 1'
    result = await bench.run(script("true", setup=("sh", "-c", trap)))
    assert bench.pack.result() == result


@pytest.mark.slow
@pytest.mark.parametrize("trap", ["ln -s /etc/hostname {log}", "mkfifo {log}", "mkdir {log}", "true"])
async def test_a_log_is_shown_only_if_it_is_a_regular_file(bench: Bench, trap: str) -> None:
    await bench.run(script(f'cd "$REMIT_CONTEXT_PACK"; rm stdout.log; {trap.format(log="stdout.log")}'))
    assert bench.pack.open_log("stdout.log") is None
    with bench.pack.open_log("stderr.log") as log:  # type: ignore[union-attr]
        assert log.read() == b""


@pytest.mark.slow
async def test_a_program_cannot_write_how_it_ended(bench: Bench) -> None:
    forged = """printf '{"program":"sh","exit_code":0,"base":"--output=x"}' > "$REMIT_CONTEXT_PACK/work_audit.json";"""
    await bench.run(script(f"{forged} exit 3"))
    said = bench.pack.audit()
    (bench.pack.folder / "work_audit.json").write_text("{}")
    assert bench.pack.audit() == said
    assert b'"exit_code": 3' in (said or b"")


@pytest.mark.slow
async def test_a_repository_within_the_worktree_starts_nothing_and_is_no_work(bench: Bench, tmp_path: Path) -> None:
    caught = tmp_path / "caught"
    nested = (
        "git init -q sub; cd sub; echo x > f; git add f; git commit -qm x; "
        f"git config filter.z.clean 'touch {caught}; cat'; echo '* filter=z' > .git/info/attributes"
    )
    result = await bench.run(script(f"echo mended > clock.txt; ({nested})"))
    assert git(bench.tree, "show", "--name-only", "--format=", "HEAD").split() == ["clock.txt"]
    git(bench.tree, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    (bench.tree / "sub" / "f").unlink()
    (bench.tree / "sub" / "f").write_text("x\n")
    tree = Worktree(bench.repository, bench.tree, f"run/local%231/{RUN}")
    await tree.commit("Again")
    assert not caught.exists()
    assert result.status == "ok"


async def test_where_there_is_no_repository_nothing_runs(bench: Bench, tmp_path: Path) -> None:
    bench.repository = tmp_path / "empty"
    bench.repository.mkdir()
    with pytest.raises(ProviderError) as refused:
        await bench.run(script("true"))
    assert refused.value.cause is Code.env_unavailable
    assert not bench.tree.exists()


async def test_a_repository_without_a_commit_says_what_to_do(bench: Bench, tmp_path: Path) -> None:
    bench.repository = tmp_path / "new"
    bench.repository.mkdir()
    git(bench.repository, "init", "--quiet", "--initial-branch", "main")
    with pytest.raises(ProviderError, match="Commit something first"):
        await bench.run(script("true"))


@pytest.mark.slow
async def test_a_run_begins_where_the_one_before_ended(bench: Bench) -> None:
    first = await bench.run(script("echo half > clock.txt"))
    order = bench.order()
    tree = Worktree(bench.repository, bench.tree.with_name("second"), "run/local%231/2026-02-14-work-0002")
    assert await tree.has(f"run/local%231/{RUN}")
    assert not await tree.has("run/local%231/2026-02-14-work-0009")
    assert await tree.create(f"run/{order.issue.file_name}/{RUN}") == first.changes.commit
    await tree.remove()
    assert not tree.folder.exists()


def _none(bench: Bench) -> None:
    (bench.repository / ".git").rename(bench.repository / "git")


def _bare(bench: Bench) -> None:
    bare = bench.repository.with_name("bare")
    git(bench.repository, "clone", "--quiet", "--bare", ".", str(bare))
    bench.repository = bare


def _empty(bench: Bench) -> None:
    bench.repository = bench.repository.with_name("empty")
    bench.repository.mkdir()
    git(bench.repository, "init", "--quiet", "--initial-branch", "main")


def _dirty(bench: Bench) -> None:
    (bench.repository / "clock.txt").write_text("half mended\n")
    (bench.repository / "new.txt").write_text("new\n")
    git(bench.repository, "add", "new.txt")


def _shallow(bench: Bench) -> None:
    git(bench.repository, "commit", "--quiet", "--allow-empty", "--message", "More")
    shallow = bench.repository.with_name("shallow")
    git(bench.repository, "clone", "--quiet", "--depth", "1", f"file://{bench.repository}", str(shallow))
    bench.repository = shallow


def _detached(bench: Bench) -> None:
    git(bench.repository, "checkout", "--quiet", "--detach")


def _below(bench: Bench) -> None:
    bench.repository = bench.repository / "migrations"


def _with_submodules(bench: Bench) -> None:
    part = make_repository(bench.repository.with_name("part"))
    git(bench.repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part), "part")
    git(bench.repository, "commit", "--quiet", "--message", "Add a part")


REPOSITORIES: Final = {
    "none": (_none, "is no git repository"),
    "a bare one": (_bare, "is no git repository"),
    "one without a commit": (_empty, "Commit something first"),
    "a dirty one": (_dirty, ""),
    "a shallow one": (_shallow, ""),
    "one that stands at no branch": (_detached, ""),
    "a folder of one": (_below, ""),
    "one with submodules": (_with_submodules, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "refusal"), REPOSITORIES.values(), ids=REPOSITORIES)
async def test_a_repository_of_every_kind_is_worked_in_or_refused(
    bench: Bench, make: Callable[[Bench], None], refusal: str
) -> None:
    make(bench)
    table = script("echo mended > clock.txt")
    if refusal:
        with pytest.raises(ProviderError, match=refusal) as refused:
            await bench.run(table, MENDED)
        assert refused.value.cause is Code.env_unavailable
        return
    before = git(bench.repository, "status", "--porcelain")
    result = await bench.run(table, MENDED)
    assert result.status == "ok", result.summary
    assert git(bench.repository, "show", "--name-only", "--format=", result.changes.commit) == "clock.txt"
    assert git(bench.repository, "status", "--porcelain") == before, "what was begun there is left alone"
