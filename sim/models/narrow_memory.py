"""SBUF or PSUM behind a narrow port, for Amaranth's simulator."""

import random
from collections import deque

from hdl.memory.ports import NARROW_READ_CYCLES
from sim.models.axi_memory import StreamWatch


class NarrowMemory:
    """`rows[partition]` (bytearrays) behind `SbufNarrow` / `PsumNarrow` ports; `stall` is the
    chance of not moving."""

    def __init__(self, rows, *, word_bytes, stall=0.0, seed=0):
        self.rows, self.word_bytes, self.stall = rows, word_bytes, stall
        self.random = random.Random(seed)
        self.read_words = self.write_words = 0

    def _moves(self):
        return int(self.stall == 0 or self.random.random() >= self.stall)

    def _at(self, request):
        assert request.partition < len(self.rows), f"partition {request.partition}"
        low = request.word * self.word_bytes
        assert low + self.word_bytes <= len(self.rows[request.partition]), f"word {request.word}"
        return self.rows[request.partition], low

    async def serve(self, ctx, port):
        """Process for one port."""
        watch_read, watch_write = StreamWatch("narrow read"), StreamWatch("narrow write")
        answers: deque[int | None] = deque([None] * (NARROW_READ_CYCLES - 1))
        read_ready = write_ready = 0
        while True:
            _, _, read_valid, read, write_valid, write = await ctx.tick().sample(
                port.read.valid, port.read.p, port.write.valid, port.write.p
            )
            answer = None
            if watch_read.see(read_valid, read_ready, read):
                self.read_words += 1
                row, low = self._at(read)
                answer = int.from_bytes(row[low : low + self.word_bytes], "little")
            if watch_write.see(write_valid, write_ready, write):
                self.write_words += 1
                row, low = self._at(write)
                word = write.data.to_bytes(self.word_bytes, "little")
                for index in range(self.word_bytes):
                    if write.bytes >> index & 1:
                        row[low + index] = word[index]
            answers.append(answer)
            answer = answers.popleft()
            ctx.set(port.valid, answer is not None)
            if answer is not None:
                ctx.set(port.data, answer)
            read_ready, write_ready = self._moves(), self._moves()
            ctx.set(port.read.ready, read_ready)
            ctx.set(port.write.ready, write_ready)
