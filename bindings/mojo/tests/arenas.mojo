"""Arenas: what they allocate and when, whom they serve, and when they go."""

from backend import a_result, an_executor, assert_values, is_vram, published, refusal, vram_number
from device_arena import (
    Arena,
    ArenaDescription,
    ArenaError,
    ArenaOptions,
    Executor,
    Library,
    Placement,
    Residency,
    Status,
    View,
)
from std.ffi import OwnedDLHandle
from std.testing import assert_equal, assert_false, assert_true


def test_an_arena_says_where_it_is() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var description = arena.describe()
    var copy = description
    assert_true(copy == description)
    if is_vram():
        assert_equal(copy.residency, Residency.VRAM)
        assert_equal(copy.device, executor.device().ordinal)
    else:
        assert_equal(copy.residency, Residency.RAM)
        assert_equal(copy.device, -1)


def test_a_librarys_arena_is_of_host_pages_and_needs_no_executor() raises:
    var library = Library()
    var arena = Arena(library)
    assert_true(arena.describe() == ArenaDescription(Residency.RAM, -1))
    var call = arena.begin()
    var output = call.output[DType.float64](3)
    output.fill(2.5)
    var view = output^.publish()
    call^.finish()
    assert_equal(view.to_list()[2], 2.5)


def test_making_an_arena_allocates_nothing() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    assert_equal(arena.stats().allocations, 0)
    assert_equal(arena.stats().bytes_reserved, 0)
    var call = executor.begin(arena)
    var nothing = call.output[DType.int32](0)
    assert_equal(arena.stats().allocations, 0)
    var one = call.output[DType.int32](1)
    assert_equal(arena.stats().allocations, 1)
    _ = nothing^.publish()
    _ = one^.publish()
    call^.finish()


def test_an_output_of_no_values_is_a_view_of_none() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena, 0)
    assert_equal(len(view), 0)
    assert_equal(len(view.to_list()), 0)
    if not is_vram():
        var guard = view.read()
        assert_equal(len(guard.span()), 0)


def test_a_steady_loop_allocates_once() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    for round in range(20):
        var call = executor.begin(arena)
        var first = published(call, 1000, Int32(round))
        var second = published(call, 30, Int32(round))
        call^.finish()
        assert_values(first.to_list(), 1000, Int32(round))
        assert_values(second.to_list(), 30, Int32(round))
    assert_equal(arena.stats().allocations, 1)
    assert_equal(arena.stats().rewinds, 20)


def test_a_call_that_outgrows_its_block_moves_nothing_and_is_steady_from_then_on() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    for _ in range(5):
        var call = executor.begin(arena)
        var small = published(call, 100)
        var large = published(call, 100_000, 7)
        call^.finish()
        assert_values(small.to_list(), 100)
        assert_values(large.to_list(), 100_000, 7)
    # The first block, and the one that took its place.
    assert_equal(arena.stats().allocations, 2)


def test_reserved_bytes_make_the_first_call_steady_and_trim_gives_them_back() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    arena.reserve(1 << 20)
    assert_equal(arena.stats().allocations, 1)
    var view = a_result(executor, arena, 1000)
    assert_equal(arena.stats().allocations, 1)
    assert_true(arena.trim() >= 1 << 20)
    assert_equal(arena.stats().bytes_reserved, 0)
    assert_equal(refusal(lambda () raises ArenaError {imm} -> List[Int32]: view.to_list()), Status.INVALID_ARGUMENT)


def test_a_limit_is_kept_and_the_arena_goes_on() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor, ArenaOptions(byte_limit=1 << 20))
    var call = executor.begin(arena)

    def too_much() raises ArenaError {imm call}:
        _ = call.output[DType.uint8](1 << 21)

    assert_equal(refusal(too_much), Status.OVER_LIMIT)
    var view = published(call, 10)
    call^.finish()
    assert_values(view.to_list(), 10)


def test_sizes_that_can_not_be_are_refused() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)

    def negative() raises ArenaError {imm call}:
        _ = call.output[DType.float32](-1)

    def beyond_any_address() raises ArenaError {imm call}:
        _ = call.output[DType.float64](Int.MAX)

    def beyond_any_memory() raises ArenaError {imm call}:
        _ = call.output[DType.uint8](1 << 60)

    def negative_reserve() raises ArenaError {imm arena}:
        arena.reserve(-1)

    assert_equal(refusal(negative), Status.INVALID_ARGUMENT)
    assert_equal(refusal(beyond_any_address), Status.INVALID_ARGUMENT)
    assert_equal(refusal(beyond_any_memory), Status.OUT_OF_MEMORY)
    var view = published(call, 10)
    call^.finish()
    assert_equal(refusal(negative_reserve), Status.INVALID_ARGUMENT)
    assert_values(view.to_list(), 10)


