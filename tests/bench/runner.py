"""`python -m tests.bench.runner`: what a turn of a run costs, beside openai-agents with tracing off, and what stays of it.

Both run the same agents over a model that hands out what was made before: nothing but the runner is measured. CPU time of
one process. In a round each case is run once by each side, in reversed order every other round; garbage collection frozen
and off within. A ratio is the median of the rounds' ratios, with its quartiles: wide ones say that the machine was busy.

Memory: 500 streamed runs at once, several times, each time to their end. What is held after the collector has run is
compared with what was held after the first time.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from antiphon import Agent, Model, ModelResponse, ModelSettings, Runner, Usage, function_tool
from antiphon.testing import ScriptedModel, assistant_message, function_call

GOAL = 4.0  # how many times less CPU than the peer
LEFT = 100  # bytes a run that may stay: counters and caches that grow by a word
Run: TypeAlias = Callable[["Script"], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """A run: so many turns, the last of which says that it is done; `deltas` more than the script has, in each turn."""

    turns: int
    streamed: bool
    deltas: int = 0


CASES = {
    "plain, one turn": Case(1, False),
    "plain, a tool in each of 20 turns": Case(20, False),
    "streamed, one turn": Case(1, True),
    "streamed, a tool in each of 20 turns": Case(20, True),
    "streamed, 20 turns, 1,000 deltas in each": Case(20, True, 1000),
}


# --- what the model says ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Script:
    """What a model says in each turn, whole and as events."""

    case: Case
    outputs: list[list[Any]]
    events: list[list[Any]]


async def script(case: Case) -> Script:
    """Return the script of a case: a call in each turn, then a text."""
    calls = [[function_call("look", {"text": "x"}, call_id=f"call_{turn}")] for turn in range(case.turns - 1)]
    outputs: list[list[Any]] = [*calls, [assistant_message("done")]]
    model = ScriptedModel(outputs)
    asked: Any = (None, "x", ModelSettings(), [], None, [], None)
    events = [[event async for event in model.stream_response(*asked)] for _ in outputs]
    return Script(case, outputs, [longer(one, case.deltas) for one in events])


def longer(events: list[Any], deltas: int) -> list[Any]:
    """Return a stream whose first delta comes so many times more."""
    place = next(n for n, event in enumerate(events) if event.type.endswith(".delta"))
    return [*events[:place], *[events[place]] * deltas, *events[place:]]


class Ready(Model):
    """Hands out answers that are there already."""

    def __init__(self, said: Script) -> None:
        self.said, self.turn = said, -1

    async def get_response(self, *asked: Any, **more: Any) -> ModelResponse:
        self.turn += 1
        return ModelResponse(output=self.said.outputs[self.turn], usage=Usage(requests=1), response_id=None)

    async def stream_response(self, *asked: Any, **more: Any) -> AsyncIterator[Any]:
        self.turn += 1
        for event in self.said.events[self.turn]:
            yield event


# --- the two sides ---------------------------------------------------------------------------------------------------


@function_tool
async def look(text: str) -> str:
    return text


async def ours(said: Script) -> Any:
    """Run with antiphon."""
    agent = Agent("A", model=Ready(said), tools=[look])
    if not said.case.streamed:
        return await Runner.run(agent, "go", max_turns=said.case.turns)
    result = Runner.run_streamed(agent, "go", max_turns=said.case.turns)
    async for _ in result.stream_events():
        pass
    return result


def peer() -> Run:
    """Return what runs with openai-agents."""
    import agents
    from agents.usage import Usage as TheirUsage

    class TheirReady(agents.Model):
        def __init__(self, said: Script) -> None:
            self.said, self.turn = said, -1

        async def get_response(self, *asked: Any, **more: Any) -> agents.ModelResponse:
            self.turn += 1
            usage = TheirUsage(requests=1)
            return agents.ModelResponse(output=self.said.outputs[self.turn], usage=usage, response_id=None)

        async def stream_response(self, *asked: Any, **more: Any) -> AsyncIterator[Any]:
            self.turn += 1
            for event in self.said.events[self.turn]:
                yield event

    agents.set_tracing_disabled(True)
    tool = agents.function_tool(look_as_theirs)
    config = agents.RunConfig(tracing_disabled=True)

    async def theirs(said: Script) -> Any:
        agent: Any = agents.Agent("A", model=TheirReady(said), tools=[tool])
        if not said.case.streamed:
            return await agents.Runner.run(agent, "go", max_turns=said.case.turns, run_config=config)
        result = agents.Runner.run_streamed(agent, "go", max_turns=said.case.turns, run_config=config)
        async for _ in result.stream_events():
            pass
        return result

    return theirs


async def look_as_theirs(text: str) -> str:
    return text


look_as_theirs.__name__ = "look"


# --- cost ------------------------------------------------------------------------------------------------------------


async def seconds(run: Run, said: Script) -> float:
    """Return the CPU seconds of a case, run as often as makes a time that can be measured."""
    times = max(1, 20 // said.case.turns)
    gc.collect()
    before = time.process_time()
    for _ in range(times):
        result = await run(said)
        if result.final_output != "done":
            raise AssertionError(f"the run ended with {result.final_output!r}")
    return (time.process_time() - before) / times


async def ratios(rounds: int) -> dict[str, list[float]]:
    """Return, for each case, how many times our CPU the peer takes, one number a round."""
    theirs = peer()
    scripts = {name: await script(case) for name, case in CASES.items()}
    for said in scripts.values():  # both sides fill their caches
        await seconds(ours, said)
        await seconds(theirs, said)
    found: dict[str, list[float]] = {name: [] for name in CASES}
    with no_collections():
        for number in range(rounds):
            for name, said in list(scripts.items())[:: -1 if number % 2 else 1]:
                sides = (ours, theirs) if number % 2 else (theirs, ours)
                spent = {side: await seconds(side, said) for side in sides}
                found[name].append(spent[theirs] / spent[ours])
    return found


@contextmanager
def no_collections() -> Generator[None]:
    """Switch the collector off, for all but what is asked of it."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def told(name: str, found: list[float]) -> str:
    """Return a line about a case."""
    ratio = statistics.median(found)
    low, _, high = statistics.quantiles(found, n=4)
    verdict = "yes" if ratio >= GOAL else "NO"
    return f"{name:42} {ratio:5.1f} times less CPU ({low:.1f} to {high:.1f}; ≥ {GOAL:.0f}: {verdict})"


