"""Bench for one DMA engine under Amaranth's simulator: memories, triggers, updates, and the expected result."""

import random
from dataclasses import dataclass, field, replace

from amaranth.sim import Period, Simulator

from hdl.dma.engine import DmaEngine
from isa.address_map import CORE_BASE, DmaCause
from isa.fields import DESCRIPTOR, DESCRIPTOR_COPY, Update
from isa.geometry import DESCRIPTOR_BYTES, ISA_VERSION
from sim.models.axi_memory import AxiMemory, Timing
from sim.models.narrow_memory import NarrowMemory
