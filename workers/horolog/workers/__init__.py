"""Workers: what executes runs.

ready      hints by tier, drained 70/20/10
leases     claims, heartbeats, fences: pure
agent      the thread around it
executors  http, command, handler
"""
