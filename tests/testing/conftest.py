"""Real boto3 clients over a fresh emulation per test."""

import warnings

import boto3
import pytest
from botocore.config import Config

with warnings.catch_warnings():
    # bedrock-agentcore 1.25 warns at its first import: a class-based pydantic config, an old place of BidiAgent.
    warnings.simplefilter("ignore", DeprecationWarning)
    from strands_gated_memory.testing import HashingEncoder, local_agentcore

AWS_NAMES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "MOTO_ACCOUNT_ID",
)


@pytest.fixture(autouse=True)
def _no_aws_settings(monkeypatch, tmp_path):
    for name in AWS_NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def core():
    with local_agentcore(encoder=HashingEncoder()) as handle:
        yield handle


@pytest.fixture
def client(core):
    return boto3.client("bedrock-agentcore", config=Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def control(core):
    return boto3.client("bedrock-agentcore-control")
