"""The gateway: `/v1/responses` over any Chat Completions backend.

    request -> Maker -> Exchange -> Answer -> events | response
                 |                     |
              history <--- store <-----+

`create_app(config)` is the ASGI app; `antiphon serve` runs it.
"""

from __future__ import annotations

from antiphon.errors import ExtraMissing

try:
    from .app import create_app
    from .config import BackendConfig, GatewayConfig, Limits, PageConfig, RetryConfig, StoreConfig, load_config
    from .gateway import Gateway
except ModuleNotFoundError as missing:
    package = str(missing.name).partition(".")[0]
    if package == "antiphon":
        raise
    raise ExtraMissing(
        f"the gateway needs the package {package}: pip install 'antiphon[gateway]'", extra="gateway"
    ) from None

__all__ = [
    "BackendConfig",
    "Gateway",
    "GatewayConfig",
    "Limits",
    "PageConfig",
    "RetryConfig",
    "StoreConfig",
    "create_app",
    "load_config",
]
