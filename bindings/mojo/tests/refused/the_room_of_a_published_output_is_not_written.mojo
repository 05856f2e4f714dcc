# error: use of uninitialized value 'output'
from device_arena import Arena, Library


def main() raises:
    var arena = Arena(Library())
    var call = arena.begin()
    var output = call.output[DType.int32](4)
    var room = output.span()
    var view = output^.publish()
    room[0] = 1
    call^.finish()
    print(len(view))
