from __future__ import annotations

import pytest

from remit.codes import Code
from remit.http.access import SCOPES, Access
from remit.http.problem import HttpProblem


def test_a_scope_allows_itself_and_no_other() -> None:
    access = Access("ann", frozenset({"read", "call"}))
    assert {scope for scope in SCOPES if access.allows(scope)} == {"read", "call"}


def test_admin_stands_for_every_scope() -> None:
    assert all(Access("ann", frozenset({"admin"})).allows(scope) for scope in SCOPES)


def test_a_missing_scope_is_refused_by_its_name() -> None:
    access = Access("ann", frozenset({"read"}))
    access.require("read")
    with pytest.raises(HttpProblem, match="scope decide") as raised:
        access.require("decide")
    assert raised.value.code is Code.SCOPE_REQUIRED
