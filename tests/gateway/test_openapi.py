"""The gateway against its own OpenAPI document: many requests, right and wrong, and no answer that it does not promise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from antiphon.gateway import create_app

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

schema: Any = schemathesis.openapi.from_asgi("/openapi.json", create_app({"limits": {"body_bytes": 1_000_000}}))
PROMISES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
schemathesis.checks.load_all_checks()


@schema.parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_document_promises(case: Any) -> None:
    response = case.call()
    case.validate_response(response, checks=schemathesis.checks.CHECKS.get_by_names(PROMISES))
