"""Test doubles that ship with the package: an in-process AgentCore Memory and a scripted Strands model."""

from .agentcore import HashingEncoder, LocalAgentCore, SeedError, local_agentcore, seed_records
from .model import ScriptedModel, ToolCall, blocks_shown

__all__ = [
    "HashingEncoder",
    "LocalAgentCore",
    "ScriptedModel",
    "SeedError",
    "ToolCall",
    "blocks_shown",
    "local_agentcore",
    "seed_records",
]
