from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import NameInvalidError
from remit.tools.catalog import Catalog, ResolveError
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import key_of, wire_name
from remit.tools.stub import StubProvider

Args = dict[str, Any]


def meta(name: str, **changes: Any) -> ToolMeta:
    return ToolMeta(name=name, provider_id="stub", **({"input_schema": {"type": "object"}} | changes))


def provider(provider_id: str, *names: str | ToolMeta) -> StubProvider:
    return StubProvider([name if isinstance(name, ToolMeta) else meta(name) for name in names], provider_id=provider_id)


async def listed(*providers: StubProvider, **options: Any) -> Catalog:
    catalog = Catalog(providers, **options)
    await catalog.refresh()
    return catalog


def refusal(catalog: Catalog, name: str, args: Args | None = None) -> ResolveError:
    with pytest.raises(ResolveError) as error:
        catalog.lookup(name, args or {})
    return error.value


# --- names


@pytest.mark.parametrize("name", ["web.search", "web__search", "web_search"])
async def test_a_tool_answers_to_its_full_name_its_wire_name_and_its_key(name: str) -> None:
    catalog = await listed(provider("stub", "web.search", "web.fetch"))
    args = {"query": "x"}
    tool, given = await catalog.resolve(name, args)
    assert tool.meta.name == "web.search"
    assert given is args


async def test_a_known_name_is_resolved_without_suspending() -> None:
    catalog = await listed(provider("stub", "web.search"))
    call = catalog.resolve("web.search", {})
    with pytest.raises(StopIteration) as end:
        call.send(None)
    assert end.value.value[0].meta.name == "web.search"


async def test_an_unknown_name_is_refused_with_what_may_have_been_meant() -> None:
    catalog = await listed(provider("stub", "web.search", "fs.read"))
    error = refusal(catalog, "web.serch")
    assert error.code is Code.UNKNOWN_TOOL
    assert error.remedy == "Did you mean web.search or web_search?"
    assert refusal(catalog, "web__serch").remedy == "Did you mean web__search?"
    with pytest.raises(ResolveError):
        await catalog.resolve("web.serch", {})


async def test_the_tools_are_listed_by_name_with_the_quarantined_among_them() -> None:
    catalog = await listed(provider("stub", "b.b", meta("a.a", input_schema=None)), provider("builtin", "c.c"))
    tools = await catalog.tools()
    assert [tool.meta.name for tool in tools] == ["a.a", "b.b", "c.c"]
    assert [tool.quarantined is None for tool in tools] == [False, True, True]


async def test_a_tool_can_be_looked_at_even_if_it_is_withheld() -> None:
    catalog = await listed(provider("stub", meta("a.a", input_schema=None)))
    known = catalog.known("a.a")
    assert known is not None
    assert known.quarantined
    assert catalog.known("a__a") is known
    assert catalog.known("b.b") is None


# --- keys (contract: tickets, "Names")


async def github(*names: str) -> Catalog:
    return await listed(provider("mcp_github", *(f"mcp.github.{name}" for name in names)))


async def test_a_key_that_covers_one_tool_runs_it_with_its_arguments_untouched() -> None:
    catalog = await github("list_issues")
    args = {"operation": "anything", "repo": "x"}
    tool, given = catalog.lookup("github", args)
    assert tool.meta.name == "mcp.github.list_issues"
    assert given is args


async def test_a_key_that_covers_several_takes_the_tool_from_the_operation() -> None:
    catalog = await github("list_issues", "create_issue")
    args = {"operation": "create_issue", "title": "x"}
    tool, given = catalog.lookup("github", args)
    assert tool.meta.name == "mcp.github.create_issue"
    assert given == {"title": "x"}
    assert args == {"operation": "create_issue", "title": "x"}


@pytest.mark.parametrize("args", [{}, {"operation": "delete_repo"}, {"operation": 3}, {"operation": ["list_issues"]}])
async def test_without_a_valid_operation_the_choices_are_named(args: Args) -> None:
    error = refusal(await github("list_issues", "create_issue"), "github", args)
    assert error.code is Code.INVALID_TOOL_STEP
    assert error.remedy == "Set args.operation to one of: create_issue, list_issues."
    given = "is not one of them" if args else "args.operation is missing"
    assert error.reason.startswith("the key github covers 2 tools and ")
    assert error.reason.endswith(given)


async def test_operations_that_share_their_last_part_go_by_full_name() -> None:
    catalog = await listed(provider("mcp_web", "mcp.web.a"), provider("stub", "w.eb_a", "w_eb.a"))
    assert "w.eb_a" in (await catalog.resolve("w.eb_a", {}))[0].meta.name
    tool, _ = catalog.lookup("w_eb_a", {"operation": "eb_a"})
    assert tool.meta.name == "w.eb_a"
    tool, _ = catalog.lookup("w_eb_a", {"operation": "a"})
    assert tool.meta.name == "w_eb.a"


