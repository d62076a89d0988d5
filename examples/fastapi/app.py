"""A FastAPI application with Remit in it: jobs begin by request, and people answer their questions there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from remit import Options, Remit, RemitError, Run, recipe, tool


@tool("desk.refund", level="L1")
def refund(customer: str, cents: int) -> str:
    """Refund a customer."""
    return f"refunded {cents} cents to {customer}"


@recipe("give_back")
async def give_back(run: Run, customer: str, cents: int) -> str:
    """Refund a customer once a person agrees."""
    return await run.call(refund, customer=customer, cents=cents)


class Order(BaseModel):
    """What is to be refunded."""

    customer: str
    cents: int


class Answer(BaseModel):
    """A person's answer, with the digest of the question that he saw."""

    digest: str
    approve: bool


remit = Remit("desk.db", tools=[refund], recipes=[give_back])


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Keep Remit open while the application runs: it works on jobs, also on those of before a crash."""
    async with remit:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/refunds", status_code=202)
async def begin(order: Order, user: str) -> dict[str, str]:
    """Begin a job; it is durable when this returns."""
    job = await remit.start(give_back(order.customer, order.cents), Options(principal=user))
    return {"job": job.id}


@app.get("/refunds/{job}")
async def look(job: str) -> dict[str, object]:
    """Show where a job is, and what it asks."""
    try:
        row = await remit.job(job).row()
    except RemitError as error:
        raise HTTPException(error.code.http, f"{error.code.name}: {error.message}") from error
    asked = [{"id": each.confirmation, "digest": each.digest} for each in await remit.job(job).questions()]
    return {"state": row.state, "questions": asked}


@app.post("/questions/{question}")
async def answer(question: str, given: Answer, user: str) -> dict[str, str]:
    """Answer a question as the user who is logged in."""
    verdict = "approve" if given.approve else "deny"
    decided = await remit.service.confirmations.decide(question, verdict, digest=given.digest, by=user)
    return {"state": decided.state}
