"""Calls, outputs and views: one call at a time, and no stale bytes."""

from backend import a_result, an_executor, assert_values, is_vram, published, refusal, values
from device_arena import Arena, ArenaError, Call, Executor, Library, ReadGuard, Status, View
from std.testing import assert_equal, assert_false, assert_true


def test_a_stale_view_is_refused_everywhere() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    assert_true(view.is_current())
    var later = a_result(executor, arena, 4, 100)
    assert_false(view.is_current())

    def copy() raises ArenaError {imm view}:
        _ = view.to_list()

    # Stale comes before everything else that is wrong: before DEVICE on a device, and before a wrong length.
    def read() raises ArenaError {imm view}:
        _ = view.read()

    def copy_to_few() raises ArenaError {imm view}:
        var few = List[Int32](length=1, fill=0)
        view.copy_to(Span(few))

    def read_on() raises ArenaError {imm}:
        _ = view.read_on(executor)

    def slice() raises ArenaError {imm view}:
        _ = view.slice(0, 100)

    def copy_into_an_output() raises ArenaError {imm}:
        var call = Arena(library).begin()
        var output = call.output[DType.int32](4)
        output.copy_from(view)
        call^.finish()

    assert_equal(refusal(copy), Status.INVALID_ARGUMENT)
    assert_equal(refusal(read), Status.INVALID_ARGUMENT)
    assert_equal(refusal(copy_to_few), Status.INVALID_ARGUMENT)
    assert_equal(refusal(read_on), Status.INVALID_ARGUMENT)
    assert_equal(refusal(slice), Status.INVALID_ARGUMENT)
    assert_equal(refusal(copy_into_an_output), Status.INVALID_ARGUMENT)
    assert_equal(arena.stats().refused_stale_reads > 0, True)
    assert_values(later.to_list(), 4, 100)


def test_a_devices_memory_is_refused_to_the_host() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    var expected = Status.DEVICE if is_vram() else Status.OK

    def read() raises ArenaError {imm view}:
        _ = view.read()

    assert_equal(refusal(read), expected)
    var call = executor.begin(arena)
    var output = call.output[DType.int32](4)

    def write() raises ArenaError {mut output}:
        output.fill(1)

    assert_equal(refusal(write), expected)
    var numbers = values(4, 9)
    output.write(Span(numbers))
    var written = output^.publish()
    call^.finish()
    # A copy works from anywhere.
    assert_values(written.to_list(), 4, 9)


def test_the_hosts_memory_is_refused_to_a_device() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(library)
    var call = arena.begin()
    var output = call.output[DType.int32](4)

    def device_pointer() raises ArenaError {mut output}:
        _ = output.device_pointer()

    assert_equal(refusal(device_pointer), Status.INVALID_ARGUMENT)
    var view = output^.publish()
    call^.finish()

    def read_on() raises ArenaError {imm}:
        _ = view.read_on(executor)

    assert_equal(refusal(read_on), Status.INVALID_ARGUMENT)


def test_a_second_call_is_contended_and_the_first_goes_on() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)

    def begin() raises ArenaError {imm}:
        executor.begin(arena).finish()

    def begin_in_time() raises ArenaError {imm}:
        executor.begin_timeout(arena, 1_000_000).finish()

    def reserve() raises ArenaError {imm arena}:
        arena.reserve(1)

    def trim() raises ArenaError {imm arena}:
        _ = arena.trim()

    assert_equal(refusal(begin), Status.CONTENDED)
    assert_equal(refusal(begin_in_time), Status.CONTENDED)
    assert_equal(refusal(reserve), Status.CONTENDED)
    assert_equal(refusal(trim), Status.CONTENDED)
    var view = published(call)
    call^.finish()
    assert_values(view.to_list(), 4)
    assert_equal(arena.stats().refused_begins, 4)
    assert_equal(arena.stats().generation, 1)


def test_a_reader_holds_the_next_call_off() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)

    def begin() raises ArenaError {imm}:
        executor.begin(arena).finish()

    if is_vram():
        var guard = view.read_on(executor)
        assert_equal(refusal(begin), Status.CONTENDED)
        assert_true(Int(guard.device_pointer()) != 0)
        guard^.end()
    else:
        var guard = view.read()
        assert_equal(refusal(begin), Status.CONTENDED)
        assert_equal(guard.span()[3], 3)
        guard^.end()
    assert_true(view.is_current())
    assert_equal(refusal(begin), Status.OK)
    assert_false(view.is_current())


def test_a_guard_in_a_with_ends_with_its_block() raises:
    var library = Library()
    var arena = Arena(library)
    var call = arena.begin()
    var view = published(call)
    call^.finish()

    def begin() raises ArenaError {imm arena}:
        arena.begin().finish()

    with view.read() as numbers:
        assert_equal(numbers[1], 1)
        assert_equal(refusal(begin), Status.CONTENDED)
    assert_equal(refusal(begin), Status.OK)


def fail_while_reading(view: View[DType.int32]) raises:
    with view.read() as numbers:
        if len(numbers) > 0:
            raise Error("the reader failed")


def test_a_guard_ends_where_its_block_raises() raises:
    var library = Library()
    var arena = Arena(library)
    var call = arena.begin()
    var view = published(call)
    call^.finish()
    var has_failed = False
    try:
        fail_while_reading(view)
    except:
        has_failed = True
    assert_true(has_failed)
    arena.begin().finish()


