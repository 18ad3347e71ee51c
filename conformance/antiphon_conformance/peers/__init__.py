"""Other converters from chat chunks to Responses events, as subjects of the suite.

Each module has one function that puts a peer's own stream code behind the suite's way of giving chunks, and adds
nothing: no event is made, left out or changed here. The peer is imported when the function runs. `PEERS` lists them;
`baselines/*.toml` is what each was measured to break.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from antiphon.errors import BadInput, ExtraMissing
from antiphon.near import listing

if TYPE_CHECKING:
    from antiphon_conformance.adapters import ChunkStyle, PythonAdapter
    from antiphon_conformance.results import Deviation


@dataclass(frozen=True, slots=True)
class Peer:
    """A converter of others: its name, the package on PyPI, how it takes chunks, and what of it is measured."""

    name: str
    package: str
    style: ChunkStyle
    what: str

    @property
    def target(self) -> str:
        """The dotted path, as `antiphon check` takes it."""
        return f"antiphon_conformance.peers.{self.name}:convert"

    @property
    def version(self) -> str:
        """The version that is installed, "" where none is."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""

    @property
    def function(self) -> Callable[..., Any]:
        """The function that converts."""
        function: Callable[..., Any] = import_module(f"antiphon_conformance.peers.{self.name}").convert
        return function

    def adapter(self) -> PythonAdapter:
        """Return the peer as a subject. Raises ExtraMissing where it is not installed."""
        from antiphon_conformance.adapters import PythonAdapter

        if not self.version:
            raise ExtraMissing(f"{self.package} is not installed: pip install {self.package}")
        return PythonAdapter(self.function, self.name, style=self.style, version=self.version)

    def baseline(self) -> tuple[Deviation, ...]:
        """Return what it was measured to break."""
        from antiphon_conformance.baseline import parse_baseline

        return parse_baseline(self.baseline_text, f"{self.name}.toml")

    @property
    def baseline_text(self) -> str:
        """The file of the baseline, "" where there is none."""
        file = files(__name__).joinpath("baselines", f"{self.name}.toml")
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    @property
    def measured(self) -> str:
        """The version that was measured, "" where none was."""
        _, _, rest = self.baseline_text.partition("# measured: ")
        return rest.partition("\n")[0].rpartition(" ")[2]


PEERS: tuple[Peer, ...] = (
    Peer("openai_agents", "openai-agents", "openai", "agents.models.chatcmpl_stream_handler.ChatCmplStreamHandler"),
    Peer("litellm", "litellm", "openai", "the bridge from chat to /responses, LiteLLMCompletionStreamingIterator"),
    Peer("llm_rosetta", "llm-rosetta", "dict", "ConversionPipeline from openai_responses to openai_chat"),
    Peer("codex_rosetta", "codex-rosetta", "sse", "codex_rosetta.converters.stream_converter.StreamConverter"),
    Peer("codex_bridge", "codex-bridge-python", "sse", "codex_bridge.stream.translate_stream"),
    Peer("agent_wire_proxy", "agent-wire-proxy", "dict", "agent_wire_proxy.stream_converters.ResponsesStreamConverter"),
    Peer("open_responses_server", "open-responses-server", "sse", "responses_service.process_chat_completions_stream"),
)


def find_peer(name: str) -> Peer:
    """Return the peer of that name; a hyphen is as good as an underscore. Raises BadInput with the names there are."""
    wanted = name.replace("-", "_")
    found = next((peer for peer in PEERS if wanted in (peer.name, peer.package.replace("-", "_"))), None)
    if found is None:
        raise BadInput(f"no peer is called {name!r}{listing(wanted, (peer.name for peer in PEERS), 'there are')}")
    return found


def imported(module: str, package: str) -> Any:
    """Return a module of a peer. Raises ExtraMissing, with the package to install, where it is not there."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise ExtraMissing(f"{module} cannot be imported ({problem}): pip install {package}") from None
