"""`POST /v1/responses/input_tokens`: how many tokens a request has, as the backend that would answer it counts them.

No count is estimated: another tokenizer's would be wrong by a fifth and more, and would look like a count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from starlette.requests import Request
from starlette.responses import Response

from antiphon.backend import Timeout

from .bodies import Body
from .errors import ApiError
from .gateway import Gateway
from .keys import Caller
from .making import Making, warning_headers
from .schema import COUNT
from .serving import JsonResponse, attended

FEWEST = 16  # tokens of an answer that is asked for because of its usage; some backends take no lower limit


@dataclass(frozen=True, slots=True)
class Counter:
    """A server's own counter. `takes`: the keys of a chat request that it takes; none: all. `count`: where it answers."""

    path: str
    count: str
    takes: tuple[str, ...] = ()


# profile -> its counter. Sources: tools/server of llama.cpp (answers of b7000 and later are tested against usage);
# TokenizeChatRequest in vllm/entrypoints/openai/protocol.py, whose `add_generation_prompt` is on unless said otherwise.
COUNTERS: dict[str, Counter] = {
    "llamacpp": Counter("/v1/chat/completions/input_tokens", "input_tokens"),
    "vllm": Counter("/tokenize", "count", ("model", "messages", "tools", "chat_template_kwargs")),
}


@runtime_checkable
class Asks(Protocol):
    """A backend whose server can be asked at other paths, as `HttpBackend` can."""

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
    ) -> dict[str, Any]:
        """Return the JSON object that is answered there."""
        ...


class Counting:
    """What the route does for a caller."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, request: Request, caller: Caller) -> Response:
        """Count the tokens of a request."""
        return await attended(self._gateway, request, lambda body: self._counted(body, caller))

    async def _counted(self, body: Body, caller: Caller) -> Response:
        given = body.held.get("input")
        making = await self._gateway.maker.make_aside(
            body, caller, COUNT, input=[] if given is None else given, max_output_tokens=FEWEST
        )
        answer = JsonResponse({"object": "response.input_tokens", "input_tokens": await self._count(making, caller)})
        answer.raw_headers += warning_headers(making.notes)
        return answer

    async def _count(self, making: Making, caller: Caller) -> int:
        named, exchange = making.named, making.exchange
        counter = COUNTERS.get(exchange.profile.name)
        match named.config.count_tokens or ("ask" if named.config.kind == "replay" else "endpoint"):
            case "ask":
                usage: dict[str, Any] = (await self._gateway.whole(making, caller)).get("usage") or {}
                return _number(usage.get("input_tokens"), named.name)
            case "endpoint" if counter is not None and isinstance(named.backend, Asks):
                body = {
                    key: value
                    for key, value in exchange.chat.body.items()
                    if key in (counter.takes or exchange.chat.body)
                }
                found = await named.backend.ask(counter.path, body, headers=exchange.headers)
                return _number(found.get(counter.count), named.name)
            case _:
                raise _uncounted(named.name, exchange.profile.name)


def _number(found: Any, name: str) -> int:
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    raise ApiError(
        502, f"backend {name!r} was asked for a count of tokens and gave none", code="backend_answer_unreadable"
    )


def _uncounted(name: str, profile: str) -> ApiError:
    known = ", ".join(COUNTERS)
    return ApiError(
        501,
        f"backend {name!r} (profile {profile!r}) has no counter of tokens that this gateway knows; servers of the profiles "
        f'{known} have one. backends.{name}.profile names the profile, and backends.{name}.count_tokens = "ask" takes '
        "the count from an answer of a few tokens, which costs the whole prompt",
        code="input_tokens_not_supported",
    )
