"""Chip level: AXI arbiters, local bus, host port, control registers and the top."""
