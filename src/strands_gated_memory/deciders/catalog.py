"""The decision models that are known by name, each as a function that makes one.

Nothing here talks to a model: a missing key, a bad URL or a missing package is an error now, everything
else is found out by `check`, or counted on the first turn. Contracts of hosted models are second-hand.
"""

from __future__ import annotations

import logging
import os
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ..errors import ConfigurationError
from .client import DecisionClient
from .codecs.openai_decisions import OpenAIDecisions
from .codecs.system_one import SystemOne
from .limits import Limits
from .presets import SLOW_DEADLINE_S
from .secret import Secret, key_from
from .transports.aws import AgentCoreRuntime, SageMaker
from .transports.http import HttpTransport, checked_url, is_loopback
from .transports.local import LocalEngine

logger = logging.getLogger(__name__)

_ENGINES: dict[tuple[str, str | None], LocalEngine] = {}
"""One per checkpoint and device: a process that makes a decider per request holds its model once."""

ALIAS = "jev-latest"
"""The model name that every System One server is to accept (jevcompat's SPEC); sent where none is given."""
JEV = "jev-1.13.0"
"""Pinned: an alias moves with each release, and a threshold is for one model."""
LUNA = "gpt-6-luna"
LIQUID = "d1.1"

_ENDINGS = ("/systemone", "/decisions", "/invocations")

_JEV_LIMITS = Limits(max_questions=100, max_state_tokens=30_000, max_request_tokens=60_000)
_OPENAI_LIMITS = Limits(max_questions=200, max_state_tokens=200_000)
_LIQUID_LIMITS = Limits(max_questions=100, max_request_tokens=30_000, max_state_tokens=15_000)
_STRANDS_LIMITS = Limits(window_tokens=4096)
_SERVED_LIMITS = Limits(max_questions=100)


def system_one(
    url: str, *, model: str | None = None, api_key: str | None = None, name: str | None = None
) -> DecisionClient:
    """Return a client for any System One server.

    Args:
        url: The server; `/v1/systemone` is appended unless the path ends with it (or with `/decisions` or
            `/invocations`). A fragment names the model: `https://host#d1.1`.
        model: The model; default: the fragment, else "jev-latest", which servers accept as an alias.
        api_key: Sent as a bearer key; default SYSTEMONE_API_KEY from the environment, if set.
        name: What to call it in messages; default the URL.

    Raises:
        ConfigurationError: The URL cannot be used.
    """
    base = checked_url(url)
    model = model or urlsplit(url).fragment or None
    path = urlsplit(base).path.rstrip("/")
    codec: SystemOne | OpenAIDecisions = OpenAIDecisions() if path.endswith("/decisions") else SystemOne()
    address = base.rstrip("/") if path.endswith(_ENDINGS) else _joined(base, "/v1/systemone")
    given = api_key if api_key is not None else os.environ.get("SYSTEMONE_API_KEY") or None
    key = Secret(given, "api_key" if api_key is not None else "SYSTEMONE_API_KEY") if given is not None else None
    _warn_about_plain_http(address, key)
    parts = urlsplit(base)
    health = urlunsplit((parts.scheme, parts.netloc, "/health", "", ""))
    return DecisionClient(
        codec,
        HttpTransport(address, key, health_url=health),
        name=name or address,
        model=model or ALIAS,
        limits=_SERVED_LIMITS,
    )


def jev(model: str | None = None, *, api_key: str | None = None, base_url: str | None = None) -> DecisionClient:
    """Return a client for TypeSafe's Jev.

    Args:
        model: Default "jev-1.13.0".
        api_key: Default TYPESAFE_API_KEY.
        base_url: Default TYPESAFE_BASE_URL, else https://api.typesafe.ai.

    Raises:
        ConfigurationError: There is no key, or the URL cannot be used.
    """
    key = key_from("TYPESAFE_API_KEY", api_key, "jev")
    base = base_url or os.environ.get("TYPESAFE_BASE_URL") or "https://api.typesafe.ai"
    return _hosted(
        SystemOne(), base, "/v1/systemone", key, name="jev", family="jev", model=model or JEV, limits=_JEV_LIMITS
    )


def openrouter(model: str | None, *, api_key: str | None = None, base_url: str | None = None) -> DecisionClient:
    """Return a client for a decision model on OpenRouter.

    Args:
        model: Such as "typesafe/jev-1.13" or "liquid/d1.1"; there is no default.
        api_key: Default OPENROUTER_API_KEY.
        base_url: Default OPENROUTER_BASE_URL, else https://openrouter.ai/api.

    Raises:
        ConfigurationError: There is no model, no key, or the URL cannot be used.
    """
    if not model:
        raise ConfigurationError('decider "openrouter" needs a model; write "openrouter:typesafe/jev-1.13"')
    key = key_from("OPENROUTER_API_KEY", api_key, f"openrouter:{model}")
    base = base_url or os.environ.get("OPENROUTER_BASE_URL") or "https://openrouter.ai/api"
    return _hosted(
        SystemOne(), base, "/alpha/decisions", key, name=f"openrouter:{model}", family=None, model=model,
        limits=_JEV_LIMITS,
    )  # fmt: skip


