"""Scratch: room inside a call that is free again when its scope ends."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._memory import at, byte_count
from .library import Loaded
from .status import ArenaError


struct Scratch[origin: Origin[mut=True]](Movable):
    """A scope of scratch room in a call. It ends by `end`, or else after its last use; what was taken from it keeps it.

    Scopes nest: room is taken from the innermost, and they end in the reverse of their order. So begin one within another by
    the other's own `scratch`.

    Parameters:
        origin: The call, or the scope, that it is in.
    """

    var _loaded: ArcPointer[Loaded]
    var _call: UInt64
    var _id: UInt64

    @doc_hidden
    def __init__(out self, loaded: ArcPointer[Loaded], call: UInt64) raises ArenaError:
        var id = UInt64(0)
        var failure = Failure()
        failure.check(loaded[].c.call_scratch_begin(out(id), call, failure.out()))
        self._loaded = loaded
        self._call = call
        self._id = id

    @doc_hidden
    def __deinit__(deinit self):
        if self._id != 0:
            var failure = Failure()
            _ = self._loaded[].c.call_scratch_end(self._call, self._id, failure.out())

    def take[dtype: DType](mut self, count: Int) raises ArenaError -> Span[Scalar[dtype], origin_of(self)]:
        """Takes room for the host, which shows what it held before.

        Parameters:
            dtype: The type of the values.

        Args:
            count: How many values.

        Returns:
            The room, until the scope ends.

        Raises:
            DEVICE for the arena of a device; OUT_OF_MEMORY or OVER_LIMIT; INVALID_ARGUMENT where another scope is open
            within this one.
        """
        var data = Int(0)
        var failure = Failure()
        var bytes = byte_count[dtype](count)
        ref c = self._loaded[].c
        failure.check(c.call_scratch_take(self._call, self._id, bytes, out(data), failure.out()))
        return Span[Scalar[dtype], origin_of(self)](
            unsafe_ptr=at[dtype](data).unsafe_origin_cast[origin_of(self)](), length=count
        )

    def take_on_device[dtype: DType](mut self, count: Int) raises ArenaError -> Pointer[Scalar[dtype], origin_of(self)]:
        """Takes room for a device's kernels. Work that uses it is to be queued on the executor's stream before the scope ends.

        Parameters:
            dtype: The type of the values.

        Args:
            count: How many values.

        Returns:
            The room's address for the device. The host may not read what it points to.

        Raises:
            INVALID_ARGUMENT for host pages, or where another scope is open within this one; OUT_OF_MEMORY or OVER_LIMIT.
        """
        var pointer = Int(0)
        var failure = Failure()
        var bytes = byte_count[dtype](count)
        ref c = self._loaded[].c
        failure.check(c.call_scratch_take_on_device(self._call, self._id, bytes, out(pointer), failure.out()))
        return at[dtype](pointer).unsafe_origin_cast[origin_of(self)]()

    def scratch(mut self) raises ArenaError -> Scratch[origin_of(self)]:
        """Begins a scope within this one.

        Returns:
            The scope.

        Raises:
            An error where the library fails.
        """
        return Scratch[origin_of(self)](self._loaded, self._call)

    def end(deinit self) raises ArenaError:
        """Ends the scope: its room is free again.

        Raises:
            INVALID_ARGUMENT where another scope is open within it.
        """
        self._end()

    def _end(mut self) raises ArenaError:
        var id = self._id
        self._id = 0
        var failure = Failure()
        failure.check(self._loaded[].c.call_scratch_end(self._call, id, failure.out()))
