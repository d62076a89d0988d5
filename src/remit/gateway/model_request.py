"""A model call on its way through the gateway: what the caller wants, and what the stages found out.

The sum that a principal may spend on models in a day, over all jobs and sessions of the journal.

The sums are those of the journal (sums.py), so no resume resets them, and a question costs the same however many jobs
the day has had. What this process has announced counts from then on, even where the journal's reader lags behind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.clock import DAY
from remit.errors import ProviderError
from remit.gateway.budget import Budget, Spent
from remit.gateway.model_budgets import Account, Alarm, Alarms, ModelBudget, Questioner, account_of
from remit.gateway.sums import ModelSums
from remit.gateway.turns import TurnLine
from remit.models.faults import ModelFault
from remit.models.message import Message
from remit.models.port import Model
from remit.models.prompt import OutputForm, Sampling, ToolSpec
from remit.models.reply import ModelReply, TokenUsage, Watch
from remit.models.thread import KnownPrompts, Thread
from remit.policy.decision import CallerKind
from remit.policy.overlay import Overlay
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import MODEL, key_of
from remit.tools.provider import CallContext, JobFacts, ToolResult
from remit.tools.schema import compile_schema
from remit.tools.tool import Tool

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.kinds import CommandStarted
    from remit.models.names import ModelName
    from remit.models.port import Sending


_LONGEST_MS: Final = 3_600_000
_BYTES_PER_TOKEN: Final = 3
"""Bytes of a request that make a token at least; JSON and most languages take more."""
OUTPUT: Final = 4_096
"""Output tokens that are reserved if the caller sets no limit."""
_SEEN: Final = ("model", "temperature", "effort", "max_output_tokens", "tools", "new", "prompt", "wire")
"""Members that rules see of a question in the place of arguments."""
_SCHEMA: Final = {"type": "object", "properties": {name: {} for name in _SEEN}, "additionalProperties": False}
_INPUT: Final = compile_schema(_SCHEMA, closed=True)


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller wants to ask."""

    model: str
    """Its name; empty: the default one."""
    wanted: str = ""
    """The model that the question named, if `model` is asked in its place."""
    thread: Thread
    step: str
    principal: str
    tools: tuple[str, ...] = ()
    """Full names of tools to offer, or patterns of them."""
    extra: tuple[ToolSpec, ...] = ()
    """Tools that are not the catalog's: the caller answers them itself."""
    choice: str = "auto"
    sampling: Sampling = Sampling()
    output: OutputForm | None = None
    caller: CallerKind = "session"
    recipe: str = ""
    overlays: tuple[Overlay, ...] = ()
    """Rules that the caller adds to the policy."""
    attempt: int = 1
    lost: int = 0
    """Attempts before this one that do not count: those of other models, and those that ended with their worker."""
    confirmation: str | None = None
    known: KnownPrompts = msgspec.field(default_factory=lambda: KnownPrompts(set(), set()))
    spent: Spent = msgspec.field(default_factory=Spent)
    budget: Budget = Budget()
    skills: dict[str, str] = {}
    """The skills that the question is under, with the digest of each."""
    hash: str = ""
    """Digest of what was asked for."""
    asks: bool = True
    """Whether a person is asked if policy wants that; else the question is refused."""
    job: JobFacts | None = None
    """The job that asks."""
    line: TurnLine | None = None
    """Where it stands in line if a limit refuses the question for now."""
    via: Model | None = None
    """The model itself, if the caller passes on a request as it came; the caller alone asks again."""

    @property
    def failed(self) -> int:
        """Attempts at this model that will have failed if this one does."""
        return self.attempt - self.lost


