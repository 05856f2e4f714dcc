# error: use of uninitialized value 'arena'
from device_arena import Arena, Library


def main() raises:
    var arena = Arena(Library())
    arena^.close()
    print(arena.stats().allocations)
