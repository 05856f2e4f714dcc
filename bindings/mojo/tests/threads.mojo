"""Two threads and one arena."""

from backend import an_executor, assert_values, published, refusal
from device_arena import Arena, ArenaError, Executor, Library, Status
from std.ffi import c_int, external_call
from std.memory import ArcPointer
from std.testing import assert_equal, assert_true


struct Thread:
    """A thread of the system, over a place that outlives it."""

    var id: UInt64

    def __init__[T: AnyType](out self, main: def(Int) thin abi("C") -> Int, mut place: T) raises:
        self.id = 0
        var started = external_call["pthread_create", c_int](
            Pointer(to=self.id).as_unsafe_any_origin(), Int(0), main, Pointer(to=place).as_unsafe_any_origin()
        )
        assert_equal(started, 0)

    def join(self) raises:
        assert_equal(external_call["pthread_join", c_int](self.id, Int(0)), 0)


def place_of[T: AnyType](address: Int) -> Pointer[T, MutUnsafeAnyOrigin]:
    return Pointer[T, MutUnsafeAnyOrigin](unsafe_from_address=address)


struct Visit:
    """What a second thread tries while the first holds the arena."""

    var executor: Executor
    var arena: Arena
    var begin: Status
    var copy: Status

    def __init__(out self, executor: Executor) raises:
        self.executor = executor
        self.arena = Arena(executor)
        self.begin = Status.INTERNAL
        self.copy = Status.INTERNAL


def visit(address: Int) abi("C") -> Int:
    ref place = place_of[Visit](address)[]

    def begin() raises ArenaError {imm}:
        place.executor.begin(place.arena).finish()

    place.begin = refusal(begin)
    return 0


def test_a_second_thread_is_contended_and_the_first_goes_on() raises:
    var library = Library()
    var executor = an_executor(library)
    var place = Visit(executor)
    var call = executor.begin(place.arena)
    Thread(visit, place).join()
    assert_equal(place.begin, Status.CONTENDED)
    var view = published(call)
    call^.finish()
    assert_values(view.to_list(), 4)
    Thread(visit, place).join()
    assert_equal(place.begin, Status.OK)


struct Rounds:
    """Rounds of calls on an arena that another thread has as well."""

    var executor: Executor
    var arena: ArcPointer[Arena]
    var first: Int32
    var results: Int
    var refused: Int
    var wrong: Int

    def __init__(out self, executor: Executor, arena: ArcPointer[Arena], first: Int32):
        self.executor = executor
        self.arena = arena
        self.first = first
        self.results = 0
        self.refused = 0
        self.wrong = 0


def go_round(address: Int) abi("C") -> Int:
    ref place = place_of[Rounds](address)[]
    while place.results < 200:
        try:
            var call = place.executor.begin(place.arena[])
            var view = published(call, 16, place.first)
            # Taken within the call: after its end the other thread may begin.
            var values = call.collect(view)
            call^.finish()
            for index in range(16):
                if values[index] != place.first + Int32(index):
                    place.wrong += 1
            place.results += 1
        except error:
            if error.status != Status.CONTENDED:
                place.wrong += 1
                break
            place.refused += 1
    return 0


def test_two_threads_never_see_each_others_values() raises:
    var library = Library()
    var executor = an_executor(library)
    var arena = ArcPointer(Arena(executor))
    var low = Rounds(executor, arena, 0)
    var high = Rounds(executor, arena, 1_000_000)
    var first = Thread(go_round, low)
    var second = Thread(go_round, high)
    first.join()
    second.join()
    assert_equal(low.wrong + high.wrong, 0)
    assert_equal(low.results + high.results, 400)
    var stats = arena[].stats()
    assert_equal(stats.rewinds, 400)
    assert_equal(Int(stats.refused_begins), low.refused + high.refused)


comptime TESTS = __functions_in_module()
