"""One model call of a run: what is sent, the attempts, the events that come, and the answer.

    attempt, attempt, … -> the one that counts -> its answer | its events

A stream is tried again only while nothing of it was handed out: its head goes out together with what follows it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from antiphon.backend import close
from antiphon.backend.failed import failure_in, failure_of_code
from antiphon.exceptions import ModelBehaviorError
from antiphon.models.exchange import HELD
from antiphon.models.interface import Model, ModelResponse
from antiphon.models.retry import ModelRetrySettings
from antiphon.models.retrying import Retrying
from antiphon.models.usage import Usage
from antiphon.stream.chunk import fields

from .agent import Agent, ToolsToFinalOutputResult
from .awaiting import returned
from .classify import Offered
from .events import RawResponsesStreamEvent
from .items import ItemHelpers
from .running import Run
from .tracing import Tracing

# the event that ends a stream -> the status of what it holds
TERMINALS = {f"response.{status}": status for status in ("completed", "incomplete", "failed")}
ERRORS = frozenset({"error", "response.error"})


@dataclass(slots=True)
class ModelCall:
    """A call of an agent's model. The answer is the state's last once `events` have ended."""

    run: Run
    agent: Agent[Any]
    tracing: Tracing
    offered: Offered = field(init=False)
    response: ModelResponse | None = None

    async def events(self) -> AsyncGenerator[RawResponsesStreamEvent, None]:
        """Yield the model's events, where it is asked for a stream; then the run has its answer.

        Raises what the model raises.
        """
        run, state = self.run, self.run.state
        if not state.begun:
            state.context.turn_input = ItemHelpers.input_to_new_input_list(state.original_input)
            await run.hooks.agent_start(run.hook_context(), self.agent)
            state.begun = True
        asked, more = await self._asked()
        model, settings = run.model(self.agent), asked[2]
        name = str(getattr(model, "model", None) or type(model).__name__)  # a model need not have a name
        with self.tracing.model(name, type(model).__name__, settings, streamed=run.streamed) as span:
            span.content("gen_ai.input.messages", asked[1])
            tries = Attempts(model, settings.retry, asked, more, run.streamed or run.config.check_events)
            if tries.stream:
                async with aclosing(self._streamed(tries)) as events:
                    async for event in events:
                        yield event
            else:
                with span.current():
                    self.response = await tries.answer()
            response = self._answered(tries.failed)
            span.responded(response)
        await run.hooks.llm_end(state.context, self.agent, response)
        state.asking = False

    async def _asked(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the model is asked: in the order of `Model.get_response`, and by name.

        What is offered is found out last: hooks, instructions and prompt may have prepared the context for that.
        """
        run, agent, context = self.run, self.agent, self.run.state.context
        prompt, more = await agent.get_system_prompt(context), await self._more()
        self.offered = await run.offered(agent)
        data = await run.model_data(agent, prompt)
        context.turn_input = data.input
        await run.hooks.llm_start(context, agent, data.instructions, data.input)
        said = (data.instructions, data.input, run.settings(agent), self.offered.tools)
        return (*said, run.schema(agent), self.offered.handoffs, run.model_tracing), more

    async def _more(self) -> dict[str, Any]:
        kept = self.run.state.conversation
        return {
            "previous_response_id": kept.previous_response_id if kept.conversation_id is None else None,
            "conversation_id": kept.conversation_id,
            "prompt": await self.agent.get_prompt(self.run.state.context),
        }

    async def _streamed(self, tries: Attempts) -> AsyncGenerator[RawResponsesStreamEvent, None]:
        told: list[Any] = []
        items: list[Any] = []
        final: Any = None
        problem: Any = None
        status = ""
        async with closing(tries.events()) as events:
            async for event in events:
                kind = getattr(event, "type", None)  # whatever a model of the caller's gives
                if kind in TERMINALS:
                    final, status = event.response, TERMINALS[kind]
                elif kind in ERRORS:
                    problem = event
                elif kind == "response.output_item.done":
                    items.append(event.item)
                elif not isinstance(kind, str):
                    raise ModelBehaviorError(
                        f"the model streamed {type(event).__name__}: a Responses event is expected"
                    )
                if self.run.config.check_events:
                    told.append(event)
                yield RawResponsesStreamEvent(event)
        if final is None and problem is not None:
            raise failure_in({"error": problem})
        self.response = _final(final, items, status)
        if told:
            from antiphon.models.checks import check_events

            check_events(told)

    def _answered(self, failed: int) -> ModelResponse:
        """Return the answer, counted with the attempts that failed, and kept."""
        response, state = _checked(self.response), self.run.state
        response.usage.requests += failed
        state.context.usage.add(response.usage)
        state.model_responses.append(response)
        return response


