"""Arithmetic units of the chip, each held bit for bit against `golden.arith`.

Every unit is a `hdl.arith.pipeline.PipelinedUnit`: results do not depend on its number of stages.
"""