async def test_two_tools_of_one_key_whose_last_parts_agree_are_told_apart_by_full_name() -> None:
    catalog = await listed(provider("mcp_web_get", "mcp.web_get.get"), provider("stub", "web.get"))
    error = refusal(catalog, "web_get")
    assert error.remedy == "Set args.operation to one of: mcp.web_get.get, web.get."
    assert catalog.lookup("web_get", {"operation": "web.get"})[0].meta.name == "web.get"


async def test_a_quarantined_tool_still_counts_among_those_a_key_covers() -> None:
    catalog = await listed(provider("mcp_git", "mcp.git.log", meta("mcp.git.push", input_schema=None)))
    assert refusal(catalog, "git").code is Code.INVALID_TOOL_STEP
    assert refusal(catalog, "git", {"operation": "push"}).code is Code.TOOL_QUARANTINED
    assert catalog.lookup("git", {"operation": "log"})[0].meta.name == "mcp.git.log"


segments = st.sampled_from(["a", "b", "a_b", "b_c", "c"])
names = st.one_of(
    st.lists(segments, min_size=2, max_size=3).map(".".join),
    st.builds(lambda server, tool: f"mcp.{server}.{tool}", segments, st.sampled_from(["x", "yY", "z-z", "a"])),
)


@given(st.sets(names, min_size=1, max_size=8))
async def test_every_tool_can_be_reached_by_each_of_its_names(every: set[str]) -> None:
    servers = {name.split(".")[1] for name in every if name.startswith("mcp.")}
    providers = [
        provider(f"mcp_{server}", *(name for name in every if name.startswith(f"mcp.{server}."))) for server in servers
    ]
    catalog = await listed(*providers, provider("stub", *(name for name in every if not name.startswith("mcp."))))
    for name in every:
        assert catalog.lookup(name, {})[0].meta.name == name
        assert catalog.lookup(wire_name(name), {})[0].meta.name == name
        rivals = [each for each in every if key_of(each) == key_of(name)]
        last = [each.rpartition(".")[2] for each in rivals]
        own = name.rpartition(".")[2]
        choice = {} if len(rivals) == 1 else {"operation": own if last.count(own) == 1 else name}
        tool, given = catalog.lookup(key_of(name), choice)
        assert tool.meta.name == name
        assert given == {}


# --- several providers for one name


@pytest.mark.parametrize(
    ("order", "winner"),
    [
        (["builtin", "mcp_*", "stub"], "builtin"),
        (["stub", "builtin"], "stub"),
        (["st*"], "stub"),
        (["nobody"], "web"),
        ([], "web"),
    ],
)
async def test_the_order_of_providers_decides_who_serves_a_name(order: list[str], winner: str) -> None:
    catalog = await listed(
        provider("web", "web.search"), provider("stub", "web.search"), provider("builtin", "web.search"), order=order
    )
    tool, _ = catalog.lookup("web.search", {})
    assert tool.meta.provider_id == winner
    assert set(catalog.shadowed["web.search"]) == {"web", "stub", "builtin"} - {winner}


async def test_who_the_order_does_not_name_comes_after_as_registered() -> None:
    catalog = await listed(
        provider("zeta", "a.a", "b.b"), provider("alpha", "a.a", "b.b"), provider("stub", "b.b"), order=["stub"]
    )
    assert catalog.lookup("a.a", {})[0].meta.provider_id == "zeta"
    assert catalog.lookup("b.b", {})[0].meta.provider_id == "stub"
    assert catalog.shadowed == {"a.a": ("alpha",), "b.b": ("zeta", "alpha")}


ITEMS = {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}


@pytest.mark.parametrize(
    ("gives", "difference"),
    [
        ({"type": "array"}, "own's result is of type array, stub's of type object"),
        ({"type": "object", "properties": {"results": {}}}, "own's result has no items, as stub's has"),
        (ITEMS, ""),
        ({"type": "object"}, ""),
        ({}, ""),
        (None, ""),
        ({"type": "array", "properties": True}, ""),
        (True, ""),
    ],
)
async def test_a_tool_that_gives_another_form_than_those_in_whose_place_it_came_is_named(
    gives: Any, difference: str
) -> None:
    schemas = {"web": ITEMS, "stub": ITEMS, "own": gives}
    providers = [
        StubProvider([meta("web.search", output_schema=schema)], {"web.search": dict}, provider_id=provider_id)
        for provider_id, schema in schemas.items()
    ]
    catalog = await listed(*providers, order=["own", "stub", "web"])
    assert dict(catalog.unlike) == ({"web.search": difference} if difference else {})


