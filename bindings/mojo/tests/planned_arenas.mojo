"""Planned arenas: slots, runs and copies between slots."""

from backend import an_executor, assert_values, is_vram, refusal, values
from device_arena import (
    ArenaError,
    Copy,
    Executor,
    Library,
    MemoryPlan,
    PlannedArena,
    PlannedView,
    Residency,
    Run,
    Slot,
    Status,
    View,
)
from std.testing import assert_equal, assert_false, assert_true


def a_plan(library: Library) raises ArenaError -> MemoryPlan:
    """Three slots of 16, 16 and 4 numbers."""
    return MemoryPlan(library, [Slot(1, 0, 64), Slot(2, 256, 64), Slot(7, 512, 16)], alignment=256)


def test_a_plan_says_where_its_nodes_are() raises:
    var library = Library()
    var plan = a_plan(library)
    assert_equal(plan.node_count(), 3)
    assert_equal(plan.total(), 528)
    assert_equal(plan.slot(2).offset, 256)
    assert_equal(plan.slot(7).size, 16)
    assert_true(plan.fingerprint() == a_plan(library).fingerprint())
    assert_equal(refusal(lambda () raises ArenaError {imm} -> Slot: plan.slot(3)), Status.INVALID_ARGUMENT)


def plan_refusal(library: Library, slots: List[Slot], alignment: UInt64 = 0, total: UInt64 = 0) -> Status:
    def attempt() raises ArenaError {imm}:
        _ = MemoryPlan(library, slots, alignment=alignment, total=total)

    return refusal(attempt)


def test_plans_that_can_not_be_are_refused() raises:
    var library = Library()
    assert_equal(plan_refusal(library, [Slot(1, 0, 8), Slot(1, 8, 8)]), Status.INVALID_ARGUMENT)
    assert_equal(plan_refusal(library, [Slot(1, 0, 8), Slot(2, 4, 8)]), Status.INVALID_ARGUMENT)
    assert_equal(plan_refusal(library, [Slot(1, 3, 8, alignment=4)]), Status.INVALID_ARGUMENT)
    assert_equal(plan_refusal(library, [Slot(1, 0, 8)], alignment=3), Status.INVALID_ARGUMENT)
    assert_equal(plan_refusal(library, [Slot(1, 0, 8)], total=4), Status.INVALID_ARGUMENT)
    assert_equal(plan_refusal(library, [Slot(1, UInt64.MAX, 8)]), Status.INVALID_ARGUMENT)
    # They share bytes, and are never live together; or on purpose.
    var early: Tuple[UInt64, UInt64] = (0, 2)
    var late: Tuple[UInt64, UInt64] = (2, 4)
    assert_equal(plan_refusal(library, [Slot(1, 0, 8, lifetime=early), Slot(2, 0, 8, lifetime=late)]), Status.OK)
    assert_equal(plan_refusal(library, [Slot(1, 0, 8), Slot(2, 0, 8, alias_of=UInt64(1))]), Status.OK)


def test_a_run_writes_what_fits_and_says_how_much() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = PlannedArena(executor, a_plan(library))
    assert_true(arena.has(7) and not arena.has(8))
    assert_equal(arena.stats().allocations, 0)
    var run = arena.begin()
    var numbers = values(100)
    assert_equal(run.write(1, Span(numbers)), 16)
    assert_equal(run.write(7, Span(numbers), first=2), 2)

    def beyond() raises ArenaError {mut run, imm numbers}:
        _ = run.write(7, Span(numbers), first=5)

    def unknown() raises ArenaError {mut run, imm numbers}:
        _ = run.write(8, Span(numbers))

    assert_equal(refusal(beyond), Status.INVALID_ARGUMENT)
    assert_equal(refusal(unknown), Status.INVALID_ARGUMENT)
    var places = List[Int32](length=100, fill=-1)
    assert_equal(run.read(7, Span(places)), 4)
    assert_equal(places[0], 0)
    assert_equal(places[3], 1)
    assert_equal(places[4], -1)
    # From the arena's own start, across slots: 528 bytes are 132 numbers.
    assert_equal(run.read_at(128, Span(places)), 4)
    var view = run^.finish()
    assert_values(view.slot[DType.int32](1).to_list(), 16)
    assert_equal(len(view.slot[DType.int64](7)), 2)
    assert_equal(
        refusal(lambda () raises ArenaError {imm} -> View[DType.int32]: view.slot[DType.int32](8)),
        Status.INVALID_ARGUMENT,
    )


def test_bytes_stay_from_run_to_run_and_views_do_not() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = PlannedArena(executor, a_plan(library))
    assert_equal(refusal(lambda () raises ArenaError {imm} -> PlannedView: arena.last()), Status.PENDING)
    var run = arena.begin()
    var numbers = values(16, 50)
    _ = run.write(1, Span(numbers))
    var first = run^.finish().slot[DType.int32](1)
    assert_values(first.to_list(), 16, 50)
    _ = arena.begin().finish()

    def read() raises ArenaError {imm first}:
        _ = first.to_list()

    assert_equal(refusal(read), Status.INVALID_ARGUMENT)
    assert_values(arena.last().slot[DType.int32](1).to_list(), 16, 50)
    assert_equal(arena.stats().allocations, 1)


