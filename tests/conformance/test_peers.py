"""The converters of others: that they are put to the suite as they are, and that what they break is what is known."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from antiphon.errors import BadInput, ExtraMissing
from antiphon_conformance import Level
from antiphon_conformance.case import Case, cases_hash, load_cases
from antiphon_conformance.matrix import cases_of, deviations_of
from antiphon_conformance.peers import PEERS, Peer, find_peer, imported
from antiphon_conformance.results import Outcome
from antiphon_conformance.running import Settings, run_suite

pytestmark = pytest.mark.filterwarnings("ignore")  # they are others' code

EVERY = 6  # one case in so many is put to them here; `antiphon matrix` runs all


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def installed(peer: Peer) -> Peer:
    if not peer.version:
        pytest.skip(f"{peer.package} is not installed")
    return peer


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_what_a_peer_breaks_is_known(peer: Peer) -> None:
    installed(peer)
    if peer.version != peer.measured:
        pytest.skip(f"{peer.package} {peer.version} is installed, and {peer.measured} was measured")
    if cases_of(peer.baseline_text) != cases_hash(load_cases()):
        pytest.skip("the cases are others than those that were measured: antiphon matrix --baselines")
    settings = Settings(baseline=peer.baseline(), forms=(), all_ran=False)
    report = run_suite(peer.adapter(), load_cases()[::EVERY], settings)
    unknown = [f"{run.name} {one}" for run in report.runs for one in run.unexpected(Level.MUST)]
    assert unknown == []
    assert {run.outcome for run in report.ran} >= {Outcome.EXPECTED}
    excused = {(one.rule, one.case) for one in peer.baseline()}
    assert {one.rule for one in deviations_of(report)} <= {rule for rule, _ in excused}


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_says_a_text(peer: Peer) -> None:
    """Its adapter works: a plain text comes out, so that what is missing elsewhere is the peer's own."""
    adapter = installed(peer).adapter()
    plain = next(case for case in load_cases() if isinstance(case, Case) and case.id.startswith("text/"))
    answer = adapter.answer(plain)
    adapter.close()
    assert answer.fault is None
    kinds = [event.get("type") for event in map(_as_dict, answer.events)]
    assert kinds[0] == "response.created"
    assert "response.output_text.delta" in kinds


def _as_dict(event: Any) -> dict[str, Any]:
    return event if isinstance(event, dict) else event.model_dump()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_has_a_baseline(peer: Peer) -> None:
    deviations = peer.baseline()
    assert re.fullmatch(r"[\d.a-z]+", peer.measured)
    assert cases_of(peer.baseline_text)
    assert len(deviations) > 5
    assert all(len(one.reason) <= 200 for one in deviations)
    assert deviations == tuple(sorted(deviations, key=lambda one: (one.rule, one.case)))


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_that_is_not_installed_says_what_to_install(peer: Peer) -> None:
    if peer.version:
        pytest.skip(f"{peer.package} is installed")
    with pytest.raises(ExtraMissing, match=f"pip install {peer.package}"):
        peer.adapter()


def test_a_module_that_is_not_there_says_what_to_install() -> None:
    with pytest.raises(ExtraMissing, match=r"no_such_module_of_a_peer.*pip install its-package"):
        imported("no_such_module_of_a_peer", "its-package")


def test_peers_are_found_by_name_and_package() -> None:
    assert find_peer("openai-agents") is find_peer("openai_agents") is PEERS[0]
    assert find_peer("codex-bridge-python").name == "codex_bridge"
    with pytest.raises(BadInput, match="there are openai_agents, litellm"):
        find_peer("nobody")


def test_importing_the_peers_imports_none_of_them() -> None:
    program = (
        "import sys, antiphon_conformance.peers as peers; [peer.function for peer in peers.PEERS];"
        "assert not {'agents', 'litellm', 'httpx', 'llm_rosetta'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
