"""`ScriptedModel`: one step for each model call, in order; the same answer streamed and not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from antiphon.backend import close
from antiphon.backend.failed import failure_of_code
from antiphon.errors import AntiphonError
from antiphon.models.interface import Model, ModelResponse, ModelTracing
from antiphon.models.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from antiphon.models.settings import ModelSettings
from antiphon.models.usage import Usage
from antiphon.stream.accumulate import plain
from antiphon.stream.emit import make_emitter
from antiphon.stream.snapshot import Snapshots
from antiphon.stream.unfold import unfold

if TYPE_CHECKING:
    from openai.types.responses import Response, ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem


class ModelScriptError(AntiphonError):
    """A script is wrong, or was not followed to its end."""


class InvalidModelStep(ModelScriptError):
    """A step that is none; `input_index` is its place among those given together."""

    def __init__(self, message: str, *, input_index: int) -> None:
        super().__init__(f"step {input_index}: {message}")
        self.input_index = input_index


class UnexpectedModelCall(ModelScriptError):
    """The model was called once more than the script has steps; `call` is that call, `call_index` its place."""

    def __init__(self, message: str, *, call: ModelCall, call_index: int) -> None:
        super().__init__(message)
        self.call = call
        self.call_index = call_index


class UnconsumedModelSteps(ModelScriptError):
    """The test has ended and `remaining_steps` were not asked for."""

    def __init__(self, message: str, *, remaining_steps: int) -> None:
        super().__init__(message)
        self.remaining_steps = remaining_steps


@dataclass(frozen=True)
class ModelCall:
    """What the model was asked once. `input` and `model_settings` are copies: later changes do not show."""

    system_instructions: str | None
    input: Any
    model_settings: ModelSettings
    tools: list[Any]
    output_schema: Any
    handoffs: list[Any]
    tracing: ModelTracing
    previous_response_id: str | None
    conversation_id: str | None
    prompt: Any
    streamed: bool


@dataclass(frozen=True)
class ModelStep:
    """One answer.

    `output`: items, openai objects or mappings. `status` and `incomplete_reason`: how the response ends; one that is
    "failed" raises ServerFailed where it is not streamed. Instead of an output: `error` is raised; `responder` is asked
    with the call and gives the step; `stream_events` are the events of a streamed call as they are, or a function of
    the call that gives them. `retry_advice` goes with `error`.
    """

    output: Sequence[Any] = ()
    usage: Usage | None = None
    response_id: str | None = None
    request_id: str | None = None
    raw_usage: dict[str, Any] | None = None
    status: str = "completed"
    incomplete_reason: str | None = None
    error: BaseException | None = None
    responder: Callable[[ModelCall], Any] | None = None
    stream_events: Sequence[Any] | Callable[[ModelCall], AsyncIterator[Any]] | None = None
    retry_advice: ModelRetryAdvice | None = None

    @classmethod
    def raise_error(cls, error: BaseException, *, retry_advice: ModelRetryAdvice | None = None) -> ModelStep:
        """Return a step that raises `error`."""
        return cls(error=error, retry_advice=retry_advice)

    @classmethod
    def respond(cls, responder: Callable[[ModelCall], Any]) -> ModelStep:
        """Return a step that is made, when its turn comes, from the call; `responder` may be async."""
        return cls(responder=responder)

    @classmethod
    def stream(
        cls, events: Sequence[Any] | Callable[[ModelCall], AsyncIterator[Any]], *, output: Sequence[Any] = ()
    ) -> ModelStep:
        """Return a step with exact events for a streamed call, and `output` for one that is not."""
        return cls(output=output, stream_events=events if callable(events) else tuple(events))


Script: TypeAlias = "ModelStep | ModelResponse | Mapping[str, Any] | Sequence[Any] | BaseException"


@dataclass
class _Advice:
    """What the provider's side says of the errors that the script raises."""

    given: list[tuple[BaseException, ModelRetryAdvice]] = field(default_factory=list[Any])

    def of(self, error: BaseException) -> ModelRetryAdvice | None:
        return next((advice for one, advice in self.given if one is error), None)


