"""What the old journals were made with: tools, recipes and a plan, as their author kept them since."""

from __future__ import annotations

from typing import Any, Final

from remit import EvidenceCandidate, Run, ToolResult, recipe, tool

RULES: Final = [
    {"id": "charge", "effect": "allow", "tools": ["shop.charge"]},
    {"id": "never", "effect": "deny", "tools": ["shop.refuse"]},
]
LARGE: Final = 9_000
CHARGED: Final[list[int]] = []
"""What was charged in this process."""

PLAN: Final[dict[str, Any]] = {
    "version": "taskgraph-v1",
    "name": "orders",
    "inputs": {"number": {"type": "integer"}},
    "nodes": [
        {"id": "look", "tool": "shop.look", "args": {"number": "${inputs.number}"}},
        {"id": "go", "wait": {"signal": "go"}},
        {"id": "charge", "tool": "shop.charge", "args": {"number": "${look.value}"}, "after": ["go"]},
    ],
    "output": {"looked": "${look.value}", "charged": "${charge.value}"},
}


@tool("shop.look", level="L0", version="1")
def look(number: int) -> ToolResult:
    """Look an order up."""
    common: dict[str, Any] = {"source": "shop", "retrieved_at": 1}
    page = EvidenceCandidate(kind="http_body_preview", text=f"order {number}", **common)
    picture = EvidenceCandidate(kind="tool_output", data=b"\x89picture%d" % number, **common)
    return ToolResult(number + 1, (page, picture))


@tool("shop.charge", level="L1")
def charge(number: int) -> int:
    """Charge an order; not idempotent."""
    CHARGED.append(number)
    return number * 10


@tool("shop.pay", level="L1")
def pay(amount: int) -> str:
    """Pay; asks a person."""
    return f"paid {amount}"


@tool("shop.text", level="L0")
def text(letter: str) -> str:
    """A text too large for an event."""
    return letter * LARGE


@tool("shop.refuse", level="L1")
def refuse() -> None:
    """Never allowed."""


@tool("shop.shape", level="L0", version="2")
def shape(size: int, colour: str = "red") -> str:
    """Had no colour when the journal was made."""
    return f"{size} {colour}"


@recipe("part")
async def part(run: Run, number: int) -> int:
    """Part of another recipe."""
    return int((await run.call("shop.look", {"number": number})).value)


@recipe("every")
async def every(run: Run, number: int) -> dict[str, Any]:
    """Every kind of effect that ends by itself."""
    looked = (await run.call("shop.look", {"number": number})).value
    charged = (await run.call("shop.charge", {"number": looked})).value
    long = (await run.call("shop.text", {"letter": "x"})).value
    both = await run.gather(run.call("shop.look", {"number": 5}), run.call("shop.look", {"number": 6}))
    refused = await run.attempt("shop.refuse", {})
    await run.now()
    chance = await run.random()
    name = await run.uuid()
    await run.sleep(0.01)
    inner = await run.child(part(number=8))
    return {
        "charged": charged,
        "long": len(long),
        "both": [outcome.value for outcome in both],
        "refused": refused.code.name if refused.code else "",
        "chance": chance < 1,
        "name": len(str(name)),
        "inner": inner,
    }


@recipe("fails")
async def fails(run: Run) -> None:
    """Ends with an error."""
    await run.now()
    msg = "no such order"
    raise ValueError(msg)


@recipe("waits")
async def waits(run: Run, large: str = "") -> Any:
    """Looks, then waits for a signal."""
    await run.call("shop.look", {"number": len(large)})
    return await run.wait_signal("go")


@recipe("pays")
async def pays(run: Run, amount: int) -> str:
    """Asks before it pays."""
    return str((await run.call("shop.pay", {"amount": amount})).value)


@recipe("asks")
async def asks(run: Run) -> bool:
    """Asks a person."""
    answer = await run.confirm("Ship it?", details={"order": 7})
    return answer.approved


@recipe("doubts")
async def doubts(run: Run, number: int) -> int:
    """Charges; the worker may die in it."""
    return int((await run.call("shop.charge", {"number": number})).value)


@recipe("pinned", version="1")
async def pinned(run: Run) -> int:
    """Met a worker with another version of it, which may not run it."""
    await run.now()
    await run.wait_signal("go")
    return 1


@recipe("drifts", version="2")
async def drifts(run: Run) -> str:
    """Began as version 1."""
    first = (await run.call("shop.shape", {"size": 1})).value
    await run.wait_signal("go")
    return str(first)


TOOLS: Final = (look, charge, pay, text, refuse, shape)
RECIPES: Final = (part, every, fails, waits, pays, asks, doubts, pinned, drifts)
