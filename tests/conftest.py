"""For every test: no AWS settings of the developer's, no failures that an earlier test has logged or caused."""

import functools
import os
import time
from importlib.metadata import version

import pytest
from botocore.loaders import create_loader

from strands_gated_memory.reporting.log import reset_failure_log
from strands_gated_memory.runtime.guard import reset_breakers


def pytest_report_header():
    """Say which SDKs the promises were checked against."""
    return ", ".join(f"{name} {version(name)}" for name in ("bedrock-agentcore", "strands-agents", "boto3", "moto"))


@pytest.fixture(scope="session", autouse=True)
def _no_aws_settings(tmp_path_factory):
    # Once per session, not per test: an emulation that a module shares keeps its credentials here.
    nowhere = tmp_path_factory.mktemp("aws")
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_") or name == "MOTO_ACCOUNT_ID"]:
            environment.delenv(name)
        environment.setenv("AWS_CONFIG_FILE", str(nowhere / "config"))
        environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere / "credentials"))
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session", autouse=True)
def _service_models_are_read_once():
    # Every boto session reads megabytes of JSON anew, 0.2 s each; here they share one loader, as the clients of one
    # session do.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", functools.cache(create_loader))
        yield


@pytest.fixture
def later(monkeypatch):
    """Move the clock on within a recall, whose deadline may then be over: `later(60)`, in seconds."""
    real, ahead_s = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead_s[0])

    def move_on(seconds):
        ahead_s[0] += seconds

    return move_on


@pytest.fixture(autouse=True)
def _no_failures_logged_before():
    reset_failure_log()


@pytest.fixture(autouse=True)
def _no_open_circuit_breakers():
    reset_breakers()