async def test_the_safest_may_be_chosen_by_level_then_risk_then_order() -> None:
    writes = meta("a.a", capability_level=Level.L1, risk_level=Risk.WRITE)
    unknown = meta("a.a", capability_level=Level.L1, risk_level=Risk.UNKNOWN)
    reads = meta("a.a", capability_level=Level.L0, risk_level=Risk.UNKNOWN)
    harmless = meta("a.a", capability_level=Level.L1, risk_level=Risk.READ_ONLY)
    by_level = await listed(provider("builtin", writes), provider("stub", reads), choose="safest")
    assert by_level.lookup("a.a", {})[0].meta.provider_id == "stub"
    by_risk = await listed(provider("builtin", unknown), provider("stub", writes), choose="safest")
    assert by_risk.lookup("a.a", {})[0].meta.provider_id == "stub"
    by_promise = await listed(provider("builtin", writes), provider("stub", harmless), choose="safest")
    assert by_promise.lookup("a.a", {})[0].meta.provider_id == "stub"
    by_order = await listed(provider("stub", writes), provider("builtin", writes), choose="safest")
    assert by_order.lookup("a.a", {})[0].meta.provider_id == "builtin"


async def test_a_quarantined_choice_is_withheld_and_not_answered_by_the_next_best() -> None:
    catalog = await listed(provider("builtin", meta("a.a", input_schema=None)), provider("stub", "a.a"))
    error = refusal(catalog, "a.a")
    assert error.code is Code.TOOL_QUARANTINED
    assert "builtin" in error.remedy
    assert "null" in error.reason
    with pytest.raises(ResolveError, match="withheld"):
        await catalog.resolve("a.a", {})


async def test_a_tool_with_an_unusable_name_is_withheld_under_that_name_and_takes_nobody_elses() -> None:
    catalog = await listed(provider("builtin", meta("web__search"), meta("NOT A NAME")), provider("stub", "web.search"))
    assert catalog.lookup("web__search", {})[0].meta.name == "web.search"
    assert refusal(catalog, "NOT A NAME").code is Code.TOOL_QUARANTINED
    blocking = await listed(provider("builtin", meta("web_search")), provider("stub", "web.search"))
    assert blocking.lookup("web_search", {})[0].meta.name == "web.search"


async def test_a_server_that_offers_anothers_tools_changes_nothing_for_them() -> None:
    evil = provider("mcp_evil", "mcp.github.list", "mcp.github.more", meta("web.search", capability_level=Level.L0))
    others = provider("mcp_github", "mcp.github.list"), provider("builtin", "web.search")
    catalog = await listed(evil, *others, choose="safest")
    for name in ("mcp.github.list", "github", "web.search", "web_search"):
        assert catalog.lookup(name, {})[0].meta.provider_id in {"mcp_github", "builtin"}
    error = refusal(catalog, "mcp.github.more")
    assert error.code is Code.TOOL_QUARANTINED
    assert error.reason == "mcp.github.more is withheld: the provider mcp_evil cannot offer mcp.github.more"
    alone = await listed(*others)
    assert catalog.version == alone.version


async def test_two_providers_of_one_id_are_refused() -> None:
    with pytest.raises(NameInvalidError, match="two providers are called stub"):
        Catalog([provider("builtin"), provider("stub"), provider("stub")])
    with pytest.raises(NameInvalidError):
        Catalog([StubProvider(), type("Bad", (StubProvider,), {"provider_id": "Not An Id"})()])


async def test_arguments_no_schema_declares_are_refused_unless_the_catalog_is_open() -> None:
    declared = meta("a.a", input_schema={"type": "object", "properties": {}})
    strict, lenient = await listed(provider("stub", declared)), await listed(provider("stub", declared), closed=False)
    assert strict.lookup("a.a", {})[0].input.problems({"b": 1})
    assert lenient.lookup("a.a", {})[0].input.problems({"b": 1}) == []


# --- version


async def test_the_version_is_that_of_what_can_be_called() -> None:
    first = await listed(provider("stub", "a.a", "b.b"))
    same = await listed(provider("mcp_x"), provider("builtin", "b.b"), provider("stub", "a.a"))
    assert first.version == same.version
    more = await listed(provider("stub", "a.a", "b.b", "c.c"))
    other = await listed(provider("stub", "a.a", meta("b.b", input_schema={"type": "object", "properties": {}})))
    withheld = await listed(provider("stub", "a.a", "b.b", meta("c.c", input_schema=None)))
    assert len({first.version, more.version, other.version}) == 3
    assert withheld.version == first.version
