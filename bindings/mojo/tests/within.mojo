"""What a call can do beside outputs: scratch, staged tapes, collected results; and what pointers are."""

from backend import a_result, an_executor, assert_values, is_vram, published, reason, refusal, values
from device_arena import (
    Arena,
    ArenaError,
    ArenaOptions,
    Executor,
    Library,
    MemoryKind,
    Placement,
    Status,
    TapeView,
    Vendor,
    classify,
    classify_range,
)
from std.testing import assert_equal, assert_false, assert_true


def test_scratch_is_free_again_when_its_scope_ends() raises:
    var library = Library()
    var arena = Arena(library)
    var call = arena.begin()
    var outer = call.scratch()
    var numbers = outer.take[DType.int64](1000)
    numbers[999] = 7
    var used = arena.stats().bytes_used
    var inner = outer.scratch()
    var more = inner.take[DType.uint8](5000)
    more[4999] = 1
    assert_true(arena.stats().bytes_used >= used + 5000)

    def take_from_the_outer() raises ArenaError {mut outer}:
        _ = outer.take[DType.uint8](1)

    assert_equal(refusal(take_from_the_outer), Status.INVALID_ARGUMENT)
    inner^.end()
    assert_equal(arena.stats().bytes_used, used)
    assert_equal(numbers[999], 7)
    outer^.end()
    var view = published(call)
    call^.finish()
    assert_values(view.to_list(), 4)
    assert_true(arena.stats().bytes_used < 1000)


def test_scratch_is_where_the_arena_is() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var scratch = call.scratch()

    def on_the_host() raises ArenaError {mut scratch}:
        _ = scratch.take[DType.float32](10)

    def on_the_device() raises ArenaError {mut scratch}:
        assert_address(Int(scratch.take_on_device[DType.float32](10)))

    assert_equal(refusal(on_the_host), Status.DEVICE if is_vram() else Status.OK)
    assert_equal(refusal(on_the_device), Status.OK if is_vram() else Status.INVALID_ARGUMENT)
    scratch^.end()
    call^.finish()


def assert_address(address: Int) raises ArenaError:
    if address == 0:
        raise ArenaError(Status.INTERNAL, "there is no address")


def test_scratch_that_is_forgotten_ends_with_its_call() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    for _ in range(3):
        var call = executor.begin(arena)
        var scratch = call.scratch()
        if is_vram():
            _ = scratch.take_on_device[DType.uint8](100)
        else:
            scratch.take[DType.uint8](100)[0] = 1
        call^.finish()
    assert_equal(arena.stats().allocations, 1)


def test_writers_grow_and_are_steady_then() raises:
    var library = Library()
    var arena = Arena(library)
    for _ in range(4):
        var call = arena.begin()
        var numbers = call.writer[DType.int32]()
        var others = call.writer[DType.float64](10)
        for number in range(20_000):
            numbers.push(Int32(number))
            if number % 1000 == 0:
                others.push(Float64(number))
        var more = values(10, 20_000)
        numbers.extend(Span(more))
        assert_equal(len(numbers), 20_010)
        var view = numbers^.publish()
        var other = others^.publish()
        call^.finish()
        assert_values(view.to_list(), 20_010)
        assert_equal(other.to_list()[19], 19_000)
    assert_true(arena.stats().allocations <= 3)


def test_a_tape_output_is_the_next_calls_input() raises:
    var library = Library()
    var arena = Arena(library)
    var call = arena.begin()
    var words = call.tape_output()
    for word in ["of", "a", "", "length"]:
        words.push(word.as_bytes())
    assert_equal(len(words), 4)
    var published = words^.publish()
    call^.finish()
    assert_equal(len(published), 4)
    var bytes = published.bytes.read()
    var offsets = published.offsets.read()
    var tape = TapeView.of(library, bytes.span(), offsets.span())
    assert_equal(String(unsafe_from_utf8=tape.item(3)), "length")
    assert_equal(len(tape.item(2)), 0)


def test_what_grows_is_the_hosts() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)

    def writer() raises ArenaError {imm call}:
        _ = call.writer[DType.int32](4)

    def tape() raises ArenaError {imm call}:
        _ = call.tape_output()

    def negative() raises ArenaError {imm call}:
        _ = call.writer[DType.int32](-1)

    assert_equal(refusal(writer), Status.DEVICE if is_vram() else Status.OK)
    assert_equal(refusal(tape), Status.DEVICE if is_vram() else Status.OK)
    assert_equal(refusal(negative), Status.INVALID_ARGUMENT)
    call^.finish()


