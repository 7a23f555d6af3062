"""Building blocks that every engine shares: tiles, RAM, streams, FIFOs, arbiters, delay lines,
checks.
"""
