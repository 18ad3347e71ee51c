"""One broken stream for each rule: those of the suite's examples."""

from antiphon_conformance.examples.broken import *  # noqa: F403
