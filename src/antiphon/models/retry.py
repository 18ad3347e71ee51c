"""When a request is tried again: settings, policies, and what a policy is told.

Nothing is retried without a policy. A policy is a callable, sync or async, from a `RetryPolicyContext` to a bool or a
`RetryDecision`; `retry_policies` makes the usual ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from inspect import isawaitable
from typing import Any, TypeAlias

from antiphon.errors import BadInput, ProviderError

# Names of errors: ours, Python's, and those of SDKs and HTTP clients, which a model of the caller's may raise. Source: openai
# 3.57, from which LiteLLM's are derived, and httpx2 2.16.
NETWORK = frozenset(
    {"ConnectionFailed", "ConnectionError", "APIConnectionError", "NetworkError", "RemoteProtocolError"}
)
TIMEOUTS = frozenset({"TimedOut", "TimeoutError", "APITimeoutError", "TimeoutException"})


@dataclass
class ModelRetryBackoffSettings:
    """How long to wait where neither the provider nor the policy says: seconds, and what they grow by.

    None stands for 0.25 s, at most 2 s, doubled each time, with jitter of an eighth up or down.
    """

    initial_delay: float | None = None
    max_delay: float | None = None
    multiplier: float | None = None
    jitter: bool | None = None

    def __post_init__(self) -> None:
        for name in ("initial_delay", "max_delay", "multiplier"):
            value = getattr(self, name)
            if value is not None and not value >= 0:  # nor NaN
                raise BadInput(f"{name} is {value!r}: it is at least 0")


@dataclass
class ModelRetrySettings:
    """How often to try again (`max_retries`: beside the first time), after how long, and when: as `policy` says."""

    max_retries: int | None = None
    backoff: ModelRetryBackoffSettings | Mapping[str, Any] | None = None
    policy: RetryPolicy | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.backoff, Mapping):
            self.backoff = ModelRetryBackoffSettings(**self.backoff)

    @classmethod
    def of(cls, settings: ModelRetrySettings | Mapping[str, Any] | None) -> ModelRetrySettings | None:
        """Return the settings, which a mapping may say too."""
        return cls(**settings) if isinstance(settings, Mapping) else settings

    @property
    def delays(self) -> ModelRetryBackoffSettings:
        """The backoff, read; all None where none was given."""
        return self.backoff if isinstance(self.backoff, ModelRetryBackoffSettings) else ModelRetryBackoffSettings()

    def resolve(self, override: ModelRetrySettings | None) -> ModelRetrySettings:
        """Return these settings with what `override` says over them."""
        if override is None:
            return self
        told = {name: value for name, value in vars(override.delays).items() if value is not None}
        backoff = ModelRetryBackoffSettings(**{**vars(self.delays), **told})
        retries = self.max_retries if override.max_retries is None else override.max_retries
        none = self.backoff is None and override.backoff is None
        return ModelRetrySettings(retries, None if none else backoff, override.policy or self.policy)

    def to_json_dict(self) -> dict[str, Any]:
        """Return the settings as JSON data, without the policy."""
        backoff = None if self.backoff is None else asdict(self.delays)
        return {"max_retries": self.max_retries, "backoff": backoff}


@dataclass
class ModelRetryNormalizedError:
    """What an error says, whoever raised it. `retry_after` is seconds."""

    status_code: int | None = None
    error_code: str | None = None
    message: str | None = None
    request_id: str | None = None
    retry_after: float | None = None
    is_abort: bool = False
    is_network_error: bool = False
    is_timeout: bool = False


@dataclass
class ModelRetryAdvice:
    """What the provider's side says about trying again. `suggested`: None where it says nothing."""

    suggested: bool | None = None
    retry_after: float | None = None
    replay_safety: str | None = None
    reason: str | None = None
    normalized: ModelRetryNormalizedError | None = None
    response_started: bool = False


@dataclass
class ModelRetryAdviceRequest:
    """What advice is asked about: the error of attempt number `attempt`, from 1."""

    error: Exception
    attempt: int
    stream: bool
    previous_response_id: str | None = None
    conversation_id: str | None = None


@dataclass
class RetryDecision:
    """Whether to try again, after how many seconds (None: as the provider says, else the backoff), and why."""

    retry: bool
    delay: float | None = None
    reason: str | None = None


