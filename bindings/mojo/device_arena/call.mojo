"""Calls: the exclusive use of an arena."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._memory import address, byte_count
from ._records import CStaged
from .deferred import Deferred
from .output import Output
from .scratch import Scratch
from .stage import StagedTape
from .status import ArenaError
from .tape import TapeView
from .view import View
from .writer import TapeOutput, Writer


struct Call(Movable):
    """The exclusive use of an arena, from its begin to its end.

    `finish` ends it with results. One that is not finished is abandoned after its last use: its views are stale at once.
    """

    var _arena: ArcPointer[Handle]
    var _handle: Handle

    @doc_hidden
    def __init__(out self, arena: ArcPointer[Handle], id: UInt64):
        self._arena = arena
        self._handle = Handle(arena[].loaded, id, arena[].loaded[].c.call_abandon)

    def output[dtype: DType](self, count: Int) raises ArenaError -> Output[dtype]:
        """Makes room that the call may write, in one piece, aligned to the arena's alignment. It shows what it held before.

        Parameters:
            dtype: The type of the values.

        Args:
            count: How many values.

        Returns:
            The room.

        Raises:
            OUT_OF_MEMORY or OVER_LIMIT; the arena is as it was.
        """
        var bytes = byte_count[dtype](count)
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = self._arena[].loaded[]
        failure.check(loaded.c.call_output(out(id), self._handle.id, bytes, failure.out()))
        return Output[dtype](self._arena, id, count)

    def writer[dtype: DType](self, capacity: Int = 0) raises ArenaError -> Writer[dtype]:
        """Makes an output that grows as it is written, on the host.

        Parameters:
            dtype: The type of the values.

        Args:
            capacity: For how many values there is room to begin with.

        Returns:
            The writer.

        Raises:
            DEVICE for the arena of a device; OUT_OF_MEMORY or OVER_LIMIT.
        """
        var id = UInt64(0)
        var failure = Failure()
        var bytes = byte_count[dtype](capacity)
        ref c = self._arena[].loaded[].c
        failure.check(c.call_writer(out(id), self._handle.id, bytes, failure.out()))
        return Writer[dtype](self._arena, id)

    def tape_output(self, items: Int = 0, bytes: Int = 0) raises ArenaError -> TapeOutput:
        """Makes a tape that grows item by item, on the host.

        Args:
            items: For how many items there is room to begin with.
            bytes: For how many bytes.

        Returns:
            The tape.

        Raises:
            DEVICE for the arena of a device; OUT_OF_MEMORY or OVER_LIMIT.
        """
        var offsets = self.writer[DType.uint64](items + 1)
        return TapeOutput(self.writer[DType.uint8](bytes), offsets^)

    def scratch(mut self) raises ArenaError -> Scratch[origin_of(self)]:
        """Begins a scope of room that is free again when the scope ends, and that can't be published.

        Returns:
            The scope.

        Raises:
            An error where the library fails.
        """
        return Scratch[origin_of(self)](self._arena[].loaded, self._handle.id)

    def stage(self, tape: TapeView) raises ArenaError -> StagedTape[ImmOrigin(tape.bytes_origin)]:
        """Brings a tape to where the call computes. What is reachable there is used where it is, and has to live until work that
        reads it has passed; what is not is copied into the call's arena, where it is until the next call.

        Args:
            tape: The tape.

        Returns:
            Where it is there.

        Raises:
            OUT_OF_MEMORY or OVER_LIMIT; DRIVER.
        """
        var record = CStaged()
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.call_stage(self._handle.id, tape._handle.id, out(record), failure.out()))
        return StagedTape[ImmOrigin(tape.bytes_origin)](record)

    def collect[dtype: DType](self, view: View[dtype]) raises ArenaError -> List[Scalar[dtype]]:
        """Copies all values of a view that this call has published to the host, before the call's end. From a device it waits for
        what the call has queued so far.

        Parameters:
            dtype: The type of the values.

        Args:
            view: The view.

        Returns:
            A copy of one's own.

        Raises:
            INVALID_ARGUMENT for the view of another call; DRIVER.
        """
        var values = List[Scalar[dtype]](length=len(view), fill=0)
        var failure = Failure()
        var bytes = byte_count[dtype](len(view))
        ref c = self._arena[].loaded[].c
        failure.check(c.call_collect(self._handle.id, view._handle[].id, address(Span(values)), bytes, failure.out()))
        return values^

    def finish(deinit self) raises ArenaError:
        """Ends the call: its published views can be read. It neither waits nor calls the driver: an error of queued work
        surfaces at the first wait for it.

        Raises:
            DRIVER, or what else kept the call from ending well: its views are stale then.
        """
        var failure = Failure()
        failure.check(self._arena[].loaded[].c.call_finish(self._handle.id, failure.out()))
        _ = self._handle.take()

    def defer(deinit self) raises ArenaError -> Deferred:
        """Leaves the call to the work that is queued on its executor now: its arena is held until that has passed, and the call
        is finished then.

        Returns:
            What can be asked, and waited for.

        Raises:
            INVALID_ARGUMENT where the arena was made for no executor and the call begun on none; DRIVER: the call is
            abandoned then.
        """
        var id = UInt64(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.call_defer(out(id), self._handle.id, 0, failure.out()))
        _ = self._handle.take()
        return Deferred(Handle(self._arena[].loaded, id, c.deferred_free))

    def abandon(deinit self) raises ArenaError:
        """Ends the call without a result: its views are stale at once.

        Raises:
            An error where the library fails.
        """
        self._handle.end()
