"""The decision models that are known by name, each as a function that makes one.

Nothing here talks to a model: a missing key, a bad URL or a missing package is an error now, everything
else is found out by `check`, or counted on the first turn.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ..errors import ConfigurationError
from .client import DecisionClient
from .codecs.openai_decisions import OpenAIDecisions
from .codecs.system_one import SystemOne
from .limits import Limits
from .presets import SLOW_DEADLINE_S, VENDORS
from .secret import Secret
from .shown import quoted
from .transports.aws import AgentCoreRuntime, SageMaker
from .transports.http import HttpTransport, checked_url, is_loopback
from .transports.local import LocalEngine

logger = logging.getLogger(__name__)

_ENGINES: dict[tuple[str, str | None], LocalEngine] = {}
"""One per checkpoint and device: a process that makes a decider per request holds its model once."""

ALIAS = "jev-latest"
"""The model name that every System One server is to accept (jevcompat's SPEC); sent where none is given."""

_ENDINGS = ("/systemone", "/decisions", "/invocations")


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
    parts = urlsplit(base)
    path = parts.path.rstrip("/")
    address = base.rstrip("/") if path.endswith(_ENDINGS) else _joined(base, "/v1/systemone")
    return DecisionClient(
        OpenAIDecisions() if path.endswith("/decisions") else SystemOne(),
        _post(address, _key("SYSTEMONE_API_KEY", api_key), urlunsplit((parts.scheme, parts.netloc, "/health", "", ""))),
        name=name or address,
        model=model or urlsplit(url).fragment or ALIAS,
        limits=Limits(max_questions=100),
    )


def hosted(
    name: str, model: str | None = None, *, api_key: str | None = None, base_url: str | None = None
) -> DecisionClient:
    """Return a client for a hosted model; `jev`, `openrouter`, `openai` and `liquid` are this for one vendor each.

    Args:
        name: Of a row of `presets.VENDORS`.
        model: Default the vendor's; OpenRouter has none.
        api_key: Default the vendor's `…_API_KEY` from the environment.
        base_url: Default the vendor's `…_BASE_URL` from the environment, else its public address; Liquid's is in
            none of the sources that we have, so it must be given.

    Raises:
        ConfigurationError: There is no key, no model or no address, or the URL cannot be used.
    """
    vendor = next(vendor for vendor in VENDORS if vendor.name == name)
    spec = f"{vendor.name}:{model}" if model else vendor.name
    if not (model or vendor.model):
        raise ConfigurationError(f'decider "{vendor.name}" needs a model; write "{vendor.example}"')
    key = _key(f"{vendor.variables}_API_KEY", api_key)
    if key is None:
        raise ConfigurationError(
            f"decider {quoted(spec)} needs an API key; set {vendor.variables}_API_KEY in the environment"
        )
    base = base_url or os.environ.get(f"{vendor.variables}_BASE_URL") or vendor.base_url
    if not base:
        raise ConfigurationError(
            f'decider "{vendor.name}" needs its address; set {vendor.variables}_BASE_URL to the API root of your '
            'account, or use OpenRouter, such as "openrouter:liquid/d1.1"'
        )
    return DecisionClient(
        vendor.codec,
        _post(_joined(checked_url(base), vendor.path), key),
        name=vendor.name if vendor.model else spec,
        family=vendor.family,
        model=model or vendor.model,
        limits=vendor.limits,
    )


jev = functools.partial(hosted, "jev")
openrouter = functools.partial(hosted, "openrouter")
liquid = functools.partial(hosted, "liquid")
openai = functools.partial(hosted, "openai")

_strands = functools.partial(DecisionClient, SystemOne(), family="strands-decider", limits=Limits(window_tokens=4096))


def strands_decider(checkpoint: str | None = None, *, device: str | None = None) -> DecisionClient:
    """Return strands-decider in this process.

    Args:
        checkpoint: A folder or a hub repository; default the released 2B model, downloaded at its first use.
        device: "cuda", "mps" or "cpu"; default the best available.

    Raises:
        ConfigurationError: The package is missing, or the folder holds no checkpoint.
    """
    engine = LocalEngine(checkpoint, device)
    shared = _ENGINES.setdefault((engine.checkpoint, device), engine)
    return _strands(shared, name="strands-decider")


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
    transport = SageMaker(endpoint, boto_session, region_name)
    return _strands(transport, name=f"sagemaker:{endpoint}", model="strands-decider-latest")


def agentcore(arn: str | None, *, boto_session: Any = None, region_name: str | None = None) -> DecisionClient:
    """Return a client for strands-decider on AgentCore Runtime.

    Args:
        arn: The runtime's ARN.
        boto_session: Default a new session, made at the first call.
        region_name: Default the ARN's.

    Raises:
        ConfigurationError: There is no ARN, or it is not a runtime's.
    """
    transport = AgentCoreRuntime(arn or "", boto_session, region_name, read_s=SLOW_DEADLINE_S)
    return _strands(transport, name="agentcore", model="strands-decider-latest", deadline_s=SLOW_DEADLINE_S)


def _key(variable: str, given: str | None) -> Secret | None:
    """Return the key given, else the one in the environment, None if there is none."""
    if given is not None:
        return Secret(given, "api_key")
    value = os.environ.get(variable)
    return Secret(value, variable) if value else None


def _post(url: str, key: Secret | None, health_url: str | None = None) -> HttpTransport:
    if key is not None and url.startswith("http:") and not is_loopback(url):
        logger.warning("url=<%s> | the API key travels unencrypted | use https", url)
    return HttpTransport(url, key, health_url=health_url)


def _joined(base: str, path: str) -> str:
    """Append a path; a base that ends with the path's own first part, as in `…/v1`, does not get it twice."""
    base = base.rstrip("/")
    first = "/" + path.split("/")[1]
    return base + (path[len(first) :] if base.endswith(first) else path)
