"""Deferred calls: work that is left to an executor's queue, and how to wait for it."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._owner import Owner, keep, release_owner
from .arena import Arena
from .call import Call
from .executor import Executor
from .status import ArenaError, Status


struct Deferred(Movable):
    """A call whose end is left to the work that is queued. The arena is held until that has passed, whoever waits."""

    var _handle: Handle

    @doc_hidden
    def __init__(out self, var handle: Handle):
        self._handle = handle^

    def is_done(self) raises ArenaError -> Bool:
        """Asks whether the work has passed. It never blocks.

        Returns:
            Whether it has.

        Raises:
            DRIVER where the driver fails.
        """
        var done = UInt32(0)
        var failure = Failure()
        failure.check(self._handle.loaded[].c.deferred_is_done(self._handle.id, out(done), failure.out()))
        return done != 0

    def wait(self) raises ArenaError:
        """Blocks until the work has passed.

        Raises:
            What came of the work.
        """
        self.wait_timeout(UInt64.MAX)

    def wait_timeout(self, nanoseconds: UInt64) raises ArenaError:
        """Blocks until the work has passed, for some time.

        Args:
            nanoseconds: How long at most.

        Raises:
            PENDING where the time was up first; else what came of the work.
        """
        var failure = Failure()
        failure.check(self._handle.loaded[].c.call_wait(self._handle.id, nanoseconds, failure.out()))

    def before(self, executor: Executor) raises ArenaError:
        """Makes all work that is queued on an executor from now on wait for this, without the host.

        Args:
            executor: Whose work waits.

        Raises:
            DRIVER where the driver fails.
        """
        var failure = Failure()
        ref c = self._handle.loaded[].c
        failure.check(c.executor_order_after(executor._handle[].id, self._handle.id, failure.out()))


trait Work(Deinitable, Movable):
    """Work that is deferred: a type with what it needs, what it comes to as `Result`, and `run`, for `defer` to run."""

    comptime Result: Movable & Deinitable
    """What comes of it."""

    def run(mut self, mut call: Call) raises ArenaError -> Self.Result:
        """Does it: on another thread for the host; at once, and only queueing, for a device. What it raises abandons the call,
        and is what `wait` raises. It publishes its outputs and does not end the call.

        Args:
            call: The call, which ends with the work.

        Returns:
            What comes of it.

        Raises:
            What keeps it from that.
        """
        ...


struct DeferredWork[W: Work](Movable):
    """A deferred call, and what its work comes to.

    Parameters:
        W: The work.
    """

    var _deferred: Deferred
    var _room: ArcPointer[Room[Self.W]]

    @doc_hidden
    def __init__(out self, var deferred: Deferred, room: ArcPointer[Room[Self.W]]):
        self._deferred = deferred^
        self._room = room

    def is_done(self) raises ArenaError -> Bool:
        """Asks whether the work has passed. It never blocks.

        Returns:
            Whether it has.

        Raises:
            DRIVER where the driver fails.
        """
        return self._deferred.is_done()

    def wait_timeout(self, nanoseconds: UInt64) raises ArenaError:
        """Blocks until the work has passed, for some time. What the work has returned is `wait`'s to answer.

        Args:
            nanoseconds: How long at most.

        Raises:
            PENDING where the time was up first; else what came of the work.
        """
        self._deferred.wait_timeout(nanoseconds)

    def wait(deinit self) raises ArenaError -> Self.W.Result:
        """Blocks until the work has passed.

        Returns:
            What the work has returned.

        Raises:
            What the work has raised; or DRIVER.
        """
        try:
            self._deferred.wait()
        except error:
            if self._room[].error:
                raise self._room[].error.take()
            raise error^
        if not self._room[].result:
            raise ArenaError(Status.INTERNAL, "the work has passed, and left no result")
        return self._room[].result.take()


@doc_hidden
struct Room[W: Work](Movable):
    """What deferred work and who waits for it share. Who waits looks into it when the work has passed, and not before.
    """

    var work: Self.W
    var result: Optional[Self.W.Result]
    var error: Optional[ArenaError]
    var arena: ArcPointer[Handle]

    @doc_hidden
    def __init__(out self, var work: Self.W, arena: ArcPointer[Handle]):
        self.work = work^
        self.result = None
        self.error = None
        self.arena = arena


def defer[W: Work](executor: Executor, arena: Arena, var work: W) raises ArenaError -> DeferredWork[W]:
    """Runs work in an executor's order: on the host's own thread; on a device at once, where it only queues.

    Parameters:
        W: The type of the work.

    Args:
        executor: Where it computes.
        arena: Where its outputs land. It is held until all of the work has passed.
        work: The work.

    Returns:
        What the work comes to, once it has passed.

    Raises:
        CONTENDED while somebody holds the arena; INVALID_ARGUMENT for the arena of another executor's device.
    """
    var room = ArcPointer(Room(work^, arena._handle))
    # The work's own share of the room.
    var place = keep(room)
    var id = UInt64(0)
    var failure = Failure()
    ref c = arena._handle[].loaded[].c
    var status = c.call_defer_work(
        out(id),
        arena._handle[].id,
        executor._handle[].id,
        run[W],
        place,
        release_owner[ArcPointer[Room[W]]],
        failure.out(),
    )
    if status != Status.OK.number:
        release_owner[ArcPointer[Room[W]]](place)
    failure.check(status)
    return DeferredWork[W](Deferred(Handle(arena._handle[].loaded, id, c.deferred_free)), room)


@doc_hidden
def run[W: Work](call: UInt64, place: Int) abi("C") -> Int32:
    """What the library calls: the work, with its call."""
    ref room = Pointer[Owner[ArcPointer[Room[W]]], MutUnsafeAnyOrigin](unsafe_from_address=place)[].value[]
    var lent = Call(room.arena, call)
    var status = Status.OK.number
    try:
        room.result = room.work.run(lent)
    except error:
        status = error.status.number
        room.error = error^
    # It is the library that ends the call.
    _ = lent._handle.take()
    return status
