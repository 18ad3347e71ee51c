"""The Runner of the OpenAI Agents SDK, plain and streamed, over our backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed")

from agents import (
    Agent,
    ModelBehaviorError,
    ModelSettings,
    RunConfig,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents import retry_policies as agents_policies
from agents.exceptions import ModelRefusalError
from agents.models.interface import Model, ModelTracing
from agents.retry import ModelRetrySettings
from agents.tracing import get_trace_provider, set_trace_processors, trace
from agents.tracing.processor_interface import TracingProcessor
from pydantic import BaseModel

from antiphon import BadInput, Profile
from antiphon.errors import ConnectionFailed, RateLimited, ServerFailed
from antiphon.integrations.openai_agents import AntiphonModel, AntiphonProvider
from antiphon.models import ChatCompletionsModel
from antiphon_conformance import check
from antiphon_providers.backends import HttpBackend, ReplayBackend
from tests.models.scripted import (
    HANG,
    MANNERS,
    Scripted,
    Turn,
    calls,
    chunk,
    collect,
    failing,
    reasoning,
    refusal,
    text,
)
from tests.providers.backends.loopback import Request, Script, answer, chunked, serve
from tests.providers.backends.loopback import text as wire_text
from tests.providers.backends.loopback import whole as wire_whole

WAYS = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
REPLAY = ReplayBackend()


@pytest.fixture(autouse=True)
def no_tracing() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(True)


class Ran(NamedTuple):
    """What a run gave: the result, and of a streamed one the raw events and the names of the items' events."""

    result: Any
    raw: list[Any]
    names: list[str]


async def run(agent: Agent[Any], streamed: bool, provider: AntiphonProvider, prompt: Any = "hello") -> Ran:
    config = RunConfig(model_provider=provider, tracing_disabled=True)
    if not streamed:
        return Ran(await Runner.run(agent, prompt, run_config=config), [], [])
    result = Runner.run_streamed(agent, prompt, run_config=config)
    raw: list[Any] = []
    names: list[str] = []
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            raw.append(event.data)
        elif event.type == "run_item_stream_event":
            names.append(event.name)
    for response in responses(raw):
        assert check(response).ok
    return Ran(result, raw, names)


def responses(raw: list[Any]) -> Iterator[list[Any]]:
    """Yield the events of each response."""
    starts = [number for number, event in enumerate(raw) if event.type == "response.created"]
    for start, end in zip(starts, [*starts[1:], len(raw)], strict=True):
        yield raw[start:end]


def over(*turns: Turn, **options: Any) -> tuple[AntiphonProvider, Scripted]:
    backend = Scripted(turns)
    return AntiphonProvider(backend=backend, **options), backend


def outputs(ran: Ran) -> list[Any]:
    return [item.output for item in ran.result.new_items if item.type == "tool_call_output_item"]


class Tools:
    """Tools that note how they were called."""

    def __init__(self) -> None:
        self.made: list[Any] = []

        @function_tool
        def add(a: int, b: int) -> int:
            self.made.append((a, b))
            return a + b

        @function_tool
        def now() -> str:
            self.made.append("now")
            return "noon"

        self.all = [add, now]


# --- what agents do --------------------------------------------------------------------------------------------------


@WAYS
async def test_text(streamed: bool) -> None:
    provider, backend = over(text("Hel", "lo"))
    ran = await run(Agent(name="a", instructions="be good", model="tiny"), streamed, provider)
    assert ran.result.final_output == "Hello"
    assert [one["role"] for one in backend.bodies[0]["messages"]] == ["system", "user"]
    usage = ran.result.context_wrapper.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 7, 5)
    assert ran.names == (["message_output_created"] if streamed else [])


