from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from remit.cli import exit_codes, main
from remit.cli.commands import policy
from remit.cli.errors import describe
from remit.cli.root import COMMANDS, root
from remit.version import __version__
from tests.cli.conftest import ROOT, Project
from tests.patience import PATIENCE_S

HEAVY = ("asyncio", "msgspec", "apsw", "httpx", "rich", "jsonschema_rs", "yaml")
EVERY = [(name,) for name in COMMANDS] + [("policy", name) for name in policy.COMMANDS]


def module_of(words: tuple[str, ...]) -> click.Command:
    found: click.Command | None = root
    for word in words:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(root), word)
    assert found is not None
    return found


def test_help_alone_and_no_command_say_the_same(project: Project) -> None:
    assert project.here("--help").out == project.here().out == project.here("-h").out
    assert project.here("policy").out == project.here("policy", "--help").out
    assert project.here().status == 0


def test_help_lists_every_command_with_its_line_and_every_exit_status(project: Project) -> None:
    text = " ".join(project.here("--help").out.split())
    assert all(f"{name} {entry.help}" in text for name, entry in COMMANDS.items())
    assert all(f"{status} {meaning}" in text for status, meaning in exit_codes.MEANINGS.items())


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_a_commands_own_help_begins_with_the_line_of_the_list(words: tuple[str, ...]) -> None:
    entry = policy.COMMANDS[words[1]] if len(words) > 1 else COMMANDS[words[0]]
    assert (module_of(words).help or "").strip().partition("\n")[0] == entry.help


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_option_says_what_it_does(words: tuple[str, ...]) -> None:
    options = [one for one in module_of(words).params if isinstance(one, click.Option)]
    assert [one.name for one in options if not one.help] == []
    assert all(str(one.help).endswith(".") for one in options)


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("confirm", "--help"), ("policy", "lint", "--help")])
def test_help_imports_nothing_slow(words: tuple[str, ...]) -> None:
    code = (
        "import sys; from remit.cli.root import run\n"
        f"status = run({list(words)})\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: remit")
    assert done.stderr == "[]\n"


