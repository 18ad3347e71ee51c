"""Python clients of the Responses API, as their users write with them; each takes a job and returns an outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import openai
import pytest
from pydantic import BaseModel

from .jobs import PIXEL, TOOLS, Job, Outcome

SUNNY = "sunny"


class Place(BaseModel):
    """What a structured answer says."""

    city: str
    people: int


def content(job: Job) -> Any:
    """Return the input of a job in the words of the Responses API."""
    if not job.image:
        return job.input
    parts = [
        {"type": "input_text", "text": job.input},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
    ]
    return [{"role": "user", "content": parts}]


def functions(job: Job, said: list[tuple[str, Any]]) -> list[Callable[..., str]]:
    """Return the job's tool as a function that keeps what it was called with."""

    def get_weather(city: str) -> str:
        """The weather of a city."""
        said.append(("get_weather", {"city": city}))
        return SUNNY

    def get_season() -> str:
        """The season of the year."""
        said.append(("get_season", {}))
        return SUNNY

    return [tool for tool in (get_weather, get_season) if tool.__name__ == job.tool]


def outcome_of(response: Any, calls: list[tuple[str, Any]]) -> Outcome:
    """Return what a `Response` shows."""
    texts = {"output_text": "", "refusal": ""}
    for item in response.output:
        for part in item.content if item.type == "message" else ():
            texts[part.type] += part.text if part.type == "output_text" else part.refusal
    usage, details = response.usage, response.incomplete_details
    return Outcome(
        text=texts["output_text"],
        refusal=texts["refusal"],
        reasoning="".join(part.text for item in response.output if item.type == "reasoning" for part in item.summary),
        calls=tuple(calls),
        status=response.status,
        reason=details.reason if details else None,
        usage=(usage.input_tokens, usage.output_tokens, usage.total_tokens) if usage else None,
        object=parsed.model_dump() if (parsed := getattr(response, "output_parsed", None)) is not None else None,
        error=0 if response.error else None,
    )


# --- openai-python ---------------------------------------------------------------------------------------------------

Respond = Callable[[openai.AsyncOpenAI, dict[str, Any]], Awaitable[Any]]


async def create(client: openai.AsyncOpenAI, params: dict[str, Any]) -> Any:
    return await client.responses.create(**_formatted(params))


async def stream(client: openai.AsyncOpenAI, params: dict[str, Any]) -> Any:
    last = None
    async for event in await client.responses.create(**_formatted(params), stream=True):
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            last = event.response
    assert last is not None, "the stream has no terminal event"
    return last


async def helper(client: openai.AsyncOpenAI, params: dict[str, Any]) -> Any:
    last = None
    async with client.responses.stream(**params) as events:
        async for event in events:
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                last = event.response
        if last is None or last.status == "completed":  # its user gets only completed responses from this method
            return await events.get_final_response()
    return last


async def parse(client: openai.AsyncOpenAI, params: dict[str, Any]) -> Any:
    return await client.responses.parse(**params)


async def background(client: openai.AsyncOpenAI, params: dict[str, Any]) -> Any:
    """Ask for a response that is made in the background, and poll it."""
    response = await client.responses.create(**_formatted(params), background=True)
    while response.status in ("queued", "in_progress"):
        await asyncio.sleep(0.05)
        response = await client.responses.retrieve(response.id)
    if response.error is not None:
        asked = httpx2.Request("GET", client.base_url)
        raise openai.APIError(response.error.message, asked, body=None)
    return response


async def resumed(client: openai.AsyncOpenAI, params: dict[str, Any]) -> Any:
    """Ask for such a response as a stream, lose the connection, and go on where it was lost."""
    begun = await client.responses.create(**_formatted(params), background=True, stream=True)
    event: Any = await anext(begun)
    response_id = event.response.id
    event = await anext(begun)
    await begun.close()
    last = None
    rest = await client.responses.retrieve(response_id, stream=True, starting_after=event.sequence_number)
    async for event in rest:
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            last = event.response
    assert last is not None, "the stream has no terminal event"
    return last