@WAYS
@pytest.mark.parametrize("manner", MANNERS)
async def test_parallel_tools_however_they_are_streamed(manner: str, streamed: bool) -> None:
    tools = Tools()
    made = calls(("call_1", "add", '{"a": 1, "b": 2}'), ("call_2", "add", '{"a": 3, "b": 4}'), manner=manner)
    provider, backend = over(made, text("done"))
    ran = await run(Agent(name="a", tools=tools.all, model="tiny"), streamed, provider)
    assert (sorted(tools.made), outputs(ran), ran.result.final_output) == ([(1, 2), (3, 4)], [3, 7], "done")
    _, said, *told = backend.bodies[1]["messages"]
    assert [call["id"] for call in said["tool_calls"]] == [one["tool_call_id"] for one in told]
    called = ["tool_called", "tool_called", "tool_output", "tool_output", "message_output_created"]
    assert ran.names == (called if streamed else [])


@WAYS
async def test_a_tool_without_arguments(streamed: bool) -> None:
    tools = Tools()
    provider, _ = over(calls(("call_1", "now", "")), text("done"))
    ran = await run(Agent(name="a", tools=tools.all, model="tiny"), streamed, provider)
    assert (tools.made, outputs(ran), ran.result.final_output) == (["now"], ["noon"], "done")


@WAYS
async def test_reasoning_goes_back_with_its_call(streamed: bool) -> None:
    tools = Tools()
    provider, backend = over(
        reasoning("noon, I think", calls(("call_1", "now", "{}"))), text("done"), profile="deepseek"
    )
    ran = await run(Agent(name="a", tools=tools.all, model="tiny"), streamed, provider)
    assert ran.result.final_output == "done"
    assert backend.bodies[1]["messages"][1]["reasoning_content"] == "noon, I think"
    kinds = [item.type for item in ran.result.new_items]
    assert kinds == ["reasoning_item", "tool_call_item", "tool_call_output_item", "message_output_item"]


@WAYS
async def test_a_handoff(streamed: bool) -> None:
    second = Agent(name="second", model="small")
    first = Agent(name="first", handoffs=[second], model="tiny")
    provider, backend = over(calls(("call_1", "transfer_to_second", "{}")), text("here I am"))
    ran = await run(first, streamed, provider)
    assert (ran.result.final_output, ran.result.last_agent.name) == ("here I am", "second")
    assert [body["model"] for body in backend.bodies] == ["tiny", "small"]


class Answer(BaseModel):
    city: str
    degrees: int


@WAYS
async def test_structured_output(streamed: bool) -> None:
    provider, backend = over(text('{"city": "Rome",', ' "degrees": 30}'))
    ran = await run(Agent(name="a", output_type=Answer, model="tiny"), streamed, provider)
    assert ran.result.final_output == Answer(city="Rome", degrees=30)
    assert backend.bodies[0]["response_format"]["json_schema"]["strict"] is True


@WAYS
async def test_a_refusal(streamed: bool) -> None:
    provider, _ = over(refusal("I ", "cannot"))
    with pytest.raises(ModelRefusalError, match="I cannot"):
        await run(Agent(name="a", model="tiny"), streamed, provider)


@WAYS
async def test_hosted_tools_are_left_out(streamed: bool) -> None:
    from agents import WebSearchTool

    provider, backend = over(text("Hello"))
    ran = await run(Agent(name="a", tools=[WebSearchTool()], model="tiny"), streamed, provider)
    assert ran.result.final_output == "Hello"
    assert "tools" not in backend.bodies[0]


@WAYS
async def test_settings_arrive(streamed: bool) -> None:
    tools = Tools()
    settings = ModelSettings(
        temperature=0.1, max_tokens=9, tool_choice="now", extra_headers={"x-a": "1"}, extra_body={"top_k": 4}, timeout=8
    )
    provider, backend = over(calls(("call_1", "now", "{}")), text("done"))
    await run(Agent(name="a", tools=tools.all, model="tiny", model_settings=settings), streamed, provider)
    first, second = backend.bodies
    assert (first["temperature"], first["max_completion_tokens"], first["top_k"]) == (0.1, 9, 4)
    assert first["tool_choice"] == {"type": "function", "function": {"name": "now"}}
    assert "tool_choice" not in second
    assert backend.headers[0] == {"x-a": "1"}


