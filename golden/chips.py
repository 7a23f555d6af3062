"""Chips joined by links, run as one machine.

    pair = GoldenChips([config, config], [((0, 0), (1, 0))])
    results = pair.run([program_a, program_b])

Links are reliable here and keep the order of each sender's writes (docs/link.md, transaction
layer); hazards are looked for across all chips.
"""

from golden.chip import GoldenChip
from golden.happens_before import HappensBefore
from golden.hazard import HazardError
from golden.schedule import Budget, run
from golden.text import Texts

_INSTRUCTIONS = 50_000_000

PAIR = (((0, 0), (1, 0)),)
"""Port 0 of two chips joined."""


class GoldenChips:
    """Chips of `configs`. links: [((chip, port), (chip, port))], each end at most once.

    Options as of GoldenChip, whose names for the agents get the label "chip0." and so on.
    """

    def __init__(self, configs, links=PAIR, *, on_hazard="raise", **options):
        self.chips = [
            GoldenChip(config, label=f"chip{i}.", index=i, on_hazard=on_hazard, **options)
            for i, config in enumerate(configs)
        ]
        for ends in links:
            one, other = (self._free_port(*end) for end in ends)
            one.far, other.far = other, one
        self._on_hazard = on_hazard

    def _free_port(self, chip, port):
        if not 0 <= chip < len(self.chips) or not 0 <= port < len(self.chips[chip].ports):
            raise ValueError(f"link to chip {chip} port {port}: there is none")
        found = self.chips[chip].ports[port]
        if found.far is not None:
            raise ValueError(f"link to chip {chip} port {port}: it is connected already")
        return found

    def __getitem__(self, index):
        return self.chips[index]

    def run(self, programs, data=None, *, seed=None, max_instructions=_INSTRUCTIONS):
        """Loads a program into each chip (None: the chip stays idle), starts all, runs to the end.

        data: {tensor name: array} for each. Returns the Result of each chip; hazards are listed
        with the chip whose memory it is. seed: as in GoldenChip.launch. HazardError has the list of
        Results as `result`.
        """
        data = data or [None] * len(programs)
        for chip, program, values in zip(self.chips, programs, data, strict=True):
            if program is not None:
                chip.load(program, values)
        for chip, program in zip(self.chips, programs, strict=True):
            chip.start(program.launch() if program is not None else {})
        self._watch(programs)
        budget = Budget(max_instructions, [s for chip in self.chips for s in chip.sequencers])
        run(self.chips, budget, seed)
        results = [chip.result(sum(s.retired for s in chip.sequencers)) for chip in self.chips]
        hazards = [hazard for result in results for hazard in result.hazards]
        if hazards and self._on_hazard == "raise":
            raise HazardError(hazards, results)
        return results

    def _watch(self, programs):
        order = HappensBefore([(len(chip.dma), len(chip.ports)) for chip in self.chips])
        texts = {
            chip.label: Texts(chip, program)
            for chip, program in zip(self.chips, programs, strict=True)
        }

        def describe(origin):
            label = origin.agent[: origin.agent.index(".") + 1]
            return texts[label].of(origin)

        for chip, own in zip(self.chips, order.chips, strict=True):
            chip.watch(order=own, describe=describe)
