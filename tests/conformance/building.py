"""Good event streams, built from what is in them: those of the suite's examples."""

from antiphon_conformance.examples.building import *  # noqa: F403