class ModelAttempt:
    """One attempt to ask; each field is set by the stage named beside it."""

    __slots__ = (
        "claim",
        "fault",
        "model",
        "over",
        "passed",
        "prompt_hash",
        "reply",
        "request",
        "reserved_cost",
        "reserved_tokens",
        "sending",
        "started",
        "watch",
    )

    request: ModelRequest
    watch: Watch
    passed: dict[str, str]  # resolve_model: models before it that cannot be asked here, each with the reason
    model: Model  # resolve_model
    sending: Sending  # resolve_model
    prompt_hash: str  # resolve_model
    claim: BudgetClaim  # reserve
    over: Mapping[str, str]  # reserve: budgets beyond which a person has to let it go, in words by their keys
    reserved_tokens: int  # reserve
    reserved_cost: float  # reserve
    started: CommandStarted  # announce_model
    reply: ModelReply | None  # invoke
    fault: ModelFault | None  # invoke

    def __init__(self, request: ModelRequest, watch: Watch) -> None:
        self.request = request
        self.watch = watch
        self.reserved_tokens, self.reserved_cost = 0, 0.0
        self.over, self.passed = {}, {}
        self.reply = self.fault = None

    def facts(self) -> dict[str, Any]:
        """The call as rules and people see it: everything that is new in the prompt, and a digest of the rest."""
        request, ask = self.request, self.sending.ask
        fresh = [node.message for node in request.thread.since(request.known.tips.__contains__)]
        return {
            "model": self.model.name.model,
            "temperature": request.sampling.temperature,
            "effort": request.sampling.effort,
            "max_output_tokens": request.sampling.max_output_tokens,
            "tools": [spec.name for spec in ask.tools.specs],
            "new": [_shown(message) for message in fresh if message is not None],
            "prompt": self.prompt_hash,
            "wire": self.sending.hash,
        }


class ModelProvider:
    """The provider of a model call (`remit.tools.provider.ToolProvider`): sends what is prepared, once."""

    def __init__(self, asking: ModelAttempt, provider_id: str) -> None:
        self.provider_id = provider_id
        self._asking = asking

    async def list_tools(self) -> list[ToolMeta]:
        """A model is found by its name, not listed."""
        return []

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:  # noqa: ARG002 - the port's
        """Set `reply` or `fault`. Raises ProviderError for a fault."""
        asking = self._asking
        try:
            asking.reply = await asking.model.send(asking.sending, asking.watch)
        except ModelFault as fault:
            asking.fault = fault
            raise ProviderError(fault.reason, cause=None, code=fault.code) from fault
        return ToolResult()

    async def close(self) -> None:
        """The model stays open for the next call."""


def model_tool(asking: ModelAttempt, name: ModelName) -> Tool:
    """A model in the form in which policy and people know what can be called: `model.<provider>`, level L2."""
    provider = name.provider.replace("-", "_")
    full = f"{MODEL}.{provider}"
    meta = ToolMeta(
        name=full,
        provider_id=f"{MODEL}_{provider}",
        description="Asks a model.",
        input_schema=_SCHEMA,
        capability_level=Level.L2,
        risk_level=Risk.READ_ONLY,
        side_effects=False,
        idempotent=True,
        requires_confirm=False,
        timeout_ms=_LONGEST_MS,
    )
    return Tool(
        meta=meta,
        provider=ModelProvider(asking, meta.provider_id),
        input=_INPUT,
        output=None,
        key=key_of(full),
        wire_name="",
        contract_hash="",
        prompt_hash="",
    )


