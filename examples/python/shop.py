"""Tools of one's own: one reads, one writes and takes its context, and a recipe uses both and a model."""

from remit import CallContext, Remit, Run, recipe, run_sync, tool

PAID = {"ada": 700}
BANK: dict[str, int] = {}


@tool("shop.paid", level="L0")
def paid(customer: str) -> int:
    """What a customer paid last, in cents."""
    return PAID.get(customer, 0)


@tool("shop.refund", level="L1", idempotent=True)
def refund(ctx: CallContext, customer: str, cents: int) -> str:
    """Give a customer money back."""
    BANK[ctx.idempotency_key] = cents  # a repeated call has the same key, so it pays once
    return f"refunded {cents} to {customer}"


@recipe("give_back")
async def give_back(run: Run, customer: str) -> str:
    """Refund what a customer paid last."""
    cents = await run.call(paid, customer)
    await run.sleep(0.1)  # make it 20, and kill the process meanwhile: `remit resume last` goes on
    return await run.call(refund, customer=customer, cents=cents)


@recipe("apologise")
async def apologise(run: Run, customer: str) -> str:
    """Refund a customer, and write a sentence about it."""
    done = await run.child(give_back(customer))
    answer = await run.model(f"Tell {customer} in one sentence: {done}.")
    return answer.text


if __name__ == "__main__":
    rule = {"effect": "allow", "tools": ["shop.refund"], "when": {"cents": {"max": 1000}}}
    print(run_sync(give_back("ada"), Remit(":memory:", tools=[paid, refund], policy=[rule])))