def test_a_tape_is_staged_where_the_call_computes() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var text = String("oneinthree")
    var offsets: List[UInt32] = [0, 3, 5, 10]
    var tape = TapeView.of(library, text.as_bytes(), Span(offsets))
    var call = executor.begin(arena)
    var staged = call.stage(tape)
    assert_equal(len(staged), 3)
    assert_equal(staged.byte_count(), 10)
    if is_vram():
        # The offsets had another width, and so are a copy. The text is one too, unless the device reaches pageable memory.
        assert_equal(classify(library, staged.offsets()).memory, MemoryKind.DEVICE)
        assert_true(staged.copied_bytes() >= 32)
        if Int(staged.bytes()) != Int(text.unsafe_ptr()):
            assert_equal(classify(library, staged.bytes()).memory, MemoryKind.DEVICE)
            assert_true(staged.copied_bytes() >= 42)
    else:
        # The text is used where it is. The offsets had another width.
        assert_equal(Int(staged.bytes()), Int(text.unsafe_ptr()))
        assert_equal(staged.offsets()[unsafe_offset=3], 10)
    executor.synchronize()
    call^.finish()


def test_a_staged_tape_can_be_read_back() raises:
    if not is_vram():
        print("skipped: a tape read back from a device: there is no device")
        return
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var there = a_result(executor, arena, 16, 40)
    var guard = there.read_on(executor)
    var offsets: List[UInt64] = [0, 64]
    var tape = TapeView.of(library, guard.device_pointer().unsafe_bitcast[UInt8](), 64, Span(offsets))
    var results = Arena(executor)
    var call = executor.begin(results)
    var staged = call.stage(tape)
    # Its bytes are a device's already.
    assert_equal(Int(staged.bytes()), Int(guard.device_pointer()))
    assert_true(staged.copied_bytes() <= 16)
    call^.finish()
    guard^.end()
    assert_values(there.to_list(), 16, 40)


def test_a_result_can_be_collected_before_the_call_ends() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var other = a_result(executor, Arena(executor))
    var call = executor.begin(arena)
    var view = published(call, 100, 3)
    assert_values(call.collect(view), 100, 3)

    def collect_anothers() raises ArenaError {imm}:
        _ = call.collect(other)

    assert_equal(refusal(collect_anothers), Status.INVALID_ARGUMENT)
    call^.finish()


def test_pointers_are_what_their_driver_says() raises:
    var library = Library()
    var executor = an_executor(library)
    var numbers = values(10)
    var pageable = classify(library, numbers.unsafe_ptr())
    assert_equal(pageable.memory, MemoryKind.UNREGISTERED)
    assert_equal(pageable.device, -1)
    assert_true(pageable.is_host_accessible)
    if not is_vram():
        print("skipped: pointers to a device's memory: there is no device")
        return
    var arena = Arena(executor)
    var view = a_result(executor, arena, 10)
    var guard = view.read_on(executor)
    var there = classify(library, guard.device_pointer())
    assert_equal(there.memory, MemoryKind.DEVICE)
    assert_equal(there.vendor, executor.vendor())
    assert_equal(there.device, executor.device().ordinal)
    assert_false(there.is_host_accessible)
    assert_true(there.is_device_accessible)
    assert_true(there.allocation_bytes >= 40)

    def beyond_the_allocation() raises ArenaError {imm}:
        _ = classify_range(library, guard.device_pointer(), 1 << 40)

    def negative() raises ArenaError {imm}:
        _ = classify_range(library, guard.device_pointer(), -1)

    assert_equal(classify_range(library, guard.device_pointer(), 40).memory, MemoryKind.DEVICE)
    assert_equal(refusal(beyond_the_allocation), Status.INVALID_ARGUMENT)
    assert_equal(refusal(negative), Status.INVALID_ARGUMENT)
    guard^.end()


def test_pinned_memory_is_both_sides() raises:
    if not is_vram():
        print("skipped: pinned memory: there is no device")
        return
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor, ArenaOptions(placement=Placement.HOST_COHERENT))
    var view = a_result(executor, arena, 10)
    var guard = view.read()
    var pinned = classify(library, guard.span().unsafe_ptr())
    assert_equal(pinned.memory, MemoryKind.PINNED_HOST)
    assert_true(pinned.is_host_accessible and pinned.is_device_accessible)
    guard^.end()


comptime TESTS = __functions_in_module()
