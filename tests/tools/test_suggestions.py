from __future__ import annotations

from remit.tools.catalog import MAX_LISTED, listed, suggestion


def test_close_names_are_suggested_best_first() -> None:
    known = ["web.search", "fs.read", "sandbox.exec", "web_search"]
    assert suggestion("web.serch", known) == "Did you mean web.search or web_search?"
    assert suggestion("FS.READ", known) == "Did you mean fs.read?"


def test_no_more_than_three_names_are_suggested() -> None:
    assert suggestion("a.tool", [f"a.tool{each}" for each in range(9)]).count("a.tool") == 3


def test_without_a_close_name_the_list_is_pointed_at() -> None:
    assert suggestion("zzz", ["web.search"]) == "`remit tools` lists the tools."
    assert suggestion("", []) == "`remit tools` lists the tools."


def test_a_huge_name_costs_no_more_than_a_long_one() -> None:
    assert suggestion("x" * 10_000_000, ["web.search"]) == "`remit tools` lists the tools."


def test_names_are_listed_up_to_a_limit() -> None:
    assert listed([]) == ""
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(str(each) for each in range(MAX_LISTED)).endswith(", 11")
    assert listed(str(each) for each in range(MAX_LISTED + 1)).endswith(", 11 and 1 more")
    assert listed(str(each) for each in range(MAX_LISTED + 3)).endswith(", 11 and 3 more")