def _checked(response: Any) -> ModelResponse:
    """Return an answer that is one. Raises ModelBehaviorError for anything else, and for one that failed the failure."""
    if response is None:
        raise ModelBehaviorError("Model did not produce a final response!")
    if not isinstance(response, ModelResponse):
        raise ModelBehaviorError(f"the model returned {type(response).__name__}: a ModelResponse is expected")
    output, usage = vars(response)["output"], vars(response)["usage"]
    kinds = f"{type(output).__name__} and {type(usage).__name__}"
    if not isinstance(output, list | tuple) or not isinstance(usage, Usage):
        raise ModelBehaviorError(f"the model's answer has {kinds} as output and usage: a list and a Usage are expected")
    if response.status == "failed":
        raise failure_of_code("server_error", "the model's response failed")
    return response


def _final(response: Any, items: list[Any], status: str) -> ModelResponse:
    """Return the answer of a stream. Its items are those that were done, where the last event does not repeat them.

    `status`: what the last event says it is, if the response itself does not say worse. Raises ModelBehaviorError where
    there was no last event, and what the response failed with.
    """
    if response is None:
        raise ModelBehaviorError("Model did not produce a final response!")
    if "failed" in (status, fields(response).get("status")):
        raise failure_in(response)
    answer = ModelResponse.of(response)
    answer.status = answer.status if status == "completed" else status
    answer.output = answer.output or items
    return answer


async def final_by_tools(agent: Agent[Any], context: Any, results: list[Any], *, text: bool) -> Any:
    """Return whether what the tools returned is the final output, as the agent says; None where it says nothing.

    `text`: the agent's output is text, so the tool's is made it.
    """
    if not results:
        return None
    behavior = agent.tool_use_behavior
    found = ToolsToFinalOutputResult(False)
    if behavior == "stop_on_first_tool":
        found = ToolsToFinalOutputResult(True, results[0].output)
    elif isinstance(behavior, Mapping):
        names: frozenset[str] = frozenset(behavior["stop_at_tool_names"])  # pyright: ignore[reportUnknownArgumentType]  # a StopAtTools
        last = next((one for one in results if {one.tool.name, one.tool.qualified_name} & names), None)
        found = found if last is None else ToolsToFinalOutputResult(True, last.output)
    elif callable(behavior):
        found = await returned(behavior(context, results), ToolsToFinalOutputResult, "tool_use_behavior")
    if found.is_final_output and text:
        found = ToolsToFinalOutputResult(True, str(found.final_output))
    return found


# --- attempts, for models that do not make them by themselves --------------------------------------------------------


@dataclass(slots=True)
class Attempt:
    """One attempt: what came so far, what follows, and why there is nothing of it."""

    rest: AsyncGenerator[Any, None]
    held: list[Any] = field(default_factory=list[Any])
    failure: BaseException | None = None


@dataclass(slots=True)
class Attempts:
    """The attempts of one model call: a single one where no policy says otherwise, or the model retries by itself.

    `stream`: whether events are asked for, or a whole answer. `failed`: how many came to nothing before the last.
    """

    model: Model
    settings: ModelRetrySettings | None
    asked: tuple[Any, ...]
    more: dict[str, Any]
    stream: bool
    failed: int = 0

    async def answer(self) -> Any:
        """Return the answer."""
        if self._is_single:
            return await self.model.get_response(*self.asked, **self.more)
        async with aclosing(self._of_many()) as given:
            return await anext(given)

    def events(self) -> AsyncIterator[Any]:
        """Yield the events of the attempt that counts. What it failed with is raised after them."""
        return self.model.stream_response(*self.asked, **self.more) if self._is_single else self._of_many()

    @property
    def _is_single(self) -> bool:
        from antiphon.models.call import CallModel
        from antiphon.models.fallback import FallbackModel

        settings = self.settings
        asked = settings is not None and settings.policy is not None and settings.max_retries
        return not asked or isinstance(self.model, CallModel | FallbackModel)

    async def _of_many(self) -> AsyncGenerator[Any, None]:
        stored = (self.more.get("previous_response_id"), self.more.get("conversation_id"))
        how: Retrying[Attempt] = Retrying(self.settings, self.model.get_retry_advice, self.stream, *stored)
        self.failed = -1
        made = await how.run(self._begun)
        for event in made.held:
            yield event
        if made.failure is not None:
            raise made.failure
        async with aclosing(made.rest) as rest:
            async for event in rest:
                yield event

    async def _begun(self) -> Attempt:
        """Return an attempt that has come to what can be handed out: an event, or a whole answer."""
        self.failed += 1
        attempt = Attempt(self._ask())
        try:
            async for event in attempt.rest:
                attempt.held.append(event)
                if getattr(event, "type", None) not in HELD:
                    break
        except Exception as error:  # noqa: BLE001  # the policy says what is to be done about it
            attempt.failure = error
        return attempt

    async def _ask(self) -> AsyncGenerator[Any, None]:
        """Yield the events of one attempt, closed at the end, however that comes; or its answer."""
        if not self.stream:
            yield await self.model.get_response(*self.asked, **self.more)
            return
        async with closing(self.model.stream_response(*self.asked, **self.more)) as events:
            async for event in events:
                yield event


@asynccontextmanager
async def closing(events: AsyncIterator[Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
    """Give the events, and close them at the end; a model's own iterator may have nothing to close."""
    try:
        yield events
    finally:
        await close(events)
