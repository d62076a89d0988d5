"""The promises of every sandbox driver, as checks that any test suite can run.

    @pytest.mark.parametrize("check", DRIVER_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(Trial(MyDriver(), ("/usr/bin/python3",)))

The trial's command runs Python code given by `-c`. Each check makes a workspace of its own; the driver is the caller's
to close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from remit.parts.sandbox.driver import Driver, Isolation
from remit.parts.sandbox.scratch import scratch
from remit.process.enclosure import Listener, ProgramRun, RunLimits, Spec, quiet
from remit_testing.suite import checks_in

PATIENCE_S: Final = 30.0
ENDLESS: Final = "while True:\n    pass"


class Trial(NamedTuple):
    """A driver, and how it runs Python."""

    driver: Driver
    python: tuple[str, ...]

    async def run(self, work: Path, code: str, listener: Listener = quiet, **options: Any) -> ProgramRun:
        """Run Python code; `options` are fields of the Spec, or limits."""
        limits = {name: options.pop(name) for name in list(options) if name in RunLimits.__struct_fields__}
        spec = Spec(
            id=options.pop("id", "trial"),
            argv=(*self.python, "-c", code),
            workspace=work,
            limits=RunLimits(**limits),
            **options,
        )
        async with asyncio.timeout(PATIENCE_S):
            return await self.driver.exec(spec, listener)


Check = Callable[[Trial], Awaitable[None]]


async def check_a_probe_names_the_mechanism_of_every_limit(trial: Trial) -> None:
    """It is usable here, says how far it isolates, and leaves no limit out."""
    probe = await trial.driver.probe()
    assert probe.level > Isolation.none, probe.reasons
    assert set(probe.limits) == set(RunLimits.__struct_fields__)
    assert probe.driver == trial.driver.name


async def check_output_and_exit_code_come_back(trial: Trial) -> None:
    """Both streams as written, and the program's own exit code."""
    with scratch() as work:
        run = await trial.run(work, "import sys; print('out'); sys.stderr.write('err\\n'); sys.exit(3)")
    assert (run.status, run.exit_code, run.limit) == ("FAILED", 3, "")
    assert (run.stdout.data, run.stderr.data) == (b"out\n", b"err\n")


async def check_success_is_an_exit_code_of_zero(trial: Trial) -> None:
    """SUCCEEDED, nothing else said."""
    with scratch() as work:
        run = await trial.run(work, "print(1)")
    assert (run.status, run.exit_code, run.signal, run.limit) == ("SUCCEEDED", 0, "", "")
    assert run.receipt.driver == trial.driver.name
    assert run.receipt.isolation in Isolation.__members__


async def check_stdin_is_read_to_its_end(trial: Trial) -> None:
    """All of it, and then its end."""
    data = b"x" * 100_000
    with scratch() as work:
        run = await trial.run(work, "import sys; print(len(sys.stdin.read()))", stdin=data)
    assert run.stdout.data == b"100000\n"


async def check_files_stay_in_the_workspace(trial: Trial) -> None:
    """Hold that what one run writes, the next one and we can read."""
    with scratch() as work:
        await trial.run(work, "f = open('made', 'w'); f.write('kept'); f.close()")
        assert (work / "made").read_bytes() == b"kept"
        run = await trial.run(work, "print(open('made').read())")
    assert run.stdout.data == b"kept\n"


async def check_files_of_the_machine_are_out_of_reach(trial: Trial) -> None:
    """Nothing beside the workspace can be written, and a file of ours not be read."""
    code = (
        "for path in ({!r}, '/etc/shadow'):\n"
        "    try:\n        open(path).read(); print('read', path)\n    except OSError:\n        pass\n"
        "for path in ('/remit-made', '/etc/remit-made', '/usr/remit-made', {!r}):\n"
        "    try:\n        f = open(path, 'w'); f.close()\n    except OSError:\n        pass\n"
    )
    with scratch() as work, scratch() as ours:
        (ours / "secret").write_text("secret")
        run = await trial.run(work, code.format(str(ours / "secret"), str(ours / "made")))
        paths = await asyncio.to_thread(_there, "/remit-made", "/etc/remit-made", "/usr/remit-made")
        assert not (ours / "made").exists()
    assert run.stdout.data == b"", run.stdout.data
    assert paths == []


def _there(*paths: str) -> list[str]:
    return [path for path in paths if Path(path).exists()]


async def check_time_that_is_up_ends_it_with_what_it_wrote(trial: Trial) -> None:
    """TIMEOUT, with the output until then."""
    with scratch() as work:
        run = await trial.run(work, f"print('first')\n{ENDLESS}", wall_ms=1_500)
    assert (run.status, run.limit) == ("TIMEOUT", "wall_ms")
    assert run.stdout.data in {b"first\n", b""}  # an interpreter may hold output back


async def check_output_is_kept_up_to_its_limit(trial: Trial) -> None:
    """The rest is counted."""
    with scratch() as work:
        run = await trial.run(work, "print('x' * 5000)", stdout_bytes=1_000)
    assert run.stdout.data == b"x" * 1_000
    assert run.stdout.total == 5_001
    assert run.stdout.truncated


async def check_a_run_can_be_ended(trial: Trial) -> None:
    """`kill` ends it; one that does not exist is no error."""
    with scratch() as work:
        run = asyncio.create_task(trial.run(work, ENDLESS, id="victim"))
        while not run.done():
            await asyncio.wait([run], timeout=0.5)  # a sandbox that has not begun yet cannot be ended
            await trial.driver.kill("victim")
        finished = await run
        await trial.driver.kill("no such run")
    assert finished.status == "FAILED"
    assert finished.exit_code != 0


async def check_a_cancellation_passes_once_the_program_is_gone(trial: Trial) -> None:
    """The program does not go on behind its caller's back."""
    with scratch() as work:
        await trial.driver.probe()
        code = "i = 0\nwhile True:\n    i += 1\n    f = open('count', 'w'); f.write(str(i)); f.close()\n"
        run = asyncio.create_task(trial.run(work, code))
        while not (work / "count").exists():
            await asyncio.wait([run], timeout=0.02)
        run.cancel()
        await asyncio.wait([run])
        assert run.cancelled()
        before = (work / "count").stat().st_mtime_ns
        await asyncio.wait([asyncio.ensure_future(asyncio.to_thread(list, range(100_000)))])
        assert (work / "count").stat().st_mtime_ns == before


async def check_runs_side_by_side_do_not_mix(trial: Trial) -> None:
    """Each has its own output and its own files."""
    with scratch() as first, scratch() as other:
        code = "f = open('x', 'w'); f.write({0!r}); f.close(); print({0!r})"
        runs = await asyncio.gather(
            trial.run(first, code.format("one"), id="one"), trial.run(other, code.format("other"), id="other")
        )
        assert [each.stdout.data for each in runs] == [b"one\n", b"other\n"]
        assert [(place / "x").read_text() for place in (first, other)] == ["one", "other"]


DRIVER_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
"""Every check, in the order in which they stand here."""
