# error: offsets are uint32, uint64, int32 or int64
from device_arena import Library, TapeView


def main() raises:
    var text = String("ab")
    var offsets: List[Float32] = [0, 2]
    print(len(TapeView.of(Library(), text.as_bytes(), Span(offsets))))
