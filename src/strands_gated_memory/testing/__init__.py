"""Test doubles that ship with the package."""

from .agentcore import HashingEncoder, LocalAgentCore, SeedError, local_agentcore, seed_records

__all__ = ["HashingEncoder", "LocalAgentCore", "SeedError", "local_agentcore", "seed_records"]
