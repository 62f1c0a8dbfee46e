"""Decisions by strands-decider on a SageMaker endpoint, in a region of its own if need be.

    export AWS_REGION=us-east-1
    python examples/decider_sagemaker.py my-endpoint

IAM action: sagemaker:InvokeEndpoint on the endpoint. Region and credentials resolve at the first call; a
wrong endpoint name is found by the check below, not by the first user. In an agent:
`GatedMemorySessionManager(config, decider="sagemaker:my-endpoint")`.
"""

import sys

import boto3

from strands_gated_memory.deciders.catalog import sagemaker
from strands_gated_memory.deciders.check import check
from strands_gated_memory.terminal import lines


def main(endpoint: str, session: boto3.Session | None = None) -> int:
    """Check the endpoint and print what was found."""
    decider = sagemaker(endpoint, boto_session=session or boto3.Session())
    report = check(decider)
    print("\n".join(lines(report, f"sagemaker:{endpoint}")))
    return 0 if report.available else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
