"""Vectors through units that take several cycles, counted by their input `step`."""

import numpy as np


def stream_steps(unit, steps, **vectors):
    """Results `o` of a compiled unit (`verif.cxxrtl`), each read in its last step.

    vectors: arrays of one length, or scalars, held for `steps` cycles each.
    """
    arrays = np.broadcast_arrays(*[np.atleast_1d(vector) for vector in vectors.values()])
    held = {name: np.repeat(array, steps) for name, array in zip(vectors, arrays, strict=True)}
    step = np.tile(np.arange(steps), arrays[0].size)
    return unit.stream(step=step, **held).o[steps - 1 :: steps]