@dataclass
class RetryPolicyContext:
    """What a policy is told: the error of attempt number `attempt`, from 1, of a request from which nothing came."""

    error: Exception
    attempt: int
    max_retries: int
    stream: bool
    normalized: ModelRetryNormalizedError
    provider_advice: ModelRetryAdvice | None = None
    previous_response_id: str | None = None
    conversation_id: str | None = None

    @property
    def stateful_request(self) -> bool:
        """Whether the request goes on from something that the provider stores."""
        return bool(self.previous_response_id or self.conversation_id)

    @property
    def asked_wait(self) -> float | None:
        """The seconds that the provider asks to wait; None where it does not say."""
        advice = self.provider_advice or ModelRetryAdvice()
        return self.normalized.retry_after if advice.retry_after is None else advice.retry_after


RetryPolicy: TypeAlias = Callable[[RetryPolicyContext], "bool | RetryDecision | Awaitable[bool | RetryDecision]"]


def advise(error: BaseException) -> ModelRetryAdvice | None:
    """Return what an error of a backend says about trying again; None for any other."""
    if not isinstance(error, ProviderError):
        return None
    return ModelRetryAdvice(error.transient, error.retry_after, reason=str(error), normalized=normalize(error))


def normalize(error: BaseException) -> ModelRetryNormalizedError:
    """Return what `error` says; also of an SDK's error, by the attributes that they share."""
    chain = list(_chain(error))
    named = {cls.__name__ for one in chain for cls in type(one).__mro__}
    return ModelRetryNormalizedError(
        status_code=_first(chain, "status_code", int),
        error_code=_first(chain, "code", str),
        message=str(error),
        request_id=_first(chain, "request_id", str),
        retry_after=_first(chain, "retry_after", (int, float)),
        is_network_error=not named.isdisjoint(NETWORK),
        is_timeout=not named.isdisjoint(TIMEOUTS),
    )


async def decide(policy: RetryPolicy, context: RetryPolicyContext) -> RetryDecision:
    """Return what `policy` decides."""
    said = policy(context)
    value = await said if isawaitable(said) else said
    return value if isinstance(value, RetryDecision) else RetryDecision(bool(value))


class _Policies:
    """Makes the usual policies."""

    def never(self) -> RetryPolicy:
        """Return the policy that never tries again."""
        return lambda context: False

    def provider_suggested(self) -> RetryPolicy:
        """Return the policy that does as the provider's side advises."""

        def policy(context: RetryPolicyContext) -> RetryDecision:
            advice = context.provider_advice or ModelRetryAdvice()
            return RetryDecision(bool(advice.suggested), advice.retry_after, advice.reason)

        return policy

    def network_error(self) -> RetryPolicy:
        """Return the policy that tries again where there was no connection, it broke, or it took too long."""
        return lambda context: context.normalized.is_network_error or context.normalized.is_timeout

    def retry_after(self) -> RetryPolicy:
        """Return the policy that tries again where the provider says when."""

        def policy(context: RetryPolicyContext) -> RetryDecision:
            delay = context.normalized.retry_after
            return RetryDecision(delay is not None, delay)

        return policy

    def http_status(self, statuses: Iterable[int]) -> RetryPolicy:
        """Return the policy that tries again after one of these statuses."""
        among = frozenset(statuses)
        return lambda context: context.normalized.status_code in among

    def all(self, *policies: RetryPolicy) -> RetryPolicy:
        """Return the policy that tries again where all of `policies` do; the last delay and reason count."""

        async def policy(context: RetryPolicyContext) -> RetryDecision:
            decisions = [await decide(one, context) for one in policies]
            refusal = next((one for one in decisions if not one.retry), None)
            return refusal or _joined(decisions)

        return policy

    def any(self, *policies: RetryPolicy) -> RetryPolicy:
        """Return the policy that tries again where one of `policies` does; the last delay and reason count."""

        async def policy(context: RetryPolicyContext) -> RetryDecision:
            decisions = [await decide(one, context) for one in policies]
            return _joined([one for one in decisions if one.retry])

        return policy


retry_policies = _Policies()


def _joined(decisions: list[RetryDecision]) -> RetryDecision:
    delays = [one.delay for one in decisions if one.delay is not None]
    reasons = [one.reason for one in decisions if one.reason]
    return RetryDecision(bool(decisions), delays[-1] if delays else None, reasons[-1] if reasons else None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__


def _first(chain: list[BaseException], name: str, kind: Any) -> Any:
    found = (vars(one).get(name) for one in chain)
    return next((value for value in found if isinstance(value, kind)), None)