def test_options_that_can_not_be_are_refused() raises:
    var library = Library()
    var executor = an_executor(library)
    for options in [
        ArenaOptions(alignment=3),
        ArenaOptions(alignment=-64),
        ArenaOptions(alignment=1 << 30),
        ArenaOptions(first_capacity=-1),
        ArenaOptions(byte_limit=-1),
        ArenaOptions(placement=Placement(77)),
    ]:
        assert_equal(
            refusal(lambda () raises ArenaError {imm} -> Arena: Arena(executor, options)), Status.INVALID_ARGUMENT
        )


def test_a_scrub_leaves_nothing_of_the_call_before() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor, ArenaOptions(scrub=UInt8(0x5A)))
    _ = a_result(executor, arena, 100, 1000)
    var call = executor.begin(arena)
    var view = call.output[DType.uint8](400).publish()
    call^.finish()
    for byte in view.to_list():
        assert_equal(byte, 0x5A)


def test_a_closed_arenas_views_are_stale() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    arena^.close()
    assert_equal(refusal(lambda () raises ArenaError {imm} -> List[Int32]: view.to_list()), Status.INVALID_ARGUMENT)
    assert_equal(
        refusal(lambda () raises ArenaError {imm} -> View[DType.int32]: view.slice(0, 1)), Status.INVALID_ARGUMENT
    )
    assert_false(view.is_current())


def test_an_arena_outlives_its_executors_name() raises:
    var library = Library()
    var arena = made_for_an_executor_of_its_own(library)
    var call = arena.begin()
    var view = published(call, 5)
    call^.finish()
    assert_values(view.to_list(), 5)


def made_for_an_executor_of_its_own(library: Library) raises -> Arena:
    return Arena(an_executor(library))


def test_a_view_keeps_the_arena_that_nobody_names_any_more() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    # The arena's last use was in the line before.
    assert_values(view.to_list(), 4)


def live_device_bytes() raises -> Optional[UInt64]:
    """How many bytes a simulated driver has given out; a real one does not say."""
    try:
        var driver = OwnedDLHandle("libcuda.so.1")
        if driver.check_symbol("device_arena_simulated_live"):
            return driver.call["device_arena_simulated_live", UInt64]("device_bytes".ptr())
    except:
        pass
    return None


def use_an_arena_and_a_view(library: Library, executor: Executor) raises:
    var arena = Arena(executor)
    var view = a_result(executor, arena, 100_000)
    assert_values(view.to_list(), 100_000)


def test_the_last_of_arena_and_views_gives_the_memory_back() raises:
    var before = live_device_bytes()
    if not is_vram() or not before:
        print("skipped: memory that is given back: no simulated driver counts it")
        return
    var library = Library()
    var executor = an_executor(library)
    for _ in range(5):
        use_an_arena_and_a_view(library, executor)
        executor.synchronize()
    assert_equal(live_device_bytes().value(), before.value())
    # What an arena holds is counted, or this would prove nothing.
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    assert_true(live_device_bytes().value() > before.value())
    assert_values(view.to_list(), 4)


def test_a_moved_arena_is_the_same_arena() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    var moved = arena^
    _ = a_result(executor, moved)
    assert_equal(refusal(lambda () raises ArenaError {imm} -> List[Int32]: view.to_list()), Status.INVALID_ARGUMENT)
    var list = List[Arena]()
    list.append(moved^)
    assert_equal(list[0].stats().generation, 2)


def test_a_devices_arena_serves_no_other_executor() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var other = Executor.for_host(library)

    def begin_on_another() raises ArenaError {imm}:
        other.begin(arena).finish()

    # A host's arena serves every executor of the host.
    assert_equal(refusal(begin_on_another), Status.INVALID_ARGUMENT if is_vram() else Status.OK)
    if is_vram():
        var twin = an_executor(library)

        def begin_on_a_twin() raises ArenaError {imm}:
            twin.begin(arena).finish()

        assert_equal(refusal(begin_on_a_twin), Status.INVALID_ARGUMENT)
    executor.begin(arena).finish()


def test_host_coherent_memory_is_the_hosts() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor, ArenaOptions(placement=Placement.HOST_COHERENT))
    assert_true(arena.describe() == ArenaDescription(Residency.RAM, -1))
    var view = a_result(executor, arena)
    var guard = view.read()
    assert_equal(guard.span()[3], 3)


comptime TESTS = __functions_in_module()
