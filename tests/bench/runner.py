"""What a turn of a run costs: `python -m tests.bench.runner`, beside openai-agents with tracing off.

Both run the same agent over a model that only hands out what was made before: nothing but the runner is measured. CPU
time of the process, the best of several rounds in turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from antiphon.agent import Agent
from antiphon.models import Model, ModelResponse, ModelSettings, Usage
from antiphon.run import Runner
from antiphon.testing import ScriptedModel, assistant_message, function_call
from antiphon.tool import function_tool

TURNS = 20
DELTAS = 1000
ROUNDS = 7


def answers() -> list[list[Any]]:
    """Return what the model says: a call in each turn, then a text."""
    calls = [[function_call("look", {"text": "x"}, call_id=f"call_{turn}")] for turn in range(TURNS - 1)]
    return [*calls, [assistant_message("done")]]


async def streams(output: list[list[Any]], deltas: int) -> list[list[Any]]:
    """Return the events of each answer, with as many more deltas as are asked for."""
    model = ScriptedModel(output)
    made: list[list[Any]] = []
    for _ in output:
        asked: Any = (None, "x", ModelSettings(), [], None, [], None)
        events = [event async for event in model.stream_response(*asked)]
        place = next(n for n, event in enumerate(events) if event.type.endswith(".delta"))
        made.append([*events[:place], *[events[place]] * deltas, *events[place:]])
    return made


class Ready(Model):
    """Hands out answers that are there already."""

    def __init__(self, output: list[list[Any]], events: list[list[Any]]) -> None:
        self.output, self.events, self.turn = output, events, -1

    async def get_response(self, *asked: Any, **more: Any) -> ModelResponse:
        self.turn += 1
        return ModelResponse(output=self.output[self.turn], usage=Usage(requests=1), response_id=None)

    async def stream_response(self, *asked: Any, **more: Any) -> AsyncIterator[Any]:
        self.turn += 1
        for event in self.events[self.turn]:
            yield event


def ours(output: list[list[Any]], events: list[list[Any]]) -> tuple[Callable[[], Awaitable[Any]], ...]:
    """Return a plain and a streamed run of ours."""

    @function_tool
    async def look(text: str) -> str:
        return text

    def agent() -> Agent[Any]:
        return Agent("A", model=Ready(output, events), tools=[look])

    async def plain() -> Any:
        return await Runner.run(agent(), "go", max_turns=None)

    async def streamed() -> Any:
        result = Runner.run_streamed(agent(), "go", max_turns=None)
        async for _ in result.stream_events():
            pass
        return result

    return plain, streamed


def theirs(output: list[list[Any]], events: list[list[Any]]) -> tuple[Callable[[], Awaitable[Any]], ...]:
    """Return a plain and a streamed run of openai-agents."""
    import agents
    from agents.usage import Usage as TheirUsage

    class TheirReady(agents.Model):
        def __init__(self) -> None:
            self.turn = -1

        async def get_response(self, *asked: Any, **more: Any) -> agents.ModelResponse:
            self.turn += 1
            return agents.ModelResponse(output=output[self.turn], usage=TheirUsage(requests=1), response_id=None)

        async def stream_response(self, *asked: Any, **more: Any) -> AsyncIterator[Any]:
            self.turn += 1
            for event in events[self.turn]:
                yield event

    agents.set_tracing_disabled(True)

    @agents.function_tool
    async def look(text: str) -> str:
        return text

    def agent() -> agents.Agent[Any]:
        return agents.Agent("A", model=TheirReady(), tools=[look])

    config = agents.RunConfig(tracing_disabled=True)

    async def plain() -> Any:
        return await agents.Runner.run(agent(), "go", max_turns=TURNS, run_config=config)

    async def streamed() -> Any:
        result = agents.Runner.run_streamed(agent(), "go", max_turns=TURNS, run_config=config)
        async for _ in result.stream_events():
            pass
        return result

    return plain, streamed


async def cost(run: Callable[[], Awaitable[Any]]) -> float:
    """Return the CPU seconds of one run."""
    before = time.process_time()
    result = await run()
    spent = time.process_time() - before
    if result.final_output != "done":
        raise AssertionError(f"the run ended with {result.final_output!r}")
    return spent


async def main() -> None:
    """Print the cost of a turn, ours and theirs."""
    output = answers()
    for deltas in (0, DELTAS):
        events = await streams(output, deltas)
        pairs = zip(("plain", "streamed"), ours(output, events), theirs(output, events), strict=True)
        for way, our, their in pairs:
            if way == "plain" and deltas:
                continue
            best = [float("inf"), float("inf")]
            for _ in range(ROUNDS):
                for place, run in enumerate((our, their)):
                    best[place] = min(best[place], await cost(run))
            name = f"{way}, {deltas} deltas more" if deltas else way
            a, b = (1e6 * one / TURNS for one in best)
            print(f"{name:30} antiphon {a:8.0f} µs a turn   openai-agents {b:8.0f} µs a turn   ratio {b / a:.1f}")


if __name__ == "__main__":
    asyncio.run(main())
