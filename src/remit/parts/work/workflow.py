"""workflow.toml: how a project hands out its work (contract: executors, "Config")."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.order import Constraints
from remit.regex import regex
from remit.settings.file import read_plain
from remit.trust.state import require_trusted

if TYPE_CHECKING:
    from remit.settings import Settings

FILE: Final = "workflow.toml"
MAX_FILE: Final = 1_000_000
_SPOKEN: Final = regex(
    r"outbox\.(backend|url|token_env|repo|account|path|poll_seconds|push_seconds|branches|pulls)"
    r"|executors\.[^.]+\.(program|agent|args|protocol|timeout_seconds|commits|tokens|cost)"
    r"|(roles|labels|role_repo)\..*|constraints\.(forbidden_paths|interface_paths|notes)"
)
"""Keys that run, send and allow nothing, or of which `_acts` has spoken."""
Executor = Annotated[str, Meta(pattern="^(acp:)?[a-z][a-z0-9_-]{0,62}$")]
Cap = Annotated[int, Meta(ge=0, le=10_000)]
Name = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,62}$")]


class OutboxTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[outbox]`: where the issues are."""

    backend: Literal["local", "github", "gitlab", "forgejo"] = "local"
    """The place of the issues: Remit's journal, or a forge."""
    path: str = ""
    """For `local`: the journal; empty: the one that Remit uses."""
    repo: str = ""
    """For a forge: `owner/repo`, or the path of a group's project."""
    url: str = ""
    """The address of the forge's API; empty: that of its public place, if it has one."""
    token_env: str = ""
    """The environment variable that holds the token; empty: `GITHUB_TOKEN`, `GITLAB_TOKEN` or `FORGEJO_TOKEN`."""
    account: str = ""
    """The login that the token writes as; empty: the forge is asked."""
    poll_seconds: Annotated[int, Meta(ge=5, le=86_400)] = 60
    """`remit work serve` looks so often for news on a forge."""
    max_comments: Cap = 20
    """Comments of one job."""
    max_issues: Cap = 10
    """Issues that one job opens."""
    max_changes: Cap = 50
    """Changes of labels, assignee, standing or pull requests of one job."""
    remote: Annotated[str, Meta(pattern="^([A-Za-z0-9][A-Za-z0-9._-]{0,99})?$")] = ""
    """The git remote to which the work on an issue is pushed, to one branch for each; empty: to none."""
    branches: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$")] = "remit/issue-"
    """The beginning of the names of those branches; the number of the issue follows."""
    push_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 300
    """Work that is under way is pushed so often; 0: at its end alone."""
    pulls: bool = True
    """Whether each of these branches gets a pull request, where the forge has any."""


class IssueGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[groups.X]`: issues that are worked on by one role."""

    role: Name
    """The role of its runs."""
    executor: Executor = "shell"
    """The executor that begins."""
    max_concurrent: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """Runs at once."""
    listen_labels: tuple[str, ...] = ()
    """An issue that carries all of them is worked on; none: every open issue is."""
    switch_to: Executor | None = None
    """The executor that takes over after a run did not end in time, or changes were requested; None: the same."""
    timeout_seconds: Annotated[int, Meta(ge=0, le=2_592_000)] = 0
    """Seconds after which a run is switched, whatever it does; 0: its executor's own time alone counts."""


class FlowTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[flow]`: what moves an issue."""

    require_claim_before_work: bool = True
    """Whether the issue says `state:doing` before the work begins."""
    close_issue_requires_decision: bool = True
    """Whether an issue is closed only once someone accepted its result."""
    ask_for_decision: bool = False
    """Whether each result in review is asked about in the inbox, as a call that needs a confirmation is."""
    auto_block_when_dependency_open: bool = True
    """Whether an issue is blocked while one that it depends on is open."""
    auto_unblock_when_dependency_closed: bool = True
    """Whether such an issue is unblocked once those are closed."""


Mode = Literal["governed", "ask", "free"]


class ExecutorTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[executors.X]`: a program that does the work, or a coding agent."""

    program: str = ""
    """Its name or path; for an agent, where its own is not found by its name."""
    agent: str = ""
    """A coding agent that Remit knows, such as `claude`; empty: the program is any other."""
    mode: Mode | None = None
    """The mode of the agent: whether its calls pass the gate; None: governed, or `ask` by the protocol."""
    model: str = ""
    """The agent's model; empty: its own choice."""
    base_url: str = ""
    """The place where the agent's model is served; empty: at its maker's."""
    key: str = ""
    """The variable of our environment that holds the key of the model; empty: the agent's usual one."""
    tokens: Annotated[int, Meta(ge=0)] = 0
    """Tokens that the agent's models may use in a run; 0: no such limit. It takes the model gateway."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars that they may cost; 0: no such limit."""
    starts: tuple[str, ...] = ()
    """Files of the repository by which the agent may start programs, each as `sha256:… path`: they are trusted."""
    protocol: Literal["", "acp"] = ""
    """`acp`: it speaks the Agent Client Protocol."""
    args: tuple[str, ...] = ()
    """`{pack}`, `{repo}`, `{issue}` and `{run}` stand for the context pack, the worktree and the names of the work."""
    timeout_seconds: Annotated[int, Meta(ge=1, le=604_800)] = 3_600
    """Seconds that a run may take."""
    setup: tuple[str, ...] = ()
    """A program that is run in a new worktree first, for what a checkout lacks."""
    commits: bool = True
    """Whether it is to change something; a test suite is not."""
    env: tuple[str, ...] = ()
    """Variables of our environment that it gets beside the usual ones."""
    isolation: Literal["sandbox", "none"] = "sandbox"
    """`none`: it runs with the rights of the user as whom Remit runs."""
    reads: tuple[str, ...] = ()
    """Folders that it may read in the sandbox, beside its own installation, the worktree and the pack."""
    skills: tuple[str, ...] = ()
    """Skills that it is given: they lie in its pack and its home, outside its worktree."""
    network: tuple[str, ...] = ()
    """Hosts that it may reach from the sandbox, as `host`, `host:port` or `*.domain`."""


class WorkflowFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    outbox: OutboxTable = OutboxTable()
    """The place of the issues."""
    roles: dict[Name, str] = {}
    """The use of each role."""
    repos: dict[Name, str] = {}
    """The folder of each repository, relative to the file."""
    role_repo: dict[Name, Name] = {}
    """The repository that a role works in; without one, the file's own folder."""
    labels: dict[str, str] = {}
    """The meaning of the labels of this project."""
    groups: dict[Name, IssueGroup] = {}
    """Issues that are worked on by one role, by the group's name."""
    flow: FlowTable = FlowTable()
    """The rules by which issues move."""
    executors: dict[Name, ExecutorTable] = {}
    """Programs and agents that do the work, by name."""
    constraints: Constraints = Constraints()
    """Of every order, beside its own."""

    @staticmethod
    def acts(data: bytes) -> Iterator[str]:
        """Return what a file would do, each act as the end of "It would …": all but what is known as harmless."""
        return _acts(data)


class Workflow(WorkflowFile, frozen=True, kw_only=True):
    """The file as it counts."""

    faults: dict[str, str] = {}
    """The reason why a table of `[executors]` was left out, by name."""

    def executor_name(self, name: str) -> str:
        """Return the one name of an executor: that of a table which speaks the agents' protocol goes without `acp:`."""
        table = self.executors.get(name.removeprefix("acp:"))
        return name.removeprefix("acp:") if table is not None and table.protocol == "acp" else name


def read_workflow(settings: Settings) -> Workflow:
    """Read the workflow of the project; the defaults if it has none, or if it does not count.

    Raise UsageError (WORK_INVALID), and SettingsError (FOLDER_NOT_TRUSTED) if it is not what someone trusted.
    """
    if not settings.has_file(FILE):
        return Workflow()
    try:
        data = read_plain(settings.folder / FILE, MAX_FILE + 1)
    except OSError as error:
        raise _invalid(f"cannot be read: {error.strerror or error}") from error
    require_trusted(settings, FILE, data, os.environ)
    return _parsed(data)


