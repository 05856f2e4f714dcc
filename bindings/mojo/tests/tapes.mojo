"""Tapes: checked offsets over memory of any kind."""

from backend import a_result, an_executor, is_vram, refusal
from device_arena import Arena, ArenaError, Library, MemoryKind, Status, TapeView
from std.testing import assert_equal, assert_false, assert_true


def text_of(tape: TapeView, index: Int) raises -> String:
    return String(unsafe_from_utf8=tape.item(index))


def check_type[dtype: DType](library: Library) raises:
    var text = String("oneinthree")
    var offsets: List[Scalar[dtype]] = [0, 3, 5, 10]
    var tape = TapeView.of(library, text.as_bytes(), Span(offsets))
    assert_equal(len(tape), 3)
    assert_equal(tape.byte_count(), 10)
    assert_equal(text_of(tape, 0), "one")
    assert_equal(text_of(tape, 2), "three")


def test_offsets_of_every_type_are_taken() raises:
    var library = Library()
    check_type[DType.uint32](library)
    check_type[DType.uint64](library)
    check_type[DType.int32](library)
    check_type[DType.int64](library)


def span_refusal(library: Library, offsets: List[Int32]) -> Status:
    var bytes = List[UInt8](length=10, fill=0)

    def attempt() raises ArenaError {imm}:
        _ = TapeView.of(library, Span(bytes), Span(offsets))

    return refusal(attempt)


def test_offsets_that_are_wrong_are_refused() raises:
    var library = Library()
    assert_equal(span_refusal(library, [0, 3, 2, 10]), Status.INVALID_ARGUMENT)
    assert_equal(span_refusal(library, [-1, 3]), Status.INVALID_ARGUMENT)
    assert_equal(span_refusal(library, [0, 11]), Status.INVALID_ARGUMENT)
    assert_equal(span_refusal(library, [11]), Status.INVALID_ARGUMENT)
    assert_equal(span_refusal(library, [Int32.MAX, Int32.MIN]), Status.INVALID_ARGUMENT)
    assert_equal(span_refusal(library, [0, 10]), Status.OK)


def test_a_tape_may_be_empty() raises:
    var library = Library()
    var bytes = List[UInt8]()
    var none = List[UInt64]()
    assert_equal(len(TapeView.of(library, Span(bytes), Span(none))), 0)
    var one: List[UInt64] = [0]
    assert_equal(len(TapeView.of(library, Span(bytes), Span(one))), 0)
    var empty: List[UInt64] = [0, 0, 0]
    var tape = TapeView.of(library, Span(bytes), Span(empty))
    assert_equal(len(tape), 2)
    assert_equal(len(tape.item(1)), 0)


def test_an_item_that_is_not_there_is_refused() raises:
    var library = Library()
    var text = String("abc")
    var offsets: List[UInt32] = [0, 3]
    var tape = TapeView.of(library, text.as_bytes(), Span(offsets))
    for index in [1, 100, Int.MAX, -1]:

        def item() raises ArenaError {imm}:
            _ = tape.item(index)

        assert_equal(refusal(item), Status.INVALID_ARGUMENT)


def test_a_pointer_to_the_hosts_memory_is_a_tape() raises:
    var library = Library()
    var bytes: List[UInt8] = [65, 66, 67]
    var offsets: List[UInt64] = [0, 1, 3]
    var tape = TapeView.of(library, bytes.unsafe_ptr(), 3, Span(offsets))
    assert_equal(text_of(tape, 1), "BC")
    assert_equal(tape.memory(), MemoryKind.UNREGISTERED)
    assert_equal(tape.device(), -1)
    var by_two_pointers = TapeView.of(library, bytes.unsafe_ptr(), 3, offsets.unsafe_ptr(), 3)
    assert_equal(text_of(by_two_pointers, 0), "A")

    # Pointers of other libraries have no origin that says whose they are.
    var anyones = TapeView.of(library, bytes.unsafe_ptr().as_unsafe_any_origin(), 3, Span(offsets))
    assert_equal(text_of(anyones, 1), "BC")
    var nobodys = bytes.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin]()
    assert_equal(text_of(TapeView.of(library, nobodys, 3, Span(offsets)), 1), "BC")
    assert_equal(len(bytes), 3)

    def negative() raises ArenaError {imm}:
        _ = TapeView.of(library, bytes.unsafe_ptr(), -1, Span(offsets))

    def unordered() raises ArenaError {imm}:
        var wrong: List[UInt64] = [0, 2, 1]
        _ = TapeView.of(library, bytes.unsafe_ptr(), 3, Span(wrong))

    assert_equal(refusal(negative), Status.INVALID_ARGUMENT)
    assert_equal(refusal(unordered), Status.INVALID_ARGUMENT)


def test_a_pointer_to_a_devices_memory_is_a_tape_that_the_host_does_not_read() raises:
    if not is_vram():
        print("skipped: a tape in a device's memory: there is no device")
        return
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena, 16)
    var guard = view.read_on(executor)
    var bytes = guard.device_pointer().unsafe_bitcast[UInt8]()
    var offsets: List[UInt32] = [0, 4, 64]
    var tape = TapeView.of(library, bytes, 64, Span(offsets))
    assert_equal(tape.memory(), MemoryKind.DEVICE)
    assert_equal(tape.device(), executor.device().ordinal)

    def item() raises ArenaError {imm tape}:
        _ = tape.item(0)

    # The offsets have to be the host's to read.
    def offsets_on_the_device() raises ArenaError {imm}:
        _ = TapeView.of(library, bytes, 64, guard.device_pointer().unsafe_bitcast[UInt32](), 3)

    def beyond_the_allocation() raises ArenaError {imm}:
        var far: List[UInt64] = [0, 1 << 40]
        _ = TapeView.of(library, bytes, 1 << 40, Span(far))

    assert_equal(refusal(item), Status.DEVICE)
    assert_equal(refusal(offsets_on_the_device), Status.DEVICE)
    assert_equal(refusal(beyond_the_allocation), Status.INVALID_ARGUMENT)


comptime TESTS = __functions_in_module()
