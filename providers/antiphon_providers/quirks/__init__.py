"""Quirks: what data cannot say of a provider. Each is a frozen value whose `start()` gives a transducer for one stream.

from dataclasses import replace
profile = replace(load_profile("vllm"), quirks=(SplitTags("<think>", "</think>"), ToolCallTags()))
"""

from .cumulative import CumulativeText
from .split_tags import SplitTags
from .tool_call_tags import ToolCallTags

__all__ = ["CumulativeText", "SplitTags", "ToolCallTags"]
