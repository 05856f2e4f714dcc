"""The library and its executors: what is there, and what is missing."""

from backend import an_executor, a_result, assert_values, is_vram, reason, refusal, vram_number
from device_arena import Arena, ArenaError, Executor, Library, Status, Vendor
from std.memory import ArcPointer
from std.os import getenv, setenv, unsetenv
from std.testing import assert_equal, assert_false, assert_true


def test_a_library_that_is_not_there_is_unavailable() raises:
    assert_equal(refusal(lambda () raises ArenaError -> Library: Library("/no/such/library.so")), Status.UNAVAILABLE)


def test_a_library_without_our_functions_is_refused_before_any_is_called() raises:
    def attempt() raises ArenaError:
        _ = Library("libc.so.6")

    assert_equal(refusal(attempt), Status.UNAVAILABLE)
    assert_true("lacks the function device_arena_" in reason(attempt))


def test_a_library_that_lacks_one_function_is_refused_with_its_name() raises:
    var stubs = getenv("DEVICE_ARENA_TEST_STUBS")
    if not stubs:
        print("skipped: a library that lacks one function: DEVICE_ARENA_TEST_STUBS is not set")
        return

    def attempt() raises ArenaError {imm stubs}:
        _ = Library(stubs + "/lacks_writer_free.so")

    assert_equal(refusal(attempt), Status.UNAVAILABLE)
    assert_equal(reason(attempt), "the library lacks the function device_arena_writer_free")


def test_a_library_of_another_abi_is_refused() raises:
    var stubs = getenv("DEVICE_ARENA_TEST_STUBS")
    if not stubs:
        print("skipped: a library of another ABI: DEVICE_ARENA_TEST_STUBS is not set")
        return

    def attempt() raises ArenaError {imm stubs}:
        _ = Library(stubs + "/other_abi.so")

    assert_equal(refusal(attempt), Status.UNAVAILABLE)
    assert_equal(reason(attempt), "the library is of ABI 4096, and this package of ABI 1")


def test_a_path_is_taken_before_the_variable() raises:
    var named = getenv("DEVICE_ARENA_LIBRARY")
    _ = setenv("DEVICE_ARENA_LIBRARY", "/no/such/library.so")
    var by_variable = refusal(lambda () raises ArenaError -> Library: Library())
    var by_path = refusal(lambda () raises ArenaError {imm named} -> Library: Library(named))
    _ = setenv("DEVICE_ARENA_LIBRARY", named)
    assert_equal(by_variable, Status.UNAVAILABLE)
    assert_equal(by_path, Status.OK)


def made_with_a_library_of_its_own() raises -> Arena:
    var library = Library()
    var executor = an_executor(library)
    return Arena(executor)


def test_what_a_library_made_keeps_it() raises:
    var arena = made_with_a_library_of_its_own()
    var call = arena.begin()
    call^.finish()
    assert_equal(arena.stats().generation, 1)


def test_a_gpu_that_is_not_there_is_unavailable() raises:
    var library = Library()
    for number in [library.device_count(), 1 << 20, Int(UInt32.MAX), 1 << 40, -1]:
        assert_equal(
            refusal(lambda () raises ArenaError {imm} -> Executor: Executor.for_vram(library, number)),
            Status.UNAVAILABLE,
        )


def test_a_vendor_that_is_none_is_refused() raises:
    var library = Library()
    assert_equal(
        refusal(lambda () raises ArenaError {imm} -> Executor: Executor.of_vendor(library, Vendor(77), 0)),
        Status.INVALID_ARGUMENT,
    )
    assert_equal(
        refusal(lambda () raises ArenaError {imm} -> Executor: Executor.of_vendor(library, Vendor.HOST, 1)),
        Status.UNAVAILABLE,
    )


def test_the_best_executor_is_a_gpu_where_there_is_one() raises:
    var library = Library()
    var best = Executor.best(library)
    assert_equal(best.vendor() == Vendor.HOST, library.device_count() == 0)


def test_an_executor_says_what_it_is() raises:
    var library = Library()
    var executor = an_executor(library)
    var device = executor.device()
    assert_equal(device.vendor, executor.vendor())
    assert_true(device.name)
    if is_vram():
        assert_true(executor.vendor() != Vendor.HOST)
        assert_true(device.total_bytes > 0)
    else:
        assert_equal(executor.vendor(), Vendor.HOST)
    assert_true(executor.stream() != 0)
    executor.synchronize()


struct Witness(Movable):
    """Counts when it goes, and keeps an executor until then."""

    var gone: ArcPointer[Int]
    var executor: Executor

    def __init__(out self, gone: ArcPointer[Int], executor: Executor):
        self.gone = gone
        self.executor = executor

    def __deinit__(deinit self):
        self.gone[] += 1


def use_an_adopted_stream(library: Library, gone: ArcPointer[Int]) raises:
    var executor = an_executor(library)
    var stream = executor.stream()
    var adopted = Executor.adopt(library, executor.vendor(), stream, Witness(gone, executor))
    assert_equal(adopted.stream(), stream)
    assert_equal(gone[], 0)
    assert_values(a_result(adopted, Arena(adopted)).to_list(), 4)


def test_an_adopted_streams_owner_goes_when_it_is_not_used_any_more() raises:
    if not is_vram():
        print("skipped: an adopted stream: there is no device")
        return
    var library = Library()
    var gone = ArcPointer(0)
    use_an_adopted_stream(library, gone)
    assert_equal(gone[], 1)


def test_a_stream_that_is_none_is_not_adopted_and_its_owner_goes() raises:
    var library = Library()
    var executor = an_executor(library)
    var gone = ArcPointer(0)

    def adopt_none() raises ArenaError {imm}:
        _ = Executor.adopt(library, executor.vendor(), 0, Witness(gone, executor))

    assert_equal(refusal(adopt_none), Status.INVALID_ARGUMENT)
    assert_equal(gone[], 1)


def executor_of_a_copy(library: Library) raises -> Executor:
    var first = an_executor(library)
    var copy = first
    return copy


def test_copies_of_an_executor_are_the_same_executor() raises:
    var library = Library()
    var executor = executor_of_a_copy(library)
    var copy = executor
    var arena = Arena(executor)
    # A device's arena serves no executor but its own.
    assert_values(a_result(copy, arena).to_list(), 4)


comptime TESTS = __functions_in_module()