def _toml(data: bytes) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - for who has the file

    return tomllib.loads(data.decode())


def _acts(data: bytes) -> Iterator[str]:
    try:
        workflow = _parsed(data)
    except UsageError:
        yield f"hand out work by a {FILE} that cannot be read"
        return
    outbox = workflow.outbox
    if outbox.backend != "local":
        token = outbox.token_env or f"{outbox.backend.upper()}_TOKEN"
        yield f"connect to {outbox.backend} at {outbox.url or 'its public address'} for the issues of {outbox.repo}"
        yield f"give it ${token} of your environment"
    for name, table in workflow.executors.items():
        yield f"let {name} work on issues: {shlex.join((table.program or table.agent, *table.args))}"
    for key, value in _leaves(_toml(data), ""):
        if not _SPOKEN.fullmatch(key):
            yield f"set {key} of {FILE} to {msgspec.json.encode(value).decode()}"


def _leaves(table: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _parsed(data: bytes) -> Workflow:
    """Return what a workflow.toml says. Raise UsageError (WORK_INVALID)."""
    if len(data) > MAX_FILE:
        raise _invalid(f"is larger than {MAX_FILE:,} bytes")
    try:
        workflow = _converted(_toml(data))
    except msgspec.ValidationError as error:
        raise _invalid(_words(error, Workflow)) from error
    except (ValueError, RecursionError) as error:
        raise _invalid(str(error)) from error
    for role, repository in workflow.role_repo.items():
        if repository not in workflow.repos:
            raise _invalid(f"[role_repo] {role} names the repository {repository!r}, which [repos] lacks")
    return workflow


def require_workflow(settings: Settings) -> Workflow:
    """Return the workflow of the project. Raise UsageError (WORK_INVALID) for one that has none."""
    if not settings.has_file(FILE):
        remedy = "Run `remit work init`, or begin in the project's folder."
        raise UsageError(f"{settings.folder} has no {FILE}", code=Code.WORK_INVALID, remedy=remedy)
    return read_workflow(settings)


def repository_of(workflow: Workflow, folder: Path, role: str) -> Path:
    """Return the repository that a role works in."""
    name = workflow.role_repo.get(role)
    return (folder / workflow.repos[name]).resolve() if name else folder.resolve()


def _converted(document: dict[str, Any]) -> Workflow:
    """Return the workflow; a table of `[executors]` that is wrong leaves the others alone. Raise ValidationError."""
    executors, faults = dict[str, ExecutorTable](), dict[str, str]()
    for name, table in msgspec.convert(document.pop("executors", {}), dict[str, Any]).items():
        try:
            executors[msgspec.convert(name, Name)] = msgspec.convert(table, ExecutorTable)
        except msgspec.ValidationError as error:
            faults[name] = f"[executors.{name}] {_words(error, ExecutorTable)}"
    file = msgspec.structs.asdict(msgspec.convert(document, WorkflowFile))
    return Workflow(**{**file, "executors": executors}, faults=faults)


def _words(error: msgspec.ValidationError, kind: Any) -> str:
    """Say what is wrong by its key, with the values that are allowed there."""
    words, _, path = str(error).partition(" - at `$")
    keys = re.findall(r"\w+", path)
    for key in keys:
        fields = msgspec.structs.fields(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else ()
        kind = next((field.type for field in fields if field.name == key), None)
    choices = [value for each in (kind, *get_args(kind)) if get_origin(each) is Literal for value in get_args(each)]
    allowed = f"; it may be {', '.join(map(repr, choices))}" if choices else ""
    return f"{'.'.join(keys)}: {words}{allowed}" if keys else words


def _invalid(reason: str) -> UsageError:
    return UsageError(f"{FILE} {reason}", code=Code.WORK_INVALID, remedy="docs/work.md shows every key.")
