"""Time, threads and failure: asking and searching within a deadline, what a fork leaves, what keeps failing."""
