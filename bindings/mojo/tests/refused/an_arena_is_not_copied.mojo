# error: value of type 'Arena' cannot be implicitly copied
from device_arena import Arena, Library


def main() raises:
    var arena = Arena(Library())
    var copy = arena
    print(copy.stats().allocations, arena.stats().allocations)
