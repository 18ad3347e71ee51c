"""One model call of a run: what is sent, the events that come, and the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from antiphon.exceptions import MaxTurnsExceeded, ModelBehaviorError, UserError
from antiphon.models.errors import failure_of_code
from antiphon.models.interface import ModelResponse
from antiphon.models.usage import Usage
from antiphon.stream.chunk import fields

from .agent import Agent, ToolsToFinalOutputResult
from .attempts import attempts_of, closing
from .awaiting import settled
from .classify import Offered
from .events import RawResponsesStreamEvent
from .items import ItemHelpers
from .running import Run
from .tracing import Tracing

TERMINALS = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(slots=True)
class ModelCall:
    """A call of an agent's model. `response` is there once `events` have ended."""

    run: Run
    agent: Agent[Any]
    tracing: Tracing
    offered: Offered | None = None
    response: ModelResponse | None = None

    async def events(self) -> AsyncGenerator[RawResponsesStreamEvent, None]:
        """Yield the model's events, where it is asked for a stream; then the run has its answer.

        Raises MaxTurnsExceeded where the run has had all its turns, and what the model raises.
        """
        run, state = self.run, self.run.state
        self._begin_turn()
        self.offered = await run.offered(self.agent)
        if not state.begun:
            state.context.turn_input = ItemHelpers.input_to_new_input_list(state.original_input)
            await run.hooks.agent_start(run.hook_context(), self.agent)
            state.begun = True
        asked = await self._asked()
        model, settings = run.model(self.agent), asked[2]
        name = str(getattr(model, "model", None) or type(model).__name__)  # a model need not have a name
        with self.tracing.model(name, type(model).__name__, settings, streamed=run.streamed) as span:
            span.content("gen_ai.input.messages", asked[1])
            if run.streamed or run.config.check_events:
                async with aclosing(self._streamed(model, asked)) as events:
                    async for event in events:
                        yield event
            else:
                with span.current():
                    more = await self._more()
                    tries = attempts_of(model, settings.retry, asked, more)
                    self.response = await (model.get_response(*asked, **more) if tries is None else tries.answer())
            response = self._answered()
            span.responded(response)
        await run.hooks.llm_end(state.context, self.agent, response)
        state.asking = False

    def _begin_turn(self) -> None:
        run, state = self.run, self.run.state
        if state.max_turns is not None and state.current_turn >= state.max_turns:
            raise MaxTurnsExceeded(f"Max turns ({state.max_turns}) exceeded")
        state.current_turn += 1
        state.conversation.mark()
        state.start_turn()
        state.asking = True
        run.shown, run.continued = 0, False
        for item in state.queued:
            state.turn.append(replace(item, agent=self.agent))
        state.queued.clear()

    async def _asked(self) -> tuple[Any, ...]:
        """Return what the model is asked: in the order of `Model.get_response`."""
        run, agent, context = self.run, self.agent, self.run.state.context
        data = await run.model_data(agent, await agent.get_system_prompt(context))
        context.turn_input = data.input
        await run.hooks.llm_start(context, agent, data.instructions, data.input)
        offered = self.offered
        if offered is None:
            raise AssertionError("a model is called with what the agent offers")
        said = (data.instructions, data.input, run.settings(agent), offered.tools)
        return (*said, run.schema(agent), offered.handoffs, run.model_tracing)

    async def _more(self) -> dict[str, Any]:
        kept = self.run.state.conversation
        return {
            "previous_response_id": kept.previous_response_id if kept.conversation_id is None else None,
            "conversation_id": kept.conversation_id,
            "prompt": await self.agent.get_prompt(self.run.state.context),
        }

    async def _streamed(self, model: Any, asked: tuple[Any, ...]) -> AsyncGenerator[RawResponsesStreamEvent, None]:
        told: list[Any] = []
        items: list[Any] = []
        final: Any = None
        more = await self._more()
        tries = attempts_of(model, asked[2].retry, asked, more)
        async with closing(model.stream_response(*asked, **more) if tries is None else tries.events()) as events:
            async for event in events:
                kind = getattr(event, "type", None)  # whatever a model of the caller's gives
                if kind in TERMINALS:
                    final = event.response
                elif kind == "response.output_item.done":
                    items.append(event.item)
                elif not isinstance(kind, str):
                    raise ModelBehaviorError(
                        f"the model streamed {type(event).__name__}: a Responses event is expected"
                    )
                if self.run.config.check_events:
                    told.append(event)
                yield RawResponsesStreamEvent(event)
        self.response = _final(final, items)
        self.response.usage.requests += 0 if tries is None else tries.failed
        if told:
            from antiphon.models.checks import check_events

            check_events(told)

    def _answered(self) -> ModelResponse:
        """Return the answer, counted and kept."""
        response, state = _checked(self.response), self.run.state
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


def _final(response: Any, items: list[Any]) -> ModelResponse:
    """Return the answer of a stream. Its items are those that were done, where the last event does not repeat them.

    Raises ModelBehaviorError where there was no last event, and what the response failed with.
    """
    if response is None:
        raise ModelBehaviorError("Model did not produce a final response!")
    held = fields(response)
    if held.get("status") == "failed":
        error = fields(held.get("error"))
        raise failure_of_code(str(error.get("code") or "server_error"), str(error.get("message") or "no message"))
    answer = ModelResponse.of(response)
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
        found = await settled(behavior(context, results))
        if not isinstance(found, ToolsToFinalOutputResult):  # pyright: ignore[reportUnnecessaryIsInstance]  # a caller's function
            raise UserError(
                f"tool_use_behavior returned {type(found).__name__}: a ToolsToFinalOutputResult is expected"
            )
    if found.is_final_output and text:
        found = ToolsToFinalOutputResult(True, str(found.final_output))
    return found