def most_of(sending: Sending, sampling: Sampling) -> TokenUsage:
    """Return the most that an answer to a prepared request may take."""
    return TokenUsage(input=len(sending.body) // _BYTES_PER_TOKEN + 1, output=sampling.max_output_tokens or OUTPUT)


def _shown(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(message)
    return shown


LOOK_S: Final = 30.0
"""Seconds after which an announced call is in the sums."""


class DayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for each principal and day (UTC); None: none."""

    tokens: int | None = None
    cost: float | None = None
    """US dollars."""


class BudgetClaim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a call may take at most."""

    principal: str
    tokens: int
    cost: float
    accounts: tuple[Account, ...] = ()
    """The budgets that it counts for."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names that the sums have for them."""
        return tuple(account.key for account in self.accounts)


class Allowance:
    """Compares the day's sums with its limits."""

    def __init__(self, journal: Journal, limits: DayLimits, budgets: Sequence[ModelBudget] = ()) -> None:
        self.limits = limits
        self.budgets = budgets
        self.alarms = Alarms(journal)
        self.sums = ModelSums(journal)
        self._clock = journal.clock
        self._claims: list[BudgetClaim] = []
        self._announced: dict[str, tuple[BudgetClaim, float]] = {}
        """Calls that the journal holds and the sums may not, by their identifier, and since when."""

    def accounts(self, request: ModelRequest, model: str) -> tuple[Account, ...]:
        """Return the budgets for which a question to a model counts now."""
        if not self.budgets:
            return ()
        now, labels = self._clock.now(), request.job.labels if request.job is not None else {}
        caller = Questioner(request.principal, request.recipe, labels)
        return tuple(
            account_of(budget, now, budget.share(caller)) for budget in self.budgets if budget.fits(caller, model)
        )

    async def standing(self) -> list[tuple[Account, Spent]]:
        """Return each budget of now, and what counts for it as the journal has it; by value where each has its own."""
        current = [account_of(budget, self._clock.now()) for budget in self.budgets]
        days = {day for account in current for day in account.days}
        await self.sums.refresh((), days)
        keys = sorted(self.sums.budget_keys(days))
        accounts = [
            account._replace(share=key.rpartition("\0")[2])
            for account in current
            for key in ([key for key in keys if key.startswith(account.key)] if account.budget.each else [account.key])
        ]
        return [(account, self.sums.of_budget(account.key, account.days)) for account in accounts]

    def alarms_of(self, claim: BudgetClaim) -> list[Alarm]:
        """Return the levels of budgets that are reached with a claim, and with all that is claimed beside it."""
        sums = ((account, self._claimed(account, claim)) for account in claim.accounts)
        return [alarm for account, spent in sums if (alarm := self.alarms.due(account, spent)) is not None]

    def beyond(self, claim: BudgetClaim, approved: Collection[str]) -> dict[str, str]:
        """Return the budgets that a claim goes beyond and that want a person asked, in words by their keys.

        It may go beyond those that are `approved`.
        """
        sums = ((account, self._claimed(account, claim)) for account in claim.accounts if account.key not in approved)
        return {
            account.key: f"budget {account.title}: {account.budget.words(spent)} with what this question may take"
            for account, spent in sums
            if account.budget.asks(spent)
        }

    async def claim(self, claim: BudgetClaim) -> str:
        """Count a call that is about to be announced; why it may not be made, if that would be too much now.

        The claim counts until `release`, or until the sums hold the call that was `announced` for it.
        """
        limits, principal, tokens, cost = self.limits, claim.principal, claim.tokens, claim.cost
        if limits.tokens is None and limits.cost is None and not claim.accounts:
            return ""
        day = self._clock.now() // DAY
        if self.sums.invocation_ids is None:
            self.sums.invocation_ids = set()
        await self.sums.refresh((day,), {day for account in claim.accounts for day in account.days})
        spent_tokens, spent_cost = self._spent(day, principal)
        if limits.tokens is not None and spent_tokens + tokens > limits.tokens:
            took = f"{principal} used {spent_tokens} tokens today, and this call may use {tokens} more"
            return f"{took}; the limit is {limits.tokens}"
        if limits.cost is not None and spent_cost + cost > limits.cost:
            took = f"{principal} spent ${spent_cost:.4f} today and may cost ${cost:.4f} more now"
            return f"{took}; the limit is ${limits.cost:g}"
        for account in claim.accounts:
            spent = self._claimed(account, claim)
            if account.budget.refuses(spent):
                return f"budget {account.title}: {account.budget.words(spent)} with what this call may take"
        self._claims.append(claim)
        return ""

    def announced(self, claim: BudgetClaim, invocation: str) -> None:
        """The journal holds the call."""
        if claim in self._claims:
            self._claims.remove(claim)
            self._announced[invocation] = (claim, self._clock.monotonic())

    def release(self, claim: BudgetClaim) -> None:
        """The call has ended, or was not made."""
        if claim in self._claims:
            self._claims.remove(claim)

    def _claimed(self, account: Account, claim: BudgetClaim) -> Spent:
        """The sum of a budget, with what is claimed and not in the sums yet, this claim included."""
        total, key = self.sums.of_budget(account.key, account.days), account.key
        for other in {*self._under_way(), claim}:
            if key in other.keys:
                total.reserve(other.tokens, other.cost)
        return total

    def _spent(self, day: int, principal: str) -> tuple[int, float]:
        spent = self.sums.spent(day, principal)
        mine = [claim for claim in self._under_way() if claim.principal == principal]
        return spent.tokens + sum(answer.tokens for answer in mine), spent.cost + sum(answer.cost for answer in mine)

    def _under_way(self) -> list[BudgetClaim]:
        """Claims whose calls the sums do not hold yet."""
        now, counted = self._clock.monotonic(), self.sums.invocation_ids or set()
        self._announced = {
            invocation: (claim, at)
            for invocation, (claim, at) in self._announced.items()
            if invocation not in counted and now - at < LOOK_S
        }
        counted.clear()
        return [*self._claims, *(claim for claim, _ in self._announced.values())]
