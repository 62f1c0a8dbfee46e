"""Two sizes: a short one for every run, and `--hypothesis-profile=nightly`, over 200,000 examples in all."""

from hypothesis import HealthCheck, settings

NIGHTLY = 15_000
"""Examples of each of the sixteen tests: 240,000 in all."""

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("short", max_examples=40, **_COMMON)
settings.register_profile("minute", max_examples=1000, print_blob=True, **_COMMON)
settings.register_profile("nightly", max_examples=NIGHTLY, print_blob=True, **_COMMON)
