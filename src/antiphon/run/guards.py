"""Input guardrails beside a run: the first that trips stops it, wherever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from antiphon.exceptions import InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered

from .agent import Agent
from .awaiting import together
from .guardrails import InputGuardrail, InputGuardrailResult, OutputGuardrail
from .reading import expect
from .state import RunState


class Guards:
    """Runs guardrails as tasks while the body goes on. One that trips or fails cancels the body and is raised by it.

    It is for one task: the one that enters it, which must be the one that leaves it.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[InputGuardrailResult]] = []
        self._running = 0
        self._body: asyncio.Task[Any] | None = None
        self._error: BaseException | None = None
        self._cancelled = False
        self._asked = 0

    async def __aenter__(self) -> Guards:
        self._body = asyncio.current_task()
        self._asked = self._body.cancelling() if self._body is not None else 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._cancelled or self._body is None:
            return
        mine = self._body.uncancel() <= self._asked
        if mine and self._error is not None and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise self._error from None

    def start(
        self, guardrails: Iterable[InputGuardrail[Any]], agent: Agent[Any], said: Any, state: RunState[Any]
    ) -> None:
        """Start guardrails on `said`, the run's input."""
        for guardrail in guardrails:
            task = asyncio.ensure_future(checked(guardrail, agent, said, state))
            task.add_done_callback(self._ended)
            self._running += 1
            self._tasks.append(task)

    @property
    def running(self) -> bool:
        """Whether one has not said yet what it found."""
        return self._running > 0

    async def settle(self) -> None:
        """Wait until all have said what they found. Raises what the first of them says against the run."""
        self.raise_known()
        if not self._tasks:
            return
        tasks, self._tasks = self._tasks, []  # one that fails from here on is raised, and cancels nobody
        await together(tasks)

    def raise_known(self) -> None:
        """Raise what is known against the run."""
        if self._error is not None:
            raise self._error

    def _ended(self, task: asyncio.Task[InputGuardrailResult]) -> None:
        self._running -= 1
        if task.cancelled() or task.exception() is None or self._error is not None:
            return
        self._error = task.exception()
        if task in self._tasks and self._body is not None and not self._body.done():
            self._cancelled = True
            self._body.cancel()


def all_of(kind: type[Any], maker: str, *several: Sequence[Any] | None) -> list[Any]:
    """Return the guardrails of an agent and of the run. Raises UserError for what is none, such as a bare function."""
    found = [one for some in several for one in some or ()]
    for one in found:
        expect(one, kind, "a guardrail", f"a function with @{maker}")
    return found


async def checked(
    guardrail: InputGuardrail[Any], agent: Agent[Any], said: Any, state: RunState[Any]
) -> InputGuardrailResult:
    """Return what a guardrail finds in the run's input; the state keeps it. Raises where it trips."""
    found = await guardrail.run(agent, said, state.context)
    state.input_guardrail_results.append(found)
    if found.output.tripwire_triggered:
        raise InputGuardrailTripwireTriggered(found)
    return found


async def check_output(
    guardrails: Sequence[OutputGuardrail[Any]], agent: Agent[Any], output: Any, state: RunState[Any]
) -> None:
    """Ask the guardrails of the final output, all at once; the state keeps what they found. Raises where one trips."""

    async def one(guardrail: OutputGuardrail[Any]) -> None:
        found = await guardrail.run(state.context, agent, output)
        state.output_guardrail_results.append(found)
        if found.output.tripwire_triggered:
            raise OutputGuardrailTripwireTriggered(found)

    if guardrails:
        await together([one(guardrail) for guardrail in guardrails])
