"""What the rules about chunks say of openai-python is so: its own readers, over answers that break the rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import APIError, APIStatusError, OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.examples.answers import GOOD, MUTANTS
from antiphon_conformance.exchange import Exchange


def mutant(code: str, name: str) -> Exchange:
    """Return one of the broken answers."""
    return next(one.exchange for one in MUTANTS if (one.code, one.name) == (code, name))


def chunks_through(exchange: Exchange) -> list[ChatCompletionChunk]:
    """Return the chunks that openai-python reads from an answer."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(exchange.status or 500, headers=dict(exchange.headers), content=exchange.body)

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        client = OpenAI(api_key="none", base_url="http://here/v1", http_client=http, max_retries=0)
        stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], stream=True)
        return list(stream)


def accumulated(exchange: Exchange) -> Any:
    """Return what openai-python makes of the chunks."""
    state = ChatCompletionStreamState[None]()
    for chunk in chunks_through(exchange):
        state.handle_chunk(chunk)
    return state.current_completion_snapshot


def test_it_reads_the_good_answers() -> None:
    assert accumulated(GOOD["text"]).choices[0].message.content == AnswerTrace(GOOD["text"]).content()
    calls = accumulated(GOOD["calls"]).choices[0].message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Oslo", "unit": "c"}] * 2


@pytest.mark.parametrize(
    ("code", "name", "raised", "act"),
    [
        ("CHT001", "an error", APIStatusError, chunks_through),
        ("CHT004", "a line is cut", json.JSONDecodeError, chunks_through),
        ("CHT007", "an error in the middle", APIError, chunks_through),
        ("CHT030", "no index", TypeError, accumulated),
    ],
)
def test_it_raises(code: str, name: str, raised: type[Exception], act: Callable[[Exchange], Any]) -> None:
    with pytest.raises(raised):
        act(mutant(code, name))


def test_it_joins_a_second_id_and_name_to_the_first() -> None:
    call = accumulated(mutant("CHT033", "the id again")).choices[0].message.tool_calls[0]
    assert call.id == "call_1_0call_1_0"
    call = accumulated(mutant("CHT033", "the name again")).choices[0].message.tool_calls[0]
    assert call.function.name == "get_weatherget_weather"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_it_loses_content_that_is_no_string() -> None:
    content = accumulated(mutant("CHT023", "content is a number")).choices[0].message.content
    assert content == AnswerTrace(GOOD["text"]).content().removeprefix("The se")


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_arguments_that_are_an_object_cannot_be_parsed() -> None:
    call = accumulated(mutant("CHT035", "an object")).choices[0].message.tool_calls[0]
    with pytest.raises(TypeError):
        json.loads(call.function.arguments)


def test_it_ends_a_choice_without_a_finish_reason_as_it_is() -> None:
    assert accumulated(mutant("CHT040", "no finish_reason")).choices[0].finish_reason is None
