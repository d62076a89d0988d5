import pytest

from scripts.check_forwards import findings


def _line(body: str, base: str = "") -> list[str]:
    return findings({"a.py": f"class Store{base}:\n    {body}\n"})


@pytest.mark.parametrize(
    "body",
    ["def size(self): return self.rows.size()", "async def put(self, row, *, at): await self.rows.put(row, at=at)"],
)
def test_a_method_that_passes_all_to_a_public_target_is_found(body: str) -> None:
    [problem] = _line(body)
    assert problem.startswith("a.py:2: Store.")
    assert "only forwards to self.rows." in problem


@pytest.mark.parametrize(
    ("body", "base"),
    [
        ("def size(self): return self._rows.size()", ""),
        ("def put(self, row): self.rows.put(row, 1)", ""),
        ("def put(self, row): self.rows.put()", ""),
        ("def size(self): return self.count()", ""),
        ("@property\n    def size(self): return self.rows.size()", ""),
        ("def resume(self): self.wire.resume()", "(asyncio.Protocol)"),
    ],
)
def test_what_adds_something_is_declared_or_hides_its_target_stays(body: str, base: str) -> None:
    assert _line(body, base) == []


@pytest.mark.parametrize("port", ["class Port(Protocol):", "class Base:", "class Wider(Store):"])
def test_what_a_port_a_base_or_a_subclass_names_stays(port: str) -> None:
    base = "(Base)" if "Base" in port else ""
    port += "\n    def size(self): 'The size.'"
    assert findings({"a.py": port, "b.py": f"class Store{base}:\n    def size(self): return self.rows.size()"}) == []
