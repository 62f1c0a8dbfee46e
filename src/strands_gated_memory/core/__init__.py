"""The pure part: values, questions and stage functions; values in, values out.

Nothing here starts a thread, takes a lock, reads a clock or a file, or imports Strands, boto3 or a network client.
"""