def test_the_values_of_a_guard_keep_it() raises:
    var library = Library()
    var arena = Arena(library)
    var call = arena.begin()
    var view = published(call, 1000)
    call^.finish()

    def begin() raises ArenaError {imm arena}:
        arena.begin().finish()

    var guard = view.read()
    var numbers = guard.span()
    assert_equal(refusal(begin), Status.CONTENDED)
    assert_equal(numbers[999], 999)


def test_a_view_is_pending_until_its_call_has_finished() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var view = published(call)

    def copy() raises ArenaError {imm view}:
        _ = view.to_list()

    assert_equal(refusal(copy), Status.PENDING)
    call^.finish()
    assert_equal(refusal(copy), Status.OK)


def test_an_abandoned_calls_views_are_stale() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var view = published(call)
    call^.abandon()

    def copy() raises ArenaError {imm view}:
        _ = view.to_list()

    assert_equal(refusal(copy), Status.INVALID_ARGUMENT)
    assert_values(a_result(executor, arena).to_list(), 4)


def a_call_that_raises(executor: Executor, arena: Arena) raises ArenaError -> View[DType.int32]:
    var call = executor.begin(arena)
    var view = published(call)
    if len(view) > 0:
        raise ArenaError(Status.DRIVER, "the work failed")
    call^.finish()
    return view^


def test_a_call_that_raises_leaves_the_arena_free() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    assert_equal(
        refusal(lambda () raises ArenaError {imm} -> View[DType.int32]: a_call_that_raises(executor, arena)),
        Status.DRIVER,
    )
    assert_values(a_result(executor, arena).to_list(), 4)


def test_an_open_output_holds_the_arena_past_the_end_of_its_call() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var output = call.output[DType.int32](4)
    call^.finish()

    def begin() raises ArenaError {imm}:
        executor.begin(arena).finish()

    assert_equal(refusal(begin), Status.CONTENDED)
    var numbers = values(4)
    output.write(Span(numbers))
    var view = output^.publish()
    assert_values(view.to_list(), 4)


def test_outputs_never_overlap_and_are_aligned() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var first = call.output[DType.uint8](3)
    var second = call.output[DType.uint8](3)
    var bytes: List[UInt8] = [1, 2, 3]
    first.write(Span(bytes))
    bytes[0] = 77
    second.write(Span(bytes))
    if is_vram():
        assert_equal(Int(first.device_pointer()) % 256, 0)
        assert_equal(Int(second.device_pointer()) % 256, 0)
    else:
        assert_equal(Int(first.span().unsafe_ptr()) % 64, 0)
        assert_equal(Int(second.span().unsafe_ptr()) % 64, 0)
    var a = first^.publish()
    var b = second^.publish()
    call^.finish()
    assert_equal(a.to_list()[0], 1)
    assert_equal(b.to_list()[0], 77)


def test_a_prefix_is_published_and_no_more_than_there_is() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var output = call.output[DType.int32](10)
    var numbers = values(10)
    output.write(Span(numbers))
    var view = output^.publish_prefix(3)
    var short = call.output[DType.int32](2)
    var status = Status.OK
    try:
        _ = short^.publish_prefix(3)
    except error:
        status = error.status
    call^.finish()
    assert_equal(status, Status.INVALID_ARGUMENT)
    assert_values(view.to_list(), 3)


def test_wrong_lengths_are_refused_and_nothing_moves() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    for count in [3, 5]:
        var places = List[Int32](length=count, fill=-1)

        def copy() raises ArenaError {imm view, mut places}:
            view.copy_to(Span(places))

        assert_equal(refusal(copy), Status.INVALID_ARGUMENT)
        assert_equal(places[0], -1)
    var call = Arena(library).begin()
    var output = call.output[DType.int32](5)
    var numbers = values(4)

    def write() raises ArenaError {mut output, imm numbers}:
        output.write(Span(numbers))

    def copy_from() raises ArenaError {mut output, imm view}:
        output.copy_from(view)

    assert_equal(refusal(write), Status.INVALID_ARGUMENT)
    assert_equal(refusal(copy_from), Status.INVALID_ARGUMENT)
    call^.finish()


def test_places_on_the_stack_are_filled_in() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena)
    var places = Array[Int32, 4](fill=0)
    view.copy_to(Span(places))
    assert_equal(places[3], 3)


def test_values_are_copied_from_one_arena_to_another() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var host = Arena(library)
    var there = a_result(executor, arena, 100, 5)
    var call = host.begin()
    var output = call.output[DType.int32](100)
    output.copy_from(there)
    var here = output^.publish()
    call^.finish()
    var guard = here.read()
    assert_equal(guard.span()[99], 104)


def test_slices_are_of_what_is_there() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var view = a_result(executor, arena, 10)
    var part = view.slice(3, 7)
    assert_values(part.to_list(), 4, 3)
    assert_equal(len(part.slice(4, 4)), 0)
    for bounds in [(-1, 2), (2, 1), (0, 11), (11, 11), (0, Int.MAX)]:
        assert_equal(
            refusal(lambda () raises ArenaError {imm} -> View[DType.int32]: view.slice(bounds[0], bounds[1])),
            Status.INVALID_ARGUMENT,
        )
    _ = a_result(executor, arena)
    assert_equal(refusal(lambda () raises ArenaError {imm} -> List[Int32]: part.to_list()), Status.INVALID_ARGUMENT)


def test_a_view_says_where_and_when_it_was_published() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    _ = a_result(executor, arena)
    var view = a_result(executor, arena)
    assert_equal(view.generation(), 2)
    assert_true(view.describe() == arena.describe())
    var copy = view
    assert_values(copy.to_list(), 4)


comptime TESTS = __functions_in_module()
