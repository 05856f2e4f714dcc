"""Outputs: room that the running call may write."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._memory import address, at, byte_count
from .status import ArenaError
from .view import View


struct Output[dtype: DType](Movable, Sized):
    """Room in an arena for values, which the call that it is of may write.

    One that is dropped without being published leaves nothing to be read. Until it is published or dropped, no other call can
    begin.

    Parameters:
        dtype: The type of the values.
    """

    var _arena: ArcPointer[Handle]
    var _handle: Handle
    var _count: Int

    @doc_hidden
    def __init__(out self, arena: ArcPointer[Handle], id: UInt64, count: Int):
        self._arena = arena
        self._handle = Handle(arena[].loaded, id, arena[].loaded[].c.output_free)
        self._count = count

    def __len__(self) -> Int:
        """Counts the values that there is room for.

        Returns:
            How many.
        """
        return self._count

    def span(mut self) raises ArenaError -> Span[Scalar[Self.dtype], origin_of(self)]:
        """Shows the room to the host, which may write it.

        Returns:
            The values, which hold until the output is published or dropped.

        Raises:
            DEVICE for a device's memory; PENDING while a device may use the room.
        """
        var data = Int(0)
        var bytes = UInt64(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.output_data(self._handle.id, out(data), out(bytes), failure.out()))
        return Span[Scalar[Self.dtype], origin_of(self)](
            unsafe_ptr=at[Self.dtype](data).unsafe_origin_cast[origin_of(self)](), length=self._count
        )

    def fill(mut self, value: Scalar[Self.dtype]) raises ArenaError:
        """Writes one value everywhere, from the host.

        Args:
            value: The value.

        Raises:
            DEVICE for a device's memory.
        """
        for ref place in self.span():
            place = value

    def device_pointer(mut self) raises ArenaError -> Pointer[Scalar[Self.dtype], origin_of(self)]:
        """Shows the room to a device's kernels, which write it in the order of the executor's stream. Work that uses it is to
        be queued there before the call ends.

        Returns:
            The room's address for the device, which keeps the output. The host may not read what it points to.

        Raises:
            INVALID_ARGUMENT for host pages, which no device has been told of.
        """
        var pointer = Int(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.output_device_pointer(self._handle.id, out(pointer), failure.out()))
        return at[Self.dtype](pointer).unsafe_origin_cast[origin_of(self)]()

    def write(mut self, values: Span[Scalar[Self.dtype], _]) raises ArenaError:
        """Copies values of the host's into the room: in the stream's order for a device's, and done with them when it
        returns.

        Args:
            values: The values, as many as there is room for.

        Raises:
            INVALID_ARGUMENT for another number of them; DRIVER.
        """
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        var bytes = byte_count[Self.dtype](len(values))
        failure.check(c.output_write(self._handle.id, address(values), bytes, failure.out()))

    def copy_from(mut self, view: View[Self.dtype]) raises ArenaError:
        """Copies all values of a view into the room: from any arena to any other, but not between two vendors' devices.

        Args:
            view: The view, of as many values as there is room for.

        Raises:
            INVALID_ARGUMENT for a stale view, or one of another length; DRIVER.
        """
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.output_copy_from_view(self._handle.id, view._handle[].id, failure.out()))

    def publish(deinit self) raises ArenaError -> View[Self.dtype]:
        """Makes the room a view, which can be read once the call has finished.

        Returns:
            The view.

        Raises:
            An error where the library fails.
        """
        var view = UInt64(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.output_publish(out(view), self._handle.id, failure.out()))
        _ = self._handle.take()
        return View[Self.dtype](self._arena, view, self._count)

    def publish_prefix(deinit self, count: Int) raises ArenaError -> View[Self.dtype]:
        """Makes the first values of the room a view. The rest stays taken until the arena is rewound.

        Args:
            count: How many.

        Returns:
            The view.

        Raises:
            INVALID_ARGUMENT for more than there are. The output is dropped then.
        """
        var view = UInt64(0)
        var failure = Failure()
        var bytes = byte_count[Self.dtype](count)
        ref c = self._arena[].loaded[].c
        failure.check(c.output_publish_prefix(out(view), self._handle.id, bytes, failure.out()))
        _ = self._handle.take()
        return View[Self.dtype](self._arena, view, count)
