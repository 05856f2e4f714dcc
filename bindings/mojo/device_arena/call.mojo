"""Calls: the exclusive use of an arena."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._memory import byte_count
from .output import Output
from .status import ArenaError


struct Call(Movable):
    """The exclusive use of an arena, from its begin to its end.

    `finish` ends it with results. One that is not finished is abandoned after its last use: its views are stale at once.
    """

    var _arena: ArcPointer[Handle]
    var _handle: Handle

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

    def finish(deinit self) raises ArenaError:
        """Ends the call: its published views can be read. It neither waits nor calls the driver: an error of queued work
        surfaces at the first wait for it.

        Raises:
            DRIVER, or what else kept the call from ending well: its views are stale then.
        """
        var id = self._handle.take()
        var failure = Failure()
        failure.check(self._arena[].loaded[].c.call_finish(id, failure.out()))

    def abandon(deinit self) raises ArenaError:
        """Ends the call without a result: its views are stale at once.

        Raises:
            An error where the library fails.
        """
        self._handle.end()

