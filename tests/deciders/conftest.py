"""No keys of the developer's, no server of theirs: every test here sets what it needs."""

import pytest

from strands_gated_memory.deciders import auto, catalog, check
from strands_gated_memory.deciders.transports import http
from strands_gated_memory.reporting.log import reset_failure_log

NAMES = (
    "TYPESAFE_API_KEY", "TYPESAFE_BASE_URL", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "OPENAI_API_KEY",
    "OPENAI_BASE_URL", "LIQUID_API_KEY", "LIQUID_BASE_URL", "SYSTEMONE_URL", "SYSTEMONE_API_KEY",
    "HF_HOME", "HF_HUB_CACHE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    reset_failure_log()
    http._KNOWN.clear()
    check._starts._asked.clear()
    auto._told.clear()
    catalog._ENGINES.clear()