def openai(model: str | None = None, *, api_key: str | None = None, base_url: str | None = None) -> DecisionClient:
    """Return a client for the OpenAI Decisions API.

    Args:
        model: Default "gpt-6-luna".
        api_key: Default OPENAI_API_KEY.
        base_url: Default OPENAI_BASE_URL, else https://api.openai.com/v1.

    Raises:
        ConfigurationError: There is no key, or the URL cannot be used.
    """
    key = key_from("OPENAI_API_KEY", api_key, "openai")
    base = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    return _hosted(
        OpenAIDecisions(), base, "/decisions", key, name="openai", family="openai-decisions", model=model or LUNA,
        limits=_OPENAI_LIMITS,
    )  # fmt: skip


def liquid(model: str | None = None, *, api_key: str | None = None, base_url: str | None = None) -> DecisionClient:
    """Return a client for Liquid's hosted d1 models.

    Args:
        model: Default "d1.1".
        api_key: Default LIQUID_API_KEY.
        base_url: Default LIQUID_BASE_URL; the host is in none of the sources we have, so it must be given.

    Raises:
        ConfigurationError: There is no key or no base URL, or the URL cannot be used.
    """
    key = key_from("LIQUID_API_KEY", api_key, "liquid")
    base = base_url or os.environ.get("LIQUID_BASE_URL")
    if not base:
        raise ConfigurationError(
            'decider "liquid" needs its address; set LIQUID_BASE_URL to the API root of your Liquid account, '
            'or use "openrouter:liquid/d1.1"'
        )
    return _hosted(
        SystemOne(), base, "/v1/systemone", key, name="liquid", family="liquid", model=model or LIQUID,
        limits=_LIQUID_LIMITS,
    )  # fmt: skip


def strands_decider(checkpoint: str | None = None, *, device: str | None = None) -> DecisionClient:
    """Return strands-decider in this process.

    Args:
        checkpoint: A folder or a hub repository; default the released 2B model, downloaded at its first use.
        device: "cuda", "mps" or "cpu"; default the best available.

    Raises:
        ConfigurationError: The package is missing, or the folder holds no checkpoint.
    """
    engine = LocalEngine(checkpoint, device)
    return DecisionClient(
        SystemOne(),
        _ENGINES.setdefault((engine.checkpoint, device), engine),
        name="strands-decider",
        family="strands-decider",
        limits=_STRANDS_LIMITS,
    )


def sagemaker(endpoint: str | None, *, boto_session: Any = None, region_name: str | None = None) -> DecisionClient:
    """Return a client for strands-decider on a SageMaker endpoint.

    Args:
        endpoint: The endpoint's name.
        boto_session: Default a new session, made at the first call.
        region_name: Default the session's.

    Raises:
        ConfigurationError: There is no name, or it cannot be an endpoint's.
    """
    if not endpoint:
        raise ConfigurationError('decider "sagemaker" needs an endpoint; write "sagemaker:my-endpoint"')
    return DecisionClient(
        SystemOne(),
        SageMaker(endpoint, boto_session, region_name),
        name=f"sagemaker:{endpoint}",
        model="strands-decider-latest",
        family="strands-decider",
        limits=_STRANDS_LIMITS,
    )


def agentcore(arn: str | None, *, boto_session: Any = None, region_name: str | None = None) -> DecisionClient:
    """Return a client for strands-decider on AgentCore Runtime.

    Args:
        arn: The runtime's ARN.
        boto_session: Default a new session, made at the first call.
        region_name: Default the ARN's.

    Raises:
        ConfigurationError: There is no ARN, or it is not a runtime's.
    """
    return DecisionClient(
        SystemOne(),
        AgentCoreRuntime(arn or "", boto_session, region_name, read_s=SLOW_DEADLINE_S),
        name="agentcore",
        model="strands-decider-latest",
        family="strands-decider",
        limits=_STRANDS_LIMITS,
        deadline_s=SLOW_DEADLINE_S,
    )


def _hosted(
    codec: SystemOne | OpenAIDecisions,
    base: str,
    path: str,
    key: Secret,
    *,
    name: str,
    family: str | None,
    model: str,
    limits: Limits,
) -> DecisionClient:
    url = _joined(checked_url(base), path)
    _warn_about_plain_http(url, key)
    return DecisionClient(codec, HttpTransport(url, key), name=name, family=family, model=model, limits=limits)


def _joined(base: str, path: str) -> str:
    """Append a path; a base that ends with the path's own first part, as in `…/v1`, does not get it twice."""
    base = base.rstrip("/")
    first = "/" + path.split("/")[1]
    return base + (path[len(first) :] if base.endswith(first) else path)


def _warn_about_plain_http(url: str, key: Secret | None) -> None:
    if key is not None and url.startswith("http:") and not is_loopback(url):
        logger.warning("url=<%s> | the API key travels unencrypted | use https", url)
