from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.sandbox.driver import Isolation
from remit.parts.sandbox.limits import least
from remit.parts.sandbox.policy import SandboxPolicy, merged, narrowed
from remit.process.enclosure import LooserError, RunLimits

BASE = SandboxPolicy(network=("example.org", "example.com"))
LIMIT = st.sampled_from(RunLimits.__struct_fields__)


def test_each_layer_makes_it_stricter() -> None:
    skill = {"limits": {"wall_ms": 1_000, "pids": 8}, "network": ["example.com"], "commands": ["python"]}
    found = merged(BASE, skill, {"limits": {"wall_ms": 500}, "network": [], "min_isolation": "kernel"})
    assert (found.limits.wall_ms, found.limits.pids, found.limits.cpu_ms) == (500, 8, BASE.limits.cpu_ms)
    assert found.network == ()
    assert found.commands == {"python"}
    assert found.min_isolation is Isolation.kernel


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ({"limits": {"wall_ms": 2_000}}, "limits.wall_ms"),  # the settings would allow it
        ({"network": ["example.org"]}, "network"),
        ({"commands": ["bash"]}, "commands"),
        ({"min_isolation": "namespaces"}, "min_isolation"),
    ],
)
def test_a_call_cannot_loosen_what_a_skill_tightened(call: dict[str, Any], field: str) -> None:
    skill = {"limits": {"wall_ms": 1_000}, "network": [], "commands": ["python"], "min_isolation": "kernel"}
    with pytest.raises(LooserError) as refused:
        merged(BASE, skill, call)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("layer", "field"),
    [
        ({"limits": {"wall_ms": 60_001}}, "limits.wall_ms"),
        ({"limits": {"memory_bytes": 2**40}}, "limits.memory_bytes"),
        ({"limits": {"wall_ms": 0}}, "limits.wall_ms"),
        ({"limits": {"wall_ms": True}}, "limits.wall_ms"),
        ({"limits": {"wall_ms": "1"}}, "limits.wall_ms"),
        ({"limits": {"wall": 1}}, "limits.wall"),
        ({"limits": 1}, "limits"),
        ({"network": ["evil.example"]}, "network"),
        ({"network": "example.com"}, "network"),
        ({"commands": ["python", "ruby"]}, "commands"),
        ({"min_isolation": "process"}, "min_isolation"),
        ({"min_isolation": "none"}, "min_isolation"),
        ({"min_isolation": 0}, "min_isolation"),
        ({"driver": "container"}, "driver"),
        ({"retry_without_sandbox": True}, "retry_without_sandbox"),
    ],
)
def test_what_is_looser_is_refused_by_its_name(layer: dict[str, Any], field: str) -> None:
    with pytest.raises(LooserError) as refused:
        merged(BASE, layer)
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


LAYER = st.fixed_dictionaries(
    {},
    optional={
        "limits": st.dictionaries(LIMIT, st.integers(0, 2**36), max_size=4),
        "network": st.lists(st.sampled_from(["example.org", "example.com", "evil.example"]), max_size=3),
        "commands": st.lists(st.sampled_from(["python", "bash", "node", "ruby"]), max_size=4),
        "min_isolation": st.sampled_from([level.name for level in Isolation]),
    },
)


def looser(policy: SandboxPolicy, than: SandboxPolicy) -> list[str]:
    """The fields in which a policy lets a program do more than another."""
    found = [name for name in RunLimits.__struct_fields__ if getattr(policy.limits, name) > getattr(than.limits, name)]
    found += ["network"] if set(policy.network) - set(than.network) else []
    found += ["commands"] if policy.commands - than.commands else []
    return found + (["min_isolation"] if policy.min_isolation < than.min_isolation else [])


@given(st.lists(LAYER, min_size=1, max_size=4))
def test_whatever_the_layers_say_each_only_makes_it_stricter(layers: list[dict[str, Any]]) -> None:
    policy = BASE
    for layer in layers:
        try:
            found = merged(policy, layer)
        except LooserError as error:
            top, _, name = error.field.partition(".")
            assert top in layer  # the refusal names what the layer asks for
            assert not name or name in layer["limits"]
            continue
        assert looser(found, policy) == []
        assert merged(found, layer) == found  # a layer twice is a layer once
        for name, value in layer.get("limits", {}).items():
            assert getattr(found.limits, name) == value
        policy = found
    assert looser(policy, BASE) == []


@given(st.dictionaries(LIMIT, st.integers(0, 2**40)))
def test_no_layer_ever_raises_a_limit(asked: dict[str, int]) -> None:
    fits = all(least(name) <= value <= getattr(BASE.limits, name) for name, value in asked.items())
    try:
        found = merged(BASE, {"limits": asked})
    except LooserError:
        assert not fits
    else:
        assert fits
        assert all(getattr(found.limits, name) <= getattr(BASE.limits, name) for name in RunLimits.__struct_fields__)


def test_of_what_skills_leave_and_the_policy_the_least_counts() -> None:
    one = {"limits": {"wall_ms": 1_000, "pids": 10**6}, "network": ["example.com", "other.org"], "commands": ["python"]}
    two = {"limits": {"wall_ms": 90_000, "pids": 8}, "min_isolation": "kernel", "commands": ["python", "ruby"]}
    for layers in ((one, two), (two, one)):
        found = narrowed(BASE, layers)
        assert (found.limits.wall_ms, found.limits.pids) == (1_000, 8)
        assert found.network == ("example.com",)
        assert found.commands == {"python"}
        assert found.min_isolation is Isolation.kernel
    assert narrowed(BASE, ({"min_isolation": "none"},)) == BASE
    with pytest.raises(LooserError):
        merged(narrowed(BASE, (one,)), {"limits": {"wall_ms": 1_001}})


@pytest.mark.parametrize(
    ("layer", "field"),
    [
        ({"limits": {"wal_ms": 1}}, "limits.wal_ms"),
        ({"limits": {"wall_ms": "1"}}, "limits.wall_ms"),
        ({"limits": {"wall_ms": 0}}, "limits.wall_ms"),
        ({"limits": 1}, "limits"),
        ({"network": ["http://example.com"]}, "network"),
        ({"network": 1}, "network"),
        ({"commands": 1}, "commands"),
        ({"min_isolation": "walls"}, "min_isolation"),
        ({"netwrk": []}, "netwrk"),
    ],
)
def test_what_a_skill_says_and_nobody_understands_is_refused(layer: dict[str, Any], field: str) -> None:
    with pytest.raises(LooserError) as refused:
        narrowed(BASE, (layer,))
    assert refused.value.field == field