def _formatted(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with a JSON schema in the place of a class, which only some methods take."""
    if "text_format" not in params:
        return params
    schema = {**Place.model_json_schema(), "additionalProperties": False}
    rest = {name: value for name, value in params.items() if name != "text_format"}
    return {**rest, "text": {"format": {"type": "json_schema", "name": "place", "strict": True, "schema": schema}}}


def openai_python(respond: Respond) -> Callable[[str, Job], Awaitable[Outcome]]:
    """Return the client that asks by `respond` and answers the calls itself."""

    async def run(url: str, job: Job) -> Outcome:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=job.retries, timeout=30) as client:
            try:
                return await _with_tools(client, respond, job)
            except openai.APIStatusError as error:
                return Outcome(status=None, error=error.status_code)
            except openai.APIError:
                return Outcome(status=None, error=0)

    return run


async def _with_tools(client: openai.AsyncOpenAI, respond: Respond, job: Job) -> Outcome:
    params: dict[str, Any] = {"model": job.model, "input": content(job)}
    params |= {"tools": [TOOLS[job.tool]]} if job.tool else {}
    params |= {"text_format": Place} if job.schema else {}
    said: list[tuple[str, Any]] = []
    for _ in range(4):
        response = await respond(client, params)
        calls = [item for item in response.output if item.type == "function_call"]
        said += [(call.name, json.loads(call.arguments)) for call in calls if response.status == "completed"]
        if not calls or response.status != "completed":
            return _with_object(outcome_of(response, said), job)
        asked = params["input"] if isinstance(params["input"], list) else [{"role": "user", "content": params["input"]}]
        answers = [{"type": "function_call_output", "call_id": call.call_id, "output": SUNNY} for call in calls]
        params["input"] = [*asked, *(item.to_dict() for item in response.output), *answers]
    raise AssertionError("the model never stopped calling")


def _with_object(outcome: Outcome, job: Job) -> Outcome:
    """Return the outcome with the object in the place of its text; methods that do not parse leave that to the caller."""
    if not job.schema or outcome.status != "completed":
        return outcome
    return replace(outcome, text="", object=outcome.object or json.loads(outcome.text))


# --- openai-agents ---------------------------------------------------------------------------------------------------


def openai_agents(streamed: bool) -> Callable[[str, Job], Awaitable[Outcome]]:
    """Return the Runner of openai-agents over its own model for the Responses API."""

    async def run(url: str, job: Job) -> Outcome:
        agents = pytest.importorskip("agents")
        said: list[tuple[str, Any]] = []
        agents.set_tracing_disabled(True)
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=job.retries, timeout=30) as client:
            agent = agents.Agent(
                name="Weather",
                model=agents.OpenAIResponsesModel(job.model, client),
                tools=[agents.function_tool(tool) for tool in functions(job, said)],
                output_type=Place if job.schema else None,
            )
            try:
                result = await _ran(agents.Runner, agent, content(job), streamed)
            except openai.APIStatusError as error:
                return Outcome(status=None, calls=tuple(said), error=error.status_code)
            except (openai.APIError, agents.AgentsException):
                return Outcome(status=None, calls=tuple(said), error=0)
        usage = result.raw_responses[-1].usage
        final = result.final_output
        thought = [item.raw_item for item in result.new_items if item.type == "reasoning_item"]
        return Outcome(
            text="" if job.schema else str(final),
            reasoning="".join(part.text for item in thought for part in item.summary),
            calls=tuple(said),
            usage=(usage.input_tokens, usage.output_tokens, usage.total_tokens),
            object=final.model_dump() if job.schema else None,
        )

    return run


async def _ran(runner: Any, agent: Any, asked: Any, streamed: bool) -> Any:
    if not streamed:
        return await runner.run(agent, asked)
    result = runner.run_streamed(agent, asked)
    async for _ in result.stream_events():
        pass
    return result


# --- LangChain -------------------------------------------------------------------------------------------------------


def langchain(streamed: bool) -> Callable[[str, Job], Awaitable[Outcome]]:
    """Return LangChain's `ChatOpenAI` with the Responses API, and calls answered as its users do it."""

    async def run(url: str, job: Job) -> Outcome:
        langchain_openai = pytest.importorskip("langchain_openai")
        # without a client of its own LangChain keeps one per address for ever, beyond the event loop it belongs to
        async with openai.DefaultAsyncHttpxClient(timeout=30) as connections:
            chat = langchain_openai.ChatOpenAI(
                model=job.model,
                base_url=url,
                api_key="k",
                use_responses_api=True,
                max_retries=job.retries,
                timeout=30,
                http_async_client=connections,
            )
            try:
                return await _langchain_run(chat, job, streamed)
            except openai.APIStatusError as error:
                return Outcome(status=None, error=error.status_code)
            except (openai.APIError, ValueError):
                return Outcome(status=None, error=0)

    return run


async def _langchain_run(chat: Any, job: Job, streamed: bool) -> Outcome:
    messages = pytest.importorskip("langchain_core.messages")
    asked: list[Any] = [messages.HumanMessage(content=_langchain_content(job))]
    if job.schema:
        placed = await chat.with_structured_output(Place).ainvoke(asked)
        return Outcome(object=placed.model_dump())
    model = chat.bind_tools([_chat_tool(job.tool)]) if job.tool else chat
    said: list[tuple[str, Any]] = []
    for _ in range(4):
        answer = await _langchain_answer(model, asked, streamed)
        said += [(call["name"], call["args"]) for call in answer.tool_calls]
        if not answer.tool_calls:
            return _langchain_outcome(answer, said)
        asked += [answer, *(messages.ToolMessage(SUNNY, tool_call_id=call["id"]) for call in answer.tool_calls)]
    raise AssertionError("the model never stopped calling")


def _chat_tool(name: str) -> dict[str, Any]:
    held = TOOLS[name]
    return {"type": "function", "function": {key: held[key] for key in ("name", "description", "parameters")}}


def _langchain_content(job: Job) -> Any:
    if not job.image:
        return job.input
    return [{"type": "text", "text": job.input}, {"type": "image_url", "image_url": {"url": PIXEL}}]


async def _langchain_answer(model: Any, asked: list[Any], streamed: bool) -> Any:
    if not streamed:
        return await model.ainvoke(asked)
    whole: Any = None
    async for piece in model.astream(asked):
        whole = piece if whole is None else whole + piece
    return whole


def _langchain_outcome(answer: Any, said: list[tuple[str, Any]]) -> Outcome:
    blocks = [block for block in answer.content if isinstance(block, dict)]
    told = answer.response_metadata
    details = told.get("incomplete_details") or {}
    counted = answer.usage_metadata
    refused = answer.additional_kwargs.get("refusal") or "".join(block.get("refusal", "") for block in blocks)
    thought = "".join(
        part.get("text", "")
        for block in blocks
        if block.get("type") == "reasoning"
        for part in block.get("summary", ())
    )
    return Outcome(
        text=str(answer.text),
        refusal=refused,
        reasoning=thought,
        calls=tuple(said),
        status=told.get("status"),
        reason=details.get("reason"),
        usage=(counted["input_tokens"], counted["output_tokens"], counted["total_tokens"]) if counted else None,
    )


# --- pydantic-ai -----------------------------------------------------------------------------------------------------


# what pydantic-ai calls an ending -> status and reason
PYDANTIC_ENDINGS: dict[str | None, tuple[str | None, str | None]] = {
    "stop": ("completed", None),
    "tool_call": ("completed", None),
    None: ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
}


def pydantic_ai(streamed: bool) -> Callable[[str, Job], Awaitable[Outcome]]:
    """Return pydantic-ai's agent over its model for the Responses API."""

    async def run(url: str, job: Job) -> Outcome:
        framework = pytest.importorskip("pydantic_ai")
        exceptions = pytest.importorskip("pydantic_ai.exceptions")
        said: list[tuple[str, Any]] = []
        async with _pydantic_model(url, job) as model:
            agent = framework.Agent(
                model,
                tools=functions(job, said),
                output_type=framework.NativeOutput(Place) if job.schema else str,
                retries=0,
            )
            asked = [job.input, framework.ImageUrl(PIXEL)] if job.image else job.input
            try:
                if streamed:
                    async with agent.run_stream(asked) as result:
                        final = await result.get_output()
                else:
                    result = await agent.run(asked)
                    final = result.output
            except exceptions.ModelHTTPError as error:
                return Outcome(status=None, calls=tuple(said), error=error.status_code)
            except (exceptions.AgentRunError, openai.APIError):
                return Outcome(status=None, calls=tuple(said), error=0)
        last = result.all_messages()[-1]
        if not hasattr(last, "finish_reason"):  # tools ran after the answer that was streamed
            last = result.all_messages()[-2]
        ending, reason = PYDANTIC_ENDINGS[last.finish_reason]
        return Outcome(
            text="" if job.schema else final,
            reasoning="".join(
                part.content
                for message in result.all_messages()
                for part in message.parts
                if part.part_kind == "thinking"
            ),
            calls=tuple(said),
            status=ending,
            reason=reason,
            usage=(last.usage.input_tokens, last.usage.output_tokens, last.usage.total_tokens),
            object=final.model_dump() if job.schema else None,
        )

    return run


@asynccontextmanager
async def _pydantic_model(url: str, job: Job) -> AsyncIterator[Any]:
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=job.retries, timeout=30) as client:
        yield models.OpenAIResponsesModel(job.model, provider=providers.OpenAIProvider(openai_client=client))


CLIENTS: dict[str, Callable[[str, Job], Awaitable[Outcome]]] = {
    "openai-python create": openai_python(create),
    "openai-python stream": openai_python(stream),
    "openai-python .stream()": openai_python(helper),
    "openai-python parse": openai_python(parse),
    "openai-python background": openai_python(background),
    "openai-python resumed": openai_python(resumed),
    "openai-agents whole": openai_agents(streamed=False),
    "openai-agents streamed": openai_agents(streamed=True),
    "langchain whole": langchain(streamed=False),
    "langchain streamed": langchain(streamed=True),
    "pydantic-ai whole": pydantic_ai(streamed=False),
    "pydantic-ai streamed": pydantic_ai(streamed=True),
}
