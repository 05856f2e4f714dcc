# error: most bytes are no bool: take uint8
from device_arena import Arena, Library


def main() raises:
    var arena = Arena(Library())
    var call = arena.begin()
    var output = call.output[DType.bool](4)
    print(len(output))
