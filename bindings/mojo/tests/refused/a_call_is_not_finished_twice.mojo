# error: use of uninitialized value 'call'
from device_arena import Arena, Library


def main() raises:
    var arena = Arena(Library())
    var call = arena.begin()
    call^.finish()
    call^.finish()
