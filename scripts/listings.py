"""Write what parts offer, `listing.json` in the folder of each, from their code: `python -m scripts.listings`."""

import asyncio
from importlib import import_module
from pathlib import Path

import msgspec

import remit.wiring.sections  # noqa: F401 - declares the settings of the parts
from remit import Capability, Opening, Remit, Settings
from remit.settings import load
from remit.tools.provider import LimitedProvider
from remit.tools.tool import digests_of
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.listing import FILE, ListedTool, PartListing, package_of
from remit.wiring.parts import opened_providers, recipes_of


async def listings() -> dict[Path, bytes]:
    """Return the content of each file, of the parts that have one."""
    async with Remit(settings=_settings(), work=False) as remit:
        opening = remit.runtime.opening()
        return {
            Path(str(import_module(package_of(part)).__file__)).with_name(FILE): _text(await _listing(part, opening))
            for part in FIRST_PARTY
            if part.tools or part.recipes
        }


def _settings() -> Settings:
    """Return settings under which every tool is listed."""
    return load(cwd=Path.cwd(), file=None, env={}, flags={"journal.url": ":memory:", "web.search": ["ddg_html"]})


async def _listing(part: Capability, opening: Opening) -> PartListing:
    recipes = tuple(load().outline for load in recipes_of([part]).values())
    if not part.tools:
        return PartListing(recipes=recipes)
    tools = [
        ListedTool(
            meta=meta,
            digests=digests_of(meta),
            blocks=isinstance(provider, LimitedProvider) and provider.slots(meta.name) is not None,
        )
        for provider in opened_providers(part, opening)
        for meta in await provider.list_tools()
    ]
    return PartListing(tools=tuple(tools), recipes=recipes)


def _text(listing: PartListing) -> bytes:
    return msgspec.json.format(msgspec.json.encode(listing), indent=1) + b"\n"


if __name__ == "__main__":
    for file, text in asyncio.run(listings()).items():
        file.write_bytes(text)