class ScriptedModel(Model):
    """A model that follows a script: one step a call, in order.

    A step is a list of output items, a `ModelStep`, a mapping of its fields, a `ModelResponse`, or an exception.
    `default_usage` is that of steps without a usage of their own; else one request without tokens is counted.
    `emit_traces` is accepted for the sake of code that gives it.
    """

    def __init__(
        self, steps: Iterable[Script] = (), *, emit_traces: bool = False, default_usage: Usage | None = None
    ) -> None:
        self._steps = [_step(one, at) for at, one in enumerate(steps)]
        self._emit_traces = emit_traces
        self._default_usage = deepcopy(default_usage)
        self._calls: list[ModelCall] = []
        self._advice = _Advice()

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._calls)} calls, {len(self._steps)} steps left)"

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """What was asked so far, in order."""
        return tuple(self._calls)

    @property
    def first_call(self) -> ModelCall | None:
        """The first call, if there was one."""
        return self._calls[0] if self._calls else None

    @property
    def last_call(self) -> ModelCall | None:
        """The newest call, if there was one."""
        return self._calls[-1] if self._calls else None

    @property
    def remaining_steps(self) -> int:
        """How many steps have not been asked for."""
        return len(self._steps)

    def enqueue(self, step: Script) -> None:
        """Add a step at the end."""
        self._steps.append(_step(step, 0))

    def extend(self, steps: Iterable[Script]) -> None:
        """Add steps at the end: all, or none where one is wrong."""
        self._steps.extend([_step(one, at) for at, one in enumerate(steps)])

    def set_default_usage(self, usage: Usage | None) -> None:
        """Set the usage of steps that have none."""
        self._default_usage = deepcopy(usage)

    def assert_complete(self) -> None:
        """Raise UnconsumedModelSteps where steps are left."""
        if self._steps:
            left = len(self._steps)
            raise UnconsumedModelSteps(f"{left} scripted steps were not asked for", remaining_steps=left)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return the advice that the step gave with this very error."""
        return self._advice.of(request.error)

    async def get_response(self, *said: Any, **more: Any) -> ModelResponse:
        """Return the next answer of the script."""
        call = self._record(False, *said, **more)
        step = await self._next(call)
        response = step_response(step, call, len(self._calls))
        _raise_failure(response)
        answer = ModelResponse.of(response)
        answer.usage = step.usage or Usage(requests=1)
        answer.request_id, answer.raw_usage = step.request_id, step.raw_usage
        return answer

    async def stream_response(self, *said: Any, **more: Any) -> AsyncIterator[Any]:
        """Yield the events of the next answer of the script."""
        call = self._record(True, *said, **more)
        step = await self._next(call)
        if callable(step.stream_events):
            events = step.stream_events(call)
            try:
                async for event in events:
                    yield event
            finally:
                await close(events)
            return
        made = step.stream_events
        for event in made if made is not None else unfold(step_response(step, call, len(self._calls))):
            yield event

    def _record(
        self,
        streamed: bool,
        system_instructions: str | None,
        input: Any,
        model_settings: ModelSettings,
        tools: Sequence[Any],
        output_schema: Any,
        handoffs: Sequence[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> ModelCall:
        given = (system_instructions, deepcopy(input), deepcopy(model_settings), [*tools], output_schema, [*handoffs])
        call = ModelCall(*given, tracing, previous_response_id, conversation_id, deepcopy(prompt), streamed)
        self._calls.append(call)
        return call

    async def _next(self, call: ModelCall) -> ModelStep:
        if not self._steps:
            raise UnexpectedModelCall(
                f"the script has no step for call {len(self._calls)}: add one, or look why the run goes on",
                call=call,
                call_index=len(self._calls) - 1,
            )
        step = self._steps.pop(0)
        while step.responder is not None:
            answer = step.responder(call)
            step = _step(await answer if isinstance(answer, Awaitable) else answer, 0)
        if step.error is not None:
            if step.retry_advice is not None:
                self._advice.given.append((step.error, step.retry_advice))
            raise step.error
        return replace(step, usage=deepcopy(step.usage if step.usage is not None else self._default_usage))


def step_response(step: ModelStep, call: ModelCall, number: int) -> Response:
    """Return the step as a `Response`. Without an id of its own it is named by the number of the call, from 1."""
    usage = step.usage or Usage(requests=1)
    snapshots = Snapshots(
        {"model": "scripted-model", "previous_response_id": call.previous_response_id},
        step.response_id or f"resp_scripted_{number}",
        0,
    )
    made = snapshots.make(
        step.status,
        output=[plain(item) for item in step.output],
        usage=_usage(usage),
        incomplete_details={"reason": step.incomplete_reason} if step.incomplete_reason else None,
        **({"provider_data": {"requests": usage.requests}} if usage.requests != 1 else {}),
    )
    response: Response = make_emitter("openai").response(made)
    return response


def _raise_failure(response: Response) -> None:
    """Raise what a failed response failed with: who did not ask for a stream is not given it."""
    if response.status == "failed":
        raise failure_of_code("server_error", "the script's response failed")


def assistant_message(text: str, *, item_id: str | None = None) -> ResponseOutputMessage:
    """Return a message item with one text. Without an `item_id` the id follows from the text."""
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    part = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=item_id or _id("msg_", text), type="message", role="assistant", status="completed", content=[part]
    )


def function_call(
    name: str,
    arguments: str | Mapping[str, Any],
    *,
    call_id: str,
    item_id: str | None = None,
    namespace: str | None = None,
) -> ResponseFunctionToolCall:
    """Return a function call item; `arguments` is JSON text, or what becomes it."""
    from openai.types.responses import ResponseFunctionToolCall

    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    named: dict[str, Any] = {"namespace": namespace} if namespace is not None else {}
    return ResponseFunctionToolCall(
        id=item_id or _id("fc_", call_id),
        type="function_call",
        call_id=call_id,
        name=name,
        arguments=text,
        status="completed",
        **named,
    )


def reasoning_item(text: str, *, item_id: str | None = None) -> ResponseReasoningItem:
    """Return a reasoning item with one summary."""
    from openai.types.responses import ResponseReasoningItem
    from openai.types.responses.response_reasoning_item import Summary

    return ResponseReasoningItem(
        id=item_id or _id("rs_", text), type="reasoning", summary=[Summary(type="summary_text", text=text)]
    )


def _id(prefix: str, text: str) -> str:
    return prefix + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.input_tokens_details.cached_tokens,
            "cache_write_tokens": usage.input_tokens_details.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.output_tokens_details.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


STATUSES = ("completed", "incomplete", "failed")
_FIELDS = frozenset(one.name for one in fields(ModelStep))


def _step(given: Any, at: int) -> ModelStep:
    """Return what was given as a step. Raises InvalidModelStep where it is none."""
    match given:
        case ModelStep():
            step = given
        case ModelResponse():
            step = ModelStep(
                given.output,
                given.usage,
                given.response_id,
                given.request_id,
                given.raw_usage,
                given.status,
                given.incomplete_reason,
            )
        case BaseException():
            step = ModelStep(error=given)
        case Mapping():
            step = _of_mapping(cast("Mapping[str, Any]", given), at)
        case str() | bytes():
            raise InvalidModelStep(f"{given!r:.60} is text: give [assistant_message({given!r:.60})]", input_index=at)
        case Sequence():
            step = ModelStep(output=tuple(cast("Any", given)))
        case _:
            raise InvalidModelStep(
                f"{type(given).__name__} is no list of items, ModelStep, mapping of its fields, or exception",
                input_index=at,
            )
    _refuse(step, at)
    return replace(step, output=tuple(deepcopy([*step.output])))


def _of_mapping(given: Mapping[str, Any], at: int) -> ModelStep:
    unknown = sorted(set(given) - _FIELDS)
    if unknown:
        raise InvalidModelStep(f"{', '.join(unknown)}: a step has {', '.join(sorted(_FIELDS))}", input_index=at)
    return ModelStep(**given)


def _refuse(step: ModelStep, at: int) -> None:
    """Raise InvalidModelStep for what no answer can be made of."""
    _refuse_kinds(step, at)
    ways = [name for name in ("error", "responder", "stream_events") if getattr(step, name) is not None]
    if len(ways) > 1:
        raise InvalidModelStep(f"{' and '.join(ways)}: a step has one of them", input_index=at)
    if step.output and ways and ways != ["stream_events"]:
        raise InvalidModelStep(f"output and {ways[0]}: a step has one of them", input_index=at)
    if step.retry_advice is not None and step.error is None:
        raise InvalidModelStep("retry_advice goes with an error, and there is none", input_index=at)
    for place, item in enumerate(step.output):
        if not isinstance(plain(item), Mapping):
            raise InvalidModelStep(
                f"output[{place}] is {type(item).__name__}: an item is an openai object or a mapping", input_index=at
            )


def _refuse_kinds(step: ModelStep, at: int) -> None:
    """Raise InvalidModelStep where a field of a step is no such thing as it is called."""
    events: Any = step.stream_events
    error: Any = step.error
    wrong = {
        "output": "no list of items" if isinstance(step.output, str | bytes) or not _is_many(step.output) else None,
        "error": None if error is None or isinstance(error, BaseException) else "no exception",
        "responder": None if step.responder is None or callable(step.responder) else "no function of the call",
        "stream_events": None if events is None or callable(events) or _is_many(events) else "no list of events",
    }
    if step.status not in STATUSES:
        wrong["status"] = f"{step.status!r}, and a response ends as {', '.join(STATUSES)}"
    for name, why in wrong.items():
        if why is not None:
            raise InvalidModelStep(f"{name} is {why}", input_index=at)


def _is_many(value: object) -> bool:
    return isinstance(value, Sequence)