# --- endings ---------------------------------------------------------------------------------------------------------


@WAYS
async def test_a_cut_answer_is_taken_as_it_is(streamed: bool) -> None:
    provider, _ = over(text("Hel", finish="length"))
    ran = await run(Agent(name="a", model="tiny"), streamed, provider)
    assert ran.result.final_output == "Hel"
    if streamed:
        assert ran.raw[-1].response.provider_data["incomplete_reason"] == "max_output_tokens"


@WAYS
@pytest.mark.parametrize(
    ("turn", "options"),
    [
        (text("Hel", finish="length"), {"incomplete": "raise"}),
        (text(finish="length"), {}),
        (
            Turn(
                [
                    chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "now", "arguments": '{"a'}}]}),
                    chunk(finish="length"),
                ],
                {
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": "length",
                            "message": {"tool_calls": [{"id": "c", "function": {"name": "now", "arguments": '{"a'}}]},
                        }
                    ]
                },
            ),
            {},
        ),
    ],
    ids=["told to", "nothing was said", "a cut call"],
)
async def test_what_is_incomplete_raises(turn: Turn, options: dict[str, Any], streamed: bool) -> None:
    tools = Tools()
    provider, _ = over(turn, **options)
    with pytest.raises(ModelBehaviorError, match="incomplete"):
        await run(Agent(name="a", tools=tools.all, model="tiny"), streamed, provider)
    assert tools.made == []


async def test_an_error_in_the_middle_of_a_stream() -> None:
    provider, _ = over(failing(ConnectionFailed("the connection broke"), chunk({"content": "Hel"})))
    result = Runner.run_streamed(
        Agent(name="a", model="tiny"), "hello", run_config=RunConfig(model_provider=provider, tracing_disabled=True)
    )
    events: list[Any] = []
    with pytest.raises(ModelBehaviorError, match="the connection broke"):
        await collect(result.stream_events(), events)
    kinds = [event.data.type for event in events if event.type == "raw_response_event"]
    assert kinds[-2:] == ["response.output_item.done", "error"]


async def test_cancelling_a_run_closes_the_source() -> None:
    provider, backend = over(Turn([chunk({"content": "Hel"}), HANG], None))
    result = Runner.run_streamed(
        Agent(name="a", model="tiny"), "hello", run_config=RunConfig(model_provider=provider, tracing_disabled=True)
    )
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            result.cancel()
    assert backend.closed == 1


@WAYS
async def test_an_error_before_anything_came_is_typed(streamed: bool) -> None:
    provider, _ = over(failing(RateLimited("slow down", status_code=429)))
    with pytest.raises(RateLimited, match="slow down"):
        await run(Agent(name="a", model="tiny"), streamed, provider)


@WAYS
async def test_the_sdk_retries_by_its_own_policies(streamed: bool) -> None:
    policy = agents_policies.any(agents_policies.provider_suggested(), agents_policies.http_status([503]))
    settings = ModelSettings(retry=ModelRetrySettings(max_retries=3, backoff={"initial_delay": 0}, policy=policy))
    away, broken = ServerFailed("away", status_code=503), ConnectionFailed("broke")
    provider, backend = over(failing(away), failing(broken, chunk({"role": "assistant"})), text("Hello"))
    ran = await run(Agent(name="a", model="tiny", model_settings=settings), streamed, provider)
    assert (ran.result.final_output, len(backend.bodies)) == ("Hello", 3)
    assert ran.result.context_wrapper.usage.requests == 3


# --- backends --------------------------------------------------------------------------------------------------------


