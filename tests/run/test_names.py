"""The names by which programs of the OpenAI Agents SDK import what they use: all are here but those that are told of."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TypeVar

import pytest

import antiphon

# What the root of the SDK has and this package does not, each by a reason that docs/from-openai-agents.md tells.
TRACING = {
    *("Span", "SpanData", "SpanError", "Trace", "TracingProcessor", "add_trace_processor", "flush_traces", "trace"),
    *("gen_span_id", "gen_trace_id", "get_current_span", "get_current_trace", "set_trace_processors"),
    *("set_trace_provider", "set_tracing_export_api_key", "agent_span", "custom_span", "function_span"),
    *("generation_span", "guardrail_span", "handoff_span", "mcp_tools_span", "response_span", "speech_group_span"),
    *("speech_span", "task_span", "transcription_span", "turn_span", "AgentSpanData", "CustomSpanData"),
    *("FunctionSpanData", "GenerationSpanData", "GuardrailSpanData", "HandoffSpanData", "MCPListToolsSpanData"),
    *("ResponseSpanData", "SpeechGroupSpanData", "SpeechSpanData", "TaskSpanData", "TranscriptionSpanData"),
    "TurnSpanData",
}
OTHER_PARTS = {
    *("OpenAIAgentRegistrationConfig", "OpenAIResponsesWSModel", "OpenAIResponsesWebSocketOptions"),
    *("ResponsesWebSocketSession", "responses_websocket_session", "set_default_openai_responses_transport"),
    *("set_default_openai_agent_registration", "set_default_openai_harness", "run_demo_loop", "sandbox"),
    *("OpenAIConversationsSession", "OpenAIResponsesCompactionArgs", "OpenAIResponsesCompactionAwareSession"),
    *("is_openai_responses_compaction_aware_session", "apply_diff", "dispose_resolved_computers", "resolve_computer"),
    *("OutputGuardrailBlockedMessageArgs", "OutputGuardrailBlockedMessageFormatter"),
}
SHAPES_OF_DICTS = {
    *("ImageGenerationToolConfig", "WebSearchToolImageSettings", "ShellToolContainerAutoEnvironment"),
    *("ShellToolContainerNetworkPolicy", "ShellToolContainerNetworkPolicyAllowlist"),
    *("ShellToolContainerNetworkPolicyDisabled", "ShellToolContainerNetworkPolicyDomainSecret"),
    *("ShellToolContainerReferenceEnvironment", "ShellToolContainerSkill", "ShellToolEnvironment"),
    *("ShellToolHostedEnvironment", "ShellToolInlineSkill", "ShellToolInlineSkillSource"),
    *("ShellToolLocalEnvironment", "ShellToolLocalSkill", "ShellToolSkillReference"),
}
ABSENT = TRACING | OTHER_PARTS | SHAPES_OF_DICTS

# modules of the SDK that programs import from -> what of their public names is not here
MODULES: dict[str, set[str]] = {
    "decorators": set(),
    "exceptions": set(),
    "guardrail": set(),
    "handoffs": set(),
    "lifecycle": set(),
    "prompts": {"PromptUtil"},
    "result": set(),
    "run": OTHER_PARTS,
    "run_context": set(),
    "run_error_handlers": set(),
    "run_state": set(),
    "stream_events": set(),
    "tool_context": set(),
    "tool_guardrails": set(),
    "extensions.handoff_filters": set(),
    "extensions.handoff_prompt": set(),
    "memory": OTHER_PARTS,
    "mcp": {"MCPServerManager", "MCPUtil"},
    "model_settings": set(),
}


def test_names_of_the_root() -> None:
    agents = pytest.importorskip("agents", reason="the package openai-agents is not installed")
    assert {name for name in agents.__all__ if not hasattr(antiphon, name)} == ABSENT & set(agents.__all__)


@pytest.mark.parametrize(("module", "absent"), MODULES.items(), ids=list(MODULES))
def test_names_of_modules(module: str, absent: set[str]) -> None:
    pytest.importorskip("agents", reason="the package openai-agents is not installed")
    theirs, ours = import_module(f"agents.{module}"), import_module(f"antiphon.{module}")
    own = [name for name, value in vars(theirs).items() if getattr(value, "__module__", None) == theirs.__name__]
    names = {name for name in getattr(theirs, "__all__", own) if not name.startswith("_")}
    types = {name for name in names if isinstance(getattr(theirs, name), TypeVar)}
    assert {name for name in names - types if not hasattr(ours, name)} <= absent


@pytest.mark.parametrize(("package", "some"), [("run", {"Runner", "RunState"}), ("models", {"Model", "Usage"})])
def test_names_that_are_imported_with_a_star(package: str, some: set[str]) -> None:
    module = import_module(f"antiphon.{package}")
    found: dict[str, object] = {}
    exec(f"from antiphon.{package} import *", found)
    assert some < set(module.__all__) == found.keys() - {"__builtins__"}
    assert all(found[name] is getattr(module, name) for name in module.__all__)


def test_small_modules() -> None:
    assert import_module("antiphon.version").__version__ == antiphon.__version__
    assert import_module("antiphon.logger").logger is logging.getLogger("antiphon")
    assert issubclass(antiphon.Agent, antiphon.AgentBase)


def test_logs_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("antiphon")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    for _ in range(2):
        antiphon.enable_verbose_stdout_logging()
    logger.debug("seen")
    assert capsys.readouterr().out == "seen\n"
