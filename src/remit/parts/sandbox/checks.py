"""The abilities of the sandbox's drivers here, for `remit sandbox probe` and `remit doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from remit.capability import Check, Look
from remit.parts.sandbox.driver import Isolation, ProbeReport
from remit.parts.sandbox.wiring import DRIVERS, finder_of, open_driver, own_settings
from remit.process.enclosure import CommandMissingError, SandboxUnavailableError

if TYPE_CHECKING:
    from remit.settings import Settings


async def probed(settings: Settings, drivers: Iterable[str] = DRIVERS) -> list[ProbeReport]:
    """Return what each driver can do."""
    probes = []
    for name in drivers:
        driver = open_driver(name, own_settings(settings))
        try:
            probes.append(await driver.probe())
        finally:
            await driver.close()
    return probes


def demanded(settings: Settings) -> Isolation:
    """Return what the settings demand."""
    return Isolation[own_settings(settings).min_isolation]


def commands(settings: Settings) -> dict[str, tuple[str, str]]:
    """Return where the program of each allowed command lies in the sandbox, or why it cannot be run."""
    own = own_settings(settings)
    finder = finder_of(own)
    programs: dict[str, tuple[str, str]] = {}
    for name in own.commands:
        try:
            programs[name] = finder.find(name).program, ""
        except (CommandMissingError, SandboxUnavailableError) as error:
            programs[name] = "", str(error)
    return programs


async def check_sandbox(look: Look) -> list[Check]:
    """The row of `remit doctor`: a machine without a sandbox is in order, it only runs no code."""
    return [Check("sandbox", *await _verdict(look.settings))]


async def _verdict(settings: Settings) -> tuple[Literal["ok", "warn"], str, str]:
    [probe] = await probed(settings, (own_settings(settings).driver,))
    if not probe.usable:
        return "warn", f"no code can be run: {probe.driver}: {'; '.join(probe.reasons)}", probe.remedy
    if probe.level < demanded(settings):
        reason = f"no code can be run: {probe.driver} isolates by {probe.level.name}, not {demanded(settings).name}"
        return "warn", reason, "Choose another sandbox.driver; `remit sandbox probe` shows them."
    soft = sorted(name for name, how in probe.limits.items() if "soft" in how or "not held" in how)
    verdict = f"{probe.driver} {probe.version}, {probe.level.name}" + (
        f"; soft limits: {', '.join(soft)}" if soft else ""
    )
    return "ok", verdict, ""
