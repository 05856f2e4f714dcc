# error: expression must be mutable
from device_arena import Arena, Library


def main() raises:
    var arena = Arena(Library())
    var call = arena.begin()
    var view = call.output[DType.int32](4).publish()
    call^.finish()
    var guard = view.read()
    guard.span()[0] = 1
