"""`ScriptedModel`: what it says, streamed and not, and what it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.models import ModelResponse, ModelRetryAdvice, ModelSettings, ModelTracing, Usage
from antiphon.models.retry import ModelRetryAdviceRequest
from antiphon.testing import (
    InvalidModelStep,
    ModelCall,
    ModelStep,
    ScriptedModel,
    UnconsumedModelSteps,
    UnexpectedModelCall,
    assistant_message,
    function_call,
    reasoning_item,
)
from antiphon_conformance import check

REFUSAL = {
    "id": "msg_r",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "refusal", "refusal": "No."}],
}
OUTPUTS: dict[str, list[Any]] = {
    "text": [assistant_message("Salt.")],
    "empty": [],
    "call": [function_call("look", {"a": 1}, call_id="call_1")],
    "namespaced": [function_call("look", "{}", call_id="call_1", namespace="crm")],
    "all": [reasoning_item("hm"), assistant_message("Salt."), function_call("look", "{}", call_id="call_1")],
    "refusal": [REFUSAL],
    "two texts": [assistant_message("a"), assistant_message("b")],
}


def asked(text: str = "hi", settings: ModelSettings | None = None) -> tuple[Any, ...]:
    return ("be kind", text, settings or ModelSettings(), [], None, [], ModelTracing.DISABLED)


async def streamed(model: ScriptedModel) -> list[Any]:
    return [event async for event in model.stream_response(*asked())]


@pytest.mark.parametrize("name", OUTPUTS)
async def test_an_answer_is_the_same_streamed_and_not_and_clean(name: str) -> None:
    step = ModelStep(OUTPUTS[name], usage=Usage(1, 3, output_tokens=2, total_tokens=5))
    whole = await ScriptedModel([step]).get_response(*asked())
    events = await streamed(ScriptedModel([step]))
    assert check(events).findings == ()
    assert ModelResponse.of(events[-1].response) == whole
    assert [item.type for item in whole.output] == [getattr(item, "type", "message") for item in OUTPUTS[name]]


@pytest.mark.parametrize(
    ("status", "reason", "ending"),
    [("incomplete", "max_output_tokens", "response.incomplete"), ("completed", None, "response.completed")],
)
async def test_a_step_ends_as_it_says(status: str, reason: str | None, ending: str) -> None:
    step = ModelStep([], status=status, incomplete_reason=reason)
    whole = await ScriptedModel([step]).get_response(*asked())
    assert (whole.status, whole.incomplete_reason) == (status, reason)
    assert (await streamed(ScriptedModel([step])))[-1].type == ending


async def test_calls_are_kept_as_they_were() -> None:
    model = ScriptedModel([[assistant_message("a")], [assistant_message("b")]])
    items: list[Any] = [{"role": "user", "content": "hi"}]
    await model.get_response("sys", items, ModelSettings(temperature=0.5), ["tool"], None, ["h"], ModelTracing.ENABLED)
    items.append("later")
    [event async for event in model.stream_response(*asked("two"), previous_response_id="resp_1")]
    assert model.calls == (
        ModelCall(
            "sys",
            [{"role": "user", "content": "hi"}],
            ModelSettings(temperature=0.5),
            ["tool"],
            None,
            ["h"],
            ModelTracing.ENABLED,
            None,
            None,
            None,
            streamed=False,
        ),
        ModelCall(
            "be kind", "two", ModelSettings(), [], None, [], ModelTracing.DISABLED, "resp_1", None, None, streamed=True
        ),
    )
    assert (model.first_call, model.last_call) == model.calls
    model.assert_complete()


async def test_usage_is_the_steps_the_default_or_one_request() -> None:
    own, default = Usage(2, 1, output_tokens=1, total_tokens=2), Usage(1, 9, output_tokens=1, total_tokens=10)
    model = ScriptedModel([ModelStep(usage=own), [], []], default_usage=default)
    assert [(await model.get_response(*asked())).usage for _ in range(2)] == [own, default]
    model.set_default_usage(None)
    assert (await model.get_response(*asked())).usage == Usage(requests=1)
    events = await streamed(ScriptedModel([ModelStep(usage=own)]))
    assert Usage.of(events[-1].response) == own


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_responder_answers_from_the_call(is_async: bool) -> None:
    def echo(call: ModelCall) -> list[Any]:
        return [assistant_message(f"you said {call.input}")]

    async def later(call: ModelCall) -> list[Any]:
        return echo(call)

    model = ScriptedModel([ModelStep.respond(later if is_async else echo)])
    answer = await model.get_response(*asked("salt"))
    assert answer.output[0].content[0].text == "you said salt"


async def test_errors_are_raised_with_their_advice() -> None:
    error, advice = RuntimeError("down"), ModelRetryAdvice(suggested=True)
    model = ScriptedModel([ModelStep.raise_error(error, retry_advice=advice), ValueError("other")])
    with pytest.raises(RuntimeError) as caught:
        await model.get_response(*asked())
    assert caught.value is error
    with pytest.raises(ValueError, match="other"):
        await streamed(model)

    def advised(about: Exception) -> ModelRetryAdvice | None:
        return model.get_retry_advice(ModelRetryAdviceRequest(error=about, attempt=1, stream=False))

    assert (advised(error), advised(RuntimeError("down"))) == (advice, None)


async def test_exact_events_are_streamed_as_they_are() -> None:
    events = await streamed(ScriptedModel([[assistant_message("a")]]))

    async def one_by_one(call: ModelCall) -> Any:
        for event in events[:2]:
            yield event

    assert await streamed(ScriptedModel([ModelStep.stream(events[:3])])) == events[:3]
    assert await streamed(ScriptedModel([ModelStep.stream(one_by_one)])) == events[:2]


async def test_a_call_too_many_and_a_step_too_many_are_told() -> None:
    model = ScriptedModel([[]])
    with pytest.raises(UnconsumedModelSteps, match="1 scripted steps were not asked for"):
        model.assert_complete()
    await model.get_response(*asked())
    with pytest.raises(UnexpectedModelCall, match="the script has no step for call 2") as caught:
        await model.get_response(*asked())
    assert (caught.value.call_index, caught.value.call) == (1, model.last_call)
    model.enqueue([])
    model.extend([[], {"output": []}])
    assert model.remaining_steps == 3


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("hello", r"is text: give \[assistant_message"),
        (7, "int is no list of items"),
        ({"outputs": []}, "outputs: a step has error"),
        ([7], r"output\[0\] is int"),
        (ModelStep([assistant_message("a")], error=ValueError()), "output and error: a step has one of them"),
        (ModelStep(error=ValueError(), stream_events=[]), "error and stream_events"),
        (ModelStep(retry_advice=ModelRetryAdvice()), "retry_advice goes with an error"),
    ],
)
def test_a_step_that_is_none_is_refused_with_its_place(step: Any, told: str) -> None:
    with pytest.raises(InvalidModelStep, match=told) as caught:
        ScriptedModel([[], step])
    assert caught.value.input_index == 1
    model = ScriptedModel()
    with pytest.raises(InvalidModelStep):
        model.extend([[], step])
    assert model.remaining_steps == 0
