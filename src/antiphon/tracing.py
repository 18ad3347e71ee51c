"""Spans of runs, by OpenTelemetry: they appear where the process has its SDK. See `antiphon.run.tracing`."""

from antiphon.run.tracing import CAPTURE, set_tracing_disabled

__all__ = ["CAPTURE", "set_tracing_disabled"]
