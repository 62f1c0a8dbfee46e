"""An in-process Amazon Bedrock AgentCore Memory for tests and demos, on moto.

boto3 talks to it over the real wire format, so limits, pages and errors are met where they are met in AWS.
Importing this costs nothing: moto, boto3 and numpy are imported when they are used.
"""

from .calls import Call, CallLog
from .local import LocalAgentCore, local_agentcore
from .ranking import HashingEncoder, SentenceEncoder
from .seeding import SeedError, SeedRecord, seed_records

__all__ = [
    "Call",
    "CallLog",
    "HashingEncoder",
    "LocalAgentCore",
    "SeedError",
    "SeedRecord",
    "SentenceEncoder",
    "local_agentcore",
    "seed_records",
]
