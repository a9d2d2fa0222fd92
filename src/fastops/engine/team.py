# mypy: ignore-errors
"""How many threads a call may use, for machine code that asks without Python."""

import llvmlite.ir as ir

from ..kernels.primitives import INT32, WORD, address, caller, inlined, read_word, scratch
from .objects import field
from .threads import Team

usable, most, affinity_of, mask_of = (field(Team, name) for name in ("usable", "most", "affinity", "mask"))
word = ir.IntType(WORD.bitwidth)
count_threads, get_affinity = caller(INT32), caller(INT32, INT32, word, word)
CPUS = 1024  # bytes: one bit for each processor that Linux may have
processors = scratch(CPUS)


@inlined
def threads_of(team):
    """As `threads.limit`."""
    available = most(team)
    if affinity_of(team) != 0:
        place = processors()
        if get_affinity(affinity_of(team), 0, CPUS, address(place)) == 0:
            count = 0
            for k in range(0, CPUS, 8):
                bits = read_word(place, k)
                while bits != 0 and count < available:
                    bits &= bits - 1
                    count += 1
            available = max(min(available, count), 1)
    return min(available, count_threads(mask_of(team))) if mask_of(team) != 0 else available