def test_one_run_at_a_time() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = PlannedArena(executor, a_plan(library))
    var run = arena.begin()

    def begin() raises ArenaError {imm arena}:
        _ = arena.begin()

    def begin_in_time() raises ArenaError {imm arena}:
        _ = arena.begin_timeout(1_000_000)

    assert_equal(refusal(begin), Status.CONTENDED)
    assert_equal(refusal(begin_in_time), Status.CONTENDED)
    run^.abandon()
    assert_equal(refusal(begin), Status.OK)


def test_copies_move_values_between_slots() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = PlannedArena(executor, a_plan(library))
    var run = arena.begin()
    var numbers = values(16)
    _ = run.write(1, Span(numbers))
    assert_equal(run.copy_prefix[DType.int32](7, 1, 100), 4)
    assert_equal(run.copy_range[DType.int32](Copy(2, 1, 1, 8, 3)), 3)
    assert_equal(run.copies[DType.int32]([Copy(2, 8, 1, 0, 2), Copy(2, 12, 1, 4, 2)]), 4)

    def clash() raises ArenaError {mut run}:
        _ = run.copies[DType.int32]([Copy(2, 0, 1, 0, 4), Copy(2, 2, 1, 4, 4)])

    assert_equal(refusal(clash), Status.INVALID_ARGUMENT)
    run.clear(1)
    var view = run^.finish()
    var slot = view.slot[DType.int32](2).to_list()
    var expected: List[Int32] = [0, 8, 9, 10, 0, 0, 0, 0, 0, 1, 0, 0, 4, 5, 0, 0]
    assert_true(slot == expected)
    assert_values(view.slot[DType.int32](7).to_list(), 4)
    for number in view.slot[DType.int32](1).to_list():
        assert_equal(number, 0)


def test_a_twin_takes_all_bytes_and_another_plan_none() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = PlannedArena(executor, a_plan(library))
    var twin = PlannedArena(library, a_plan(library))
    var other = PlannedArena(library, MemoryPlan(library, [Slot(1, 0, 64)]))
    var run = arena.begin()
    var numbers = values(16, 3)
    _ = run.write(2, Span(numbers))
    var twins = twin.begin()
    run.copy_into(twins)
    var others = other.begin()

    def into_another() raises ArenaError {mut run, mut others}:
        run.copy_into(others)

    assert_equal(refusal(into_another), Status.INVALID_ARGUMENT)
    _ = run^.finish()
    assert_values(twins^.finish().slot[DType.int32](2).to_list(), 16, 3)
    others^.abandon()


def test_slots_are_reached_where_they_are() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = PlannedArena(executor, a_plan(library))
    assert_equal(arena.describe().residency, Residency.VRAM if is_vram() else Residency.RAM)
    assert_equal(arena.elem_offset[DType.int32](2), 64)
    assert_equal(arena.elem_offset_64[DType.int64](7), 64)
    assert_equal(arena.slot(7).offset, 512)
    var run = arena.begin()

    def bytes() raises ArenaError {mut run}:
        run.bytes()[256] = 9

    def device_pointer() raises ArenaError {mut run}:
        _ = run.device_pointer[DType.int32](2)

    assert_equal(refusal(bytes), Status.DEVICE if is_vram() else Status.OK)
    assert_equal(refusal(device_pointer), Status.OK if is_vram() else Status.INVALID_ARGUMENT)
    var view = run^.finish()
    assert_equal(view.slot[DType.uint8](2).to_list()[0], UInt8(0) if is_vram() else UInt8(9))


def test_an_offset_that_does_not_fit_is_refused() raises:
    var library = Library()
    var plan = MemoryPlan(library, [Slot(1, 2, 8), Slot(2, 1 << 40, 8)])
    # Nothing is allocated before the first run.
    var arena = PlannedArena(library, plan)

    def between() raises ArenaError {imm arena}:
        _ = arena.elem_offset[DType.int32](1)

    def far() raises ArenaError {imm arena}:
        _ = arena.elem_offset[DType.int32](2)

    assert_equal(refusal(between), Status.INVALID_ARGUMENT)
    assert_equal(refusal(far), Status.INVALID_ARGUMENT)
    assert_equal(arena.elem_offset_64[DType.int32](2), 1 << 38)


def test_a_closed_planned_arenas_views_are_stale() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = PlannedArena(executor, a_plan(library))
    var view = arena.begin().finish()
    arena^.close()
    assert_equal(
        refusal(lambda () raises ArenaError {imm} -> View[DType.int32]: view.slot[DType.int32](1)),
        Status.INVALID_ARGUMENT,
    )


comptime TESTS = __functions_in_module()
