"""Real Python clients of the Responses API, unmodified, over the gateway and a strict scripted chat backend."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra `gateway` is not installed")

from antiphon.gateway import create_app
from tests.gateway.conftest import listening, over
from tests.gateway.scripted_backend import serve_scripted

from .python_clients import CLIENTS
from .scenarios import WANTED, wanted

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("scenario", WANTED)
async def test_a_client_shows_what_the_model_said(client: str, scenario: str) -> None:
    async with serve_scripted() as scripted, listening(create_app(over(scripted))) as url:
        outcome = await CLIENTS[client](f"{url}/v1", WANTED[scenario][0])
        assert scripted.refused == []
    assert outcome == wanted(client, scenario)
