"""The register of stock faults: each is a check that both managers run, and whether the parent still fails it."""

import pytest
from turn_builders import GATED, STOCK

CASES = []


def fault(name, *, stock):
    """Register a check `(bench, kind, caplog)` under its number or name.

    Args:
        name: "5.1" is number 1 of facts/agentcore.md section 5; section 4 has names.
        stock: "fails" where bedrock-agentcore 1.25.0 still has the fault, "fixed" where it has not.
    """
    assert stock in ("fails", "fixed")

    def register(check):
        # An assertion, and nothing else, is the fault: a check that breaks otherwise is no evidence.
        marks = (
            [pytest.mark.xfail(strict=True, raises=AssertionError, reason=check.__doc__)] if stock == "fails" else []
        )
        CASES.append(pytest.param(check, STOCK, id=f"{name}-{STOCK}", marks=marks))
        CASES.append(pytest.param(check, GATED, id=f"{name}-{GATED}"))
        return check

    return register
