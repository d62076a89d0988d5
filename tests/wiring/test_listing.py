"""What parts offer, as data beside their code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from remit.capability import Capability
from remit.codes import Code
from remit.errors import ProviderError
from remit.threads import Threads
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, ToolResult, Toolset
from remit.tools.tool import admit, digests_of
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.listing import ListedTool, ProviderOnUse, listing_of, outlines_of, package_of
from remit_testing.providers import call_context
from scripts.listings import listings
from tests.opened import OpenRemit

META = ToolMeta(
    name="shop.pay",
    provider_id="shop",
    input_schema={"type": "object", "properties": {"cents": {"type": "integer"}}},
    output_schema={"type": "integer"},
)


async def test_the_files_say_what_the_code_does() -> None:
    """After a change that is meant, `make tables` writes them again."""
    for file, text in (await listings()).items():
        assert file.read_bytes() == text, file


@pytest.mark.parametrize("part", [part for part in FIRST_PARTY if part.tools], ids=lambda part: part.name)
def test_tools_of_a_listing_are_of_its_providers(part: Capability) -> None:
    assert {row.meta.provider_id for row in listing_of(package_of(part)).tools} == {*part.provider_ids}


def test_every_recipe_of_a_part_has_its_line() -> None:
    names = {reference.rpartition(":")[2] for part in FIRST_PARTY for reference in part.recipes}
    assert set(outlines_of(FIRST_PARTY)) == names


async def test_a_list_of_tools_and_recipes_opens_no_provider(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.wiring.parts.opened_providers", lambda *_: ())
    async with remit_in(flags={"tools.only": ["fs"]}) as remit:
        assert "fs.edit" in {tool.name for tool in await remit.service.tools.views()}
        assert "research_report" in [outline.name for outline in remit.service.recipes.outlines()]


class Shop(Toolset):
    """Takes money."""

    def __init__(self) -> None:
        super().__init__("shop", (META,))
        self.closed = 0

    async def invoke(self, name: str, args: dict[str, int], ctx: CallContext) -> ToolResult:
        return ToolResult(args["cents"])

    async def close(self) -> None:
        self.closed += 1


def on_use(make: Callable[[], Shop], *, blocks: bool = False) -> ProviderOnUse:
    return ProviderOnUse("shop", [ListedTool(meta=META, digests=digests_of(META), blocks=blocks)], make, Threads())


async def test_a_provider_is_opened_with_its_first_call_and_closed_once() -> None:
    context = call_context()
    opened: list[Shop] = []

    def make() -> Shop:
        opened.append(Shop())
        return opened[-1]

    provider = on_use(make)
    assert await provider.list_tools() == (META,)
    assert opened == []
    for cents in (1, 2):
        assert await provider.invoke("shop.pay", {"cents": cents}, context) == ToolResult(cents)
    assert await provider.preview("shop.pay", {}) is None
    with pytest.raises(ProviderError, match="cannot tell"):
        await provider.reconcile("shop.pay", {}, context)
    await provider.close()
    assert [shop.closed for shop in opened] == [1]
    with pytest.raises(ProviderError) as raised:
        await provider.invoke("shop.pay", {}, context)
    assert raised.value.cause is Code.ProviderClosed


async def test_one_that_was_never_called_is_closed_unopened() -> None:
    def never() -> Shop:
        raise AssertionError

    await on_use(never).close()


async def test_calls_that_block_hold_one_of_the_threads() -> None:
    assert on_use(Shop).slots("shop.pay") is None
    assert on_use(Shop, blocks=True).slots("shop.pay") is not None


async def test_a_schema_is_compiled_for_the_first_call() -> None:
    tool, plain = admit(META, on_use(Shop), closed=True), admit(META, Shop(), closed=True)
    assert (tool.contract_hash, tool.prompt_hash) == (plain.contract_hash, plain.prompt_hash)
    assert tool.output is not None
    assert tool.input.admits({"cents": 1})
    assert not tool.input.admits({"cents": 1, "more": 2})
    assert tool.input.problems({"cents": "1"}) == plain.input.problems({"cents": "1"}) != []
    assert (tool.input.hash, tool.output.schema) == (plain.input.hash, META.output_schema)
