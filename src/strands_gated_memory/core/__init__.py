"""The pure part: values, questions, stage functions, and the pipeline that orders them.

Nothing here imports Strands, boto3 or a network client.
"""
