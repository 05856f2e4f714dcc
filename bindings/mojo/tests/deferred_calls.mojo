"""Calls that are left to a queue."""

from backend import a_result, an_executor, assert_values, is_vram, published, refusal, values
from device_arena import Arena, ArenaError, Call, Executor, Library, Status, View, Work, defer
from std.atomic import Atomic
from std.memory import ArcPointer
from std.testing import assert_equal, assert_false, assert_true
from std.time import sleep


struct Counting(Work):
    """Publishes numbers that count up."""

    comptime Result = View[DType.int32]

    var first: Int32

    def __init__(out self, first: Int32):
        self.first = first

    def run(mut self, mut call: Call) raises ArenaError -> Self.Result:
        return published(call, 10, self.first)


struct Failing(Work):
    """Publishes, and fails then."""

    comptime Result = View[DType.int32]

    var views: ArcPointer[List[View[DType.int32]]]

    def __init__(out self, views: ArcPointer[List[View[DType.int32]]]):
        self.views = views

    def run(mut self, mut call: Call) raises ArenaError -> Self.Result:
        self.views[].append(published(call, 10))
        raise ArenaError(Status.OVER_LIMIT, "the work is too much")


struct Gate(Movable):
    """What work waits for."""

    var is_open: Atomic[Int32]

    def __init__(out self):
        self.is_open = Atomic[Int32](0)


struct Waiting(Work):
    """Waits, and publishes then."""

    comptime Result = View[DType.int32]

    var gate: ArcPointer[Gate]

    def __init__(out self, gate: ArcPointer[Gate]):
        self.gate = gate

    def run(mut self, mut call: Call) raises ArenaError -> Self.Result:
        while self.gate[].is_open.load() == 0:
            sleep(0.001)
        return published(call, 10)


def test_deferred_work_answers_its_result() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    for round in range(5):
        var deferred = defer(executor, arena, Counting(Int32(round)))
        var view = deferred^.wait()
        assert_values(view.to_list(), 10, Int32(round))
    assert_equal(arena.stats().allocations, 1)


def test_deferred_work_holds_the_arena_until_it_has_passed() raises:
    if is_vram():
        print("skipped: work that waits: a device's work is queued, and can't")
        return
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var before = a_result(executor, arena)
    var gate = ArcPointer(Gate())
    var deferred = defer(executor, arena, Waiting(gate))

    def begin() raises ArenaError {imm}:
        executor.begin(arena).finish()

    def copy() raises ArenaError {imm before}:
        _ = before.to_list()

    assert_equal(refusal(begin), Status.CONTENDED)
    assert_equal(refusal(copy), Status.INVALID_ARGUMENT)
    assert_false(deferred.is_done())

    def wait() raises ArenaError {imm deferred}:
        deferred.wait_timeout(1_000_000)

    assert_equal(refusal(wait), Status.PENDING)
    _ = gate[].is_open.fetch_add(1)
    var view = deferred^.wait()
    assert_values(view.to_list(), 10)
    assert_equal(refusal(begin), Status.OK)


def test_deferred_work_that_raises_is_told_to_who_waits() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var views = ArcPointer(List[View[DType.int32]]())
    var status = Status.OK
    var message = String()
    try:
        _ = defer(executor, arena, Failing(views)).wait()
    except error:
        status = error.status
        message = error.message
    assert_equal(status, Status.OVER_LIMIT)
    assert_equal(message, "the work is too much")

    def copy() raises ArenaError {imm views}:
        _ = views[][0].to_list()

    assert_equal(refusal(copy), Status.INVALID_ARGUMENT)
    assert_values(a_result(executor, arena).to_list(), 4)


def test_work_on_an_arena_that_is_held_is_contended() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)

    def attempt() raises ArenaError {imm}:
        _ = defer(executor, arena, Counting(0))

    assert_equal(refusal(attempt), Status.CONTENDED)
    call^.finish()


def test_work_that_nobody_waits_for_is_done_all_the_same() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    _ = defer(executor, arena, Counting(0))
    executor.synchronize()
    assert_equal(arena.stats().generation, 1)
    # What the worker holds goes a moment after its work.
    var call = executor.begin_timeout(arena, 10_000_000_000)
    call^.finish()


def test_an_arena_that_nobody_names_serves_its_deferred_work() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var deferred = defer(executor, arena, Counting(5))
    assert_values(deferred^.wait().to_list(), 10, 5)


def test_a_call_is_left_to_what_is_queued() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var view = published(call)
    var deferred = call^.defer()
    deferred.wait()
    # It may be asked again.
    deferred.wait_timeout(0)
    assert_true(deferred.is_done())
    assert_values(view.to_list(), 4)


def test_another_executor_waits_for_a_deferred_call() raises:
    var library = Library()
    var executor = an_executor(library)
    var other = an_executor(library)
    var arena = Arena(executor)
    var call = executor.begin(arena)
    var view = published(call)
    var deferred = call^.defer()
    deferred.before(other)
    other.synchronize()
    assert_true(deferred.is_done())
    deferred.wait()
    assert_values(view.to_list(), 4)


def test_a_call_of_no_executor_is_left_to_none() raises:
    var library = Library()
    var arena = Arena(library)
    var call = arena.begin()
    var view = published(call)
    var status = Status.OK
    try:
        _ = call^.defer()
    except error:
        status = error.status
    assert_equal(status, Status.INVALID_ARGUMENT)

    def copy() raises ArenaError {imm view}:
        _ = view.to_list()

    assert_equal(refusal(copy), Status.INVALID_ARGUMENT)
    arena.begin().finish()


comptime TESTS = __functions_in_module()