def test_version(project: Project) -> None:
    assert project.here("--version").out == f"remit {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jbos",), "Did you mean jobs?"),
        (("approve",), "That is `remit confirm`."),
        (("policy", "explian"), "Did you mean explain?"),
        (("jobs", "--lmit", "3"), "--limit"),
        (("jobs", "--journal", "x"), "--journal goes before the command"),
        (("jobs", "--state", "done"), "completed"),
        (("show",), "JOB"),
        (("--color", "pink"), "always"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_helps(project: Project, words: tuple[str, ...], said: str) -> None:
    done = project.here(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: USAGE: ")
    assert said in done.err


def test_errors_are_json_where_json_is_asked_for(project: Project) -> None:
    done = project.here("show", "nothing", "--json")
    assert done.status == 2
    assert done.error["code"] == "JOB_NOT_FOUND"
    assert set(done.error) == {"code", "message", "remedy"}
    assert project.here("jobs", "--json", "--nope").error["code"] == "USAGE"


def test_a_traceback_is_shown_only_with_v(project: Project) -> None:
    assert "Traceback" not in project.here("show", "nothing").err
    assert "Traceback" in project.here("-v", "show", "nothing").err


def test_a_defect_is_an_error_with_a_hint_and_no_traceback(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("remit.service.jobs.Jobs.rows", broken)
    done = project.here("jobs")
    assert done.status == 1
    assert done.err.startswith("error: UNHANDLED_EXCEPTION: ZeroDivisionError: oh\n  -> Run it with -v")


def test_wrong_settings_exit_with_2_and_name_the_file(project: Project) -> None:
    project.configure("[jobs]\nconcurency = 3\n")
    done = project.here("jobs")
    assert done.status == 2
    assert "SETTINGS_INVALID" in done.err
    assert "concurrency" in done.err


def test_global_options_reach_the_settings(project: Project) -> None:
    (project.folder / "other.toml").write_text("[jobs]\nconcurrency = 3\n", encoding="utf-8")
    options = ("--config", "other.toml", "--journal", "x.db", "--as", "bob", "--color", "never")
    found = {row["key"]: row for row in project.here(*options, "config", "--json").json}
    assert found["jobs.concurrency"]["value"] == 3
    assert found["journal.url"]["value"] == str(project.folder / "x.db")
    assert found["app.principal"] == {"key": "app.principal", "value": "bob", "source": "command line"}
    assert found["output.color"]["value"] == "never"


@pytest.mark.parametrize(
    ("env", "words", "coloured"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, (), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
        ({"FORCE_COLOR": "1"}, ("--color", "never"), False),
        ({"REMIT_OUTPUT_COLOR": "always"}, (), True),
    ],
)
def test_colour_follows_terminal_environment_and_option(
    project: Project, env: dict[str, str], words: tuple[str, ...], coloured: bool
) -> None:
    project.env |= env
    for command in (("doctor",), ("show", "nothing")):
        done = project.here(*words, *command)
        assert ("\x1b[" in done.out + done.err) == coloured


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_ends_a_command_quietly(project: Project, unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        project.command("tools"),
        cwd=project.folder,
        env={**project.env, "PYTHONUNBUFFERED": unbuffered},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(writer)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")


def test_an_output_that_is_lost_is_an_error(project: Project) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            project.command("config"),
            cwd=project.folder,
            env=project.env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1


def test_looking_makes_no_journal(project: Project) -> None:
    for words in (
        ("jobs",),
        ("confirm",),
        ("tools",),
        ("doctor",),
        ("policy", "rules"),
        ("policy", "lint"),
        ("verify",),
    ):
        assert project.here(*words).status == 0, words
    assert not (project.folder / ".remit").exists()


def test_looking_does_without_broken_modules_and_rules(project: Project) -> None:
    job = project.job("report")
    project.configure('[[policy.rules]]\nid = "x"\neffect = "perhaps"\n')
    (project.folder / "remit.toml").write_text(
        '[app]\nmodules = ["gone.py"]\n[[policy.rules]]\neffect = "perhaps"\n', encoding="utf-8"
    )
    for words in (("jobs",), ("show", job), ("trace", job), ("verify",), ("confirm",)):
        assert project.here(*words).status == 0, words


def test_every_command_is_in_the_list() -> None:
    assert root.list_commands(click.Context(root)) == list(COMMANDS)


def test_every_command_that_a_text_names_exists() -> None:
    """Such as a remedy: words after a group are its commands, and words after a command its arguments."""
    named = re.compile(r"`remit ((?:[a-z][a-z-]*(?: (?=[a-z]))?)+)")
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    for words in {match[1] for text in texts for match in named.finditer(text)}:
        command: click.Command = root
        for word in words.split():
            if not isinstance(command, click.Group):
                assert any(isinstance(one, click.Argument) for one in command.params), words
                break
            below = command.get_command(click.Context(root), word)
            assert below is not None, words
            command = below


def test_ctrl_c_before_the_command_runs_ends_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("remit.cli.root.run", interrupted)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130


def test_a_machine_without_a_free_thread_is_told_by_a_code() -> None:
    assert describe(RuntimeError("can't start new thread")).code == "NO_PROCESSES"


@pytest.mark.parametrize(
    ("module", "extra"), [("jinja2", "serve"), ("pypdfium2.raw", "documents"), ("of_no_extra", "")]
)
def test_a_module_that_an_extra_brings_is_named_with_the_extra(module: str, extra: str) -> None:
    failure = describe(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert failure.code == ("SETTINGS_INVALID" if extra else "UNHANDLED_EXCEPTION")
    assert f"'remit[{extra}]'" in failure.remedy or not extra
