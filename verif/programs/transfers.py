"""Random DMA copies: all directions, any alignment, up to three dimensions; bus accesses."""

from isa.address_map import psum_address, sbuf_address
from isa.encoding import DIMENSIONS, Descriptor
from isa.fields import Space
from isa.pattern import Reg
from isa.values import Address
from verif.programs.spec import HBM, Box, Copy, Spec

_SPACES = (HBM, int(Space.SBUF))


class Transfers:
    """hbm: list of (low, high, writable) byte ranges, all written; areas: of SBUF and PSUM."""

    def __init__(self, config, rng, hbm, areas):
        self._config = config
        self._rng = rng
        self._hbm = hbm
        self._areas = areas

    def copy(self):
        """A random Copy whose destination rows are apart from each other and from the source."""
        rng = self._rng
        while True:
            found = self._try(rng.choice(_SPACES), rng.choice(_SPACES))
            if found is not None:
                return found

    def _try(self, source, target):
        rng = self._rng
        counts = [rng.choice((1, 1, 2, rng.randint(1, 5))) for _ in range(DIMENSIONS)]
        if rng.random() < 0.5:
            counts[rng.randrange(DIMENSIONS)] = rng.randint(1, self._config.partitions)
        row_bytes = rng.choice((rng.randint(1, 20), rng.randint(1, 80), 16 * rng.randint(1, 8)))
        sides = []
        for space, is_target in ((source, False), (target, True)):
            side = self._side(space, counts, row_bytes, is_target)
            if side is None:
                return None
            sides.append(side)
        (src, src_strides, read), (dst, dst_strides, write) = sides
        if read.meets(write):
            return None
        descriptor = Descriptor(
            src_address=src,
            dst_address=dst,
            row_bytes=row_bytes,
            count=tuple(counts),
            src_stride=src_strides,
            dst_stride=dst_strides,
        )
        return Copy(descriptor, [read], [write])

    def _side(self, space, counts, row_bytes, is_target):
        """(address, strides, Box) or None when it does not fit."""
        if space == HBM:
            low, high, _ = self._rng.choice([h for h in self._hbm if h[2] or not is_target])
            strides, first = self._bytes(counts, row_bytes, high - low, is_target)
            if strides is None:
                return None
            box = _box(HBM, (0, 1), low + first, counts, strides, row_bytes)
            return low + first, tuple(strides), box
        return self._sbuf(counts, row_bytes, is_target)

    def _sbuf(self, counts, row_bytes, is_target):
        rng, config = self._rng, self._config
        area = rng.choice([a for a in self._areas if a.space == Space.SBUF])
        widest = max(range(DIMENSIONS), key=lambda i: (counts[i], rng.random()))
        axis = widest if rng.random() < 0.8 else None
        inside = [1 if i == axis else count for i, count in enumerate(counts)]
        strides, first = self._bytes(inside, row_bytes, area.size, is_target)
        if strides is None:
            return None
        if axis is None:
            partition = rng.randrange(config.partitions)
            rows = (partition, partition + 1)
        else:
            count = counts[axis]
            step = rng.choice((1, 1, 2)) if 2 * count <= config.partitions else 1
            reach = step * (count - 1)
            if reach >= config.partitions:
                return None
            low = rng.randint(0, config.partitions - 1 - reach)
            rows = (low, low + reach + 1)
            backwards = rng.random() < 0.3
            strides[axis] = step * config.sbuf_stride_bytes * (-1 if backwards else 1)
            partition = rows[1] - 1 if backwards else low
        address = sbuf_address(config, partition, area.low + first)
        plain = [0 if i == axis else stride for i, stride in enumerate(strides)]
        box = _box(int(Space.SBUF), rows, area.low + first, counts, plain, row_bytes)
        return address, tuple(strides), box

    def _bytes(self, counts, row_bytes, room, is_target):
        """(strides, place of the first row) within `room` bytes, or (None, 0)."""
        rng = self._rng
        order = list(range(DIMENSIONS))
        rng.shuffle(order)
        strides, unit = [rng.randint(-99, 99)] * DIMENSIONS, row_bytes
        for axis in order:
            if counts[axis] == 1:
                continue
            if not is_target and rng.random() < 0.15:
                strides[axis] = rng.randint(-3, 3)  # a source may be read more than once
            else:
                unit += rng.choice((0, 0, 1, 3, 16, rng.randint(0, 40)))
                strides[axis] = unit * rng.choice((1, 1, -1))
                unit *= counts[axis]
        reach = [s * (c - 1) for s, c in zip(strides, counts, strict=True)]
        low = sum(r for r in reach if r < 0)
        high = sum(r for r in reach if r > 0) + row_bytes
        if high - low > room:
            return None, 0
        return strides, rng.choice((0, room - high + low, rng.randint(0, room - high + low))) - low

    def access(self, registers):
        """Spec of a reg_load or reg_store. registers: function that gives a register."""
        rng, config = self._rng, self._config
        store = rng.random() < 0.5
        where = rng.choice(("hbm", *self._areas))
        if where == "hbm":
            low, high, _ = rng.choice([h for h in self._hbm if h[2] or not store])
            address = rng.randrange(-(-low // 4), high // 4) * 4
            box = Box(HBM, 0, 1, address, address + 4)
        else:
            partition = rng.randrange(config.partitions)
            offset = rng.randrange(-(-where.low // 4), where.high // 4) * 4
            place = sbuf_address if where.space == Space.SBUF else psum_address
            address = place(config, partition, offset)
            box = Box(int(where.space), partition, partition + 1, offset, offset + 4)
        if store:
            arguments = {"rb": Reg(rng.randrange(64)), "address": Address(address)}
            return Spec("reg_store", arguments, [], [box])
        return Spec("reg_load", {"rd": registers(), "address": Address(address)}, [box], [])


def _box(space, rows, first, counts, strides, row_bytes):
    reach = [s * (c - 1) for s, c in zip(strides, counts, strict=True)]
    low = first + sum(r for r in reach if r < 0)
    high = first + sum(r for r in reach if r > 0) + row_bytes
    return Box(space, *rows, low, high)