# --- memory ----------------------------------------------------------------------------------------------------------


async def crowds(run: Run, said: Script, runs: int, times: int, measure: Callable[[], int]) -> list[int]:
    """Return what is held after each of several crowds of runs has ended."""
    held: list[int] = []
    for _ in range(times):
        results = await asyncio.gather(*(run(said) for _ in range(runs)))
        if any(result.final_output != "done" for result in results):
            raise AssertionError("a run did not end as it must")
        del results
        await asyncio.sleep(0)  # what ended is let go of in the loop's next step
        gc.collect()
        held.append(measure())
    return held


def traced() -> int:
    """Return the bytes that Python objects hold."""
    return tracemalloc.get_traced_memory()[0]


def resident() -> int:
    """Return the bytes of this process that are in memory. Source: proc(5), statm."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(runs: int, times: int) -> Iterator[str]:
    """Yield lines about what stays of many runs at once: first of the process, then of the objects in it."""
    said = asyncio.run(script(Case(2, True, 100)))
    if Path("/proc/self/statm").exists():
        first, *_, last = asyncio.run(crowds(ours, said, runs, times, resident))
        yield f"resident: {(last - first) / 1024:+.0f} KiB after {times - 1} more crowds of {runs} ({last >> 20} MiB)"
    tracemalloc.start()
    try:
        first, *_, last = asyncio.run(crowds(ours, said, runs, times, traced))
    finally:
        tracemalloc.stop()
    left = (last - first) / (times - 1) / runs
    yield f"objects: {left:+.1f} B a run stay (≤ {LEFT} B: {'yes' if left <= LEFT else 'NO'})"


def main() -> None:
    """Print both."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=9, help="how often each case is run by each side; at least 2")
    options.add_argument("--runs", type=int, default=500, help="how many runs at once for the memory; 0: none")
    given = options.parse_args()
    for name, found in asyncio.run(ratios(max(2, given.rounds))).items():
        print(told(name, found), flush=True)
    for line in memory(given.runs, 5) if given.runs else ():
        print(line, flush=True)


if __name__ == "__main__":
    main()