@WAYS
async def test_over_http(streamed: bool) -> None:
    def script(request: Request) -> Script:
        return chunked(wire_text("He", "llo")) if request.body["stream"] else answer(wire_whole("Hello"))

    async with serve(script) as server:
        provider = AntiphonProvider(backend=HttpBackend(server.url, "k"))
        ran = await run(Agent(name="a", model="tiny"), streamed, provider)
        await provider.aclose()
    assert ran.result.final_output == "Hello"
    assert server.requests[0].headers["authorization"] == "Bearer k"


@WAYS
@pytest.mark.parametrize("scenario", ["text", "reasoning", "unicode", "citations", "logprobs", "typed-content"])
async def test_scenarios_of_the_replay_backend(scenario: str, streamed: bool) -> None:
    provider = AntiphonProvider(backend=REPLAY)
    ran = await run(Agent(name="a", model=f"replay/{scenario}"), streamed, provider)
    assert ran.result.final_output


@WAYS
async def test_the_replay_backend_calls_what_it_is_offered(streamed: bool) -> None:
    tools = Tools()
    provider = AntiphonProvider(backend=REPLAY)
    agent = Agent(name="a", tools=tools.all, model="echo")
    ran = await run(agent, streamed, provider, 'call add {"a": 2, "b": 3}')
    assert (tools.made, outputs(ran), ran.result.final_output) == ([(2, 3)], [5], "The tool said: 5")


@WAYS
async def test_a_model_of_an_agent(streamed: bool) -> None:
    backend = Scripted([text("Hello")])
    for model in (
        AntiphonModel("tiny", backend=backend),
        AntiphonModel(ChatCompletionsModel("tiny", backend=backend)),
    ):
        ran = await run(Agent(name="a", model=model), streamed, AntiphonProvider(backend=Scripted([])))
        assert ran.result.final_output == "Hello"
        await model.close()


def test_the_provider() -> None:
    provider, backend = over(model="tiny", profile=Profile("mine"))
    model = provider.get_model(None)
    assert isinstance(model, AntiphonModel)
    assert isinstance(model, Model)
    assert (model.chat.model, model.chat.profile.name, model.chat.backend) == ("tiny", "mine", backend)
    assert provider.get_model("tiny") is model
    with pytest.raises(BadInput, match="incomplete"):
        AntiphonModel("tiny", backend=backend, incomplete="maybe")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="made already"):
        AntiphonModel(model.chat, retry=None)
    with pytest.raises(BadInput, match="proxy"):
        AntiphonProvider(proxy="http://127.0.0.1")


# --- tracing ---------------------------------------------------------------------------------------------------------


class Spans(TracingProcessor):
    def __init__(self) -> None:
        self.ended: list[Any] = []

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...

    def on_span_end(self, span: Any) -> None:
        self.ended.append(span)


@pytest.fixture
def spans() -> Iterator[Spans]:
    held = Spans()
    set_trace_processors([held])
    set_tracing_disabled(False)
    yield held
    set_trace_processors([])
    get_trace_provider().shutdown()


@WAYS
@pytest.mark.parametrize("tracing", list(ModelTracing))
async def test_spans(streamed: bool, tracing: ModelTracing, spans: Spans) -> None:
    model = AntiphonModel("tiny", backend=Scripted([text("Hello"), failing(ServerFailed("away"))]))

    async def ask() -> None:
        said = ("be good", "hello", ModelSettings(), [], None, [], tracing)
        if streamed:
            assert [event async for event in model.stream_response(*said)]
        else:
            assert (await model.get_response(*said)).output

    with trace("test"):
        await ask()
        with pytest.raises(ServerFailed):
            await ask()
    generated = [span for span in spans.ended if span.span_data.type == "generation"]
    if tracing.is_disabled():
        assert generated == []
        return
    good, bad = generated
    assert good.span_data.usage["output_tokens"] == 5
    assert bool(good.span_data.output) is bool(good.span_data.input) is tracing.include_data()
    assert bad.error["data"]["error"] == ("away" if tracing.include_data() else "ServerFailed")
