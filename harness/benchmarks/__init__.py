"""What a recall costs and how it fares under load: `python -m harness.benchmarks.<name>`."""
