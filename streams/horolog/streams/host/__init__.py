"""Hosts: what gives the pure core its inputs, commits its batches and sends its messages.

owner      one ledger partition: read, decide and evolve, commit, react
embedded   all partitions and the dispatcher in one thread of one process
"""
