"""Outputs whose length is known only once they are written."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._memory import address, byte_count
from .status import ArenaError
from .view import View


struct Writer[dtype: DType](Movable, Sized):
    """Values in an arena of the host's that grow one by one. One that is dropped without being published leaves nothing to be
    read.

    Parameters:
        dtype: The type of the values.
    """

    var _arena: ArcPointer[Handle]
    var _handle: Handle
    var _count: Int

    @doc_hidden
    def __init__(out self, arena: ArcPointer[Handle], id: UInt64):
        self._arena = arena
        self._handle = Handle(arena[].loaded, id, arena[].loaded[].c.writer_free)
        self._count = 0

    def __len__(self) -> Int:
        """Counts the values.

        Returns:
            How many are written.
        """
        return self._count

    def push(mut self, value: Scalar[Self.dtype]) raises ArenaError:
        """Writes one value.

        Args:
            value: The value.

        Raises:
            OUT_OF_MEMORY or OVER_LIMIT; the writer is as it was.
        """
        var place = Array[Scalar[Self.dtype], 1](fill=value)
        self.extend(Span(place))

    def extend(mut self, values: Span[Scalar[Self.dtype], _]) raises ArenaError:
        """Writes values.

        Args:
            values: The values.

        Raises:
            OUT_OF_MEMORY or OVER_LIMIT; the writer is as it was.
        """
        var failure = Failure()
        var bytes = byte_count[Self.dtype](len(values))
        ref c = self._arena[].loaded[].c
        failure.check(c.writer_append(self._handle.id, address(values), bytes, failure.out()))
        self._count += len(values)

    def publish(deinit self) raises ArenaError -> View[Self.dtype]:
        """Makes what is written a view, which can be read once the call has finished.

        Returns:
            The view.

        Raises:
            An error where the library fails.
        """
        var view = UInt64(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.writer_publish(out(view), self._handle.id, failure.out()))
        _ = self._handle.take()
        return View[Self.dtype](self._arena, view, self._count)


struct TapeOutput(Movable, Sized):
    """A tape that grows item by item. Published, it is the next call's input."""

    var _bytes: Writer[DType.uint8]
    var _offsets: Writer[DType.uint64]

    @doc_hidden
    def __init__(out self, var bytes: Writer[DType.uint8], var offsets: Writer[DType.uint64]) raises ArenaError:
        self._bytes = bytes^
        self._offsets = offsets^
        self._offsets.push(0)

    def __len__(self) -> Int:
        """Counts the items.

        Returns:
            How many are written.
        """
        return len(self._offsets) - 1

    def push(mut self, item: Span[UInt8, _]) raises ArenaError:
        """Writes one item.

        Args:
            item: Its bytes.

        Raises:
            OUT_OF_MEMORY or OVER_LIMIT.
        """
        self._bytes.extend(item)
        self._offsets.push(UInt64(len(self._bytes)))

    def publish(deinit self) raises ArenaError -> PublishedTape:
        """Makes what is written a view of a tape, which can be read once the call has finished.

        Returns:
            The view.

        Raises:
            An error where the library fails.
        """
        return PublishedTape(self._bytes^.publish(), self._offsets^.publish())


@fieldwise_init
struct PublishedTape(ImplicitlyCopyable, Sized):
    """A tape that a call has published: views of its bytes and offsets."""

    var bytes: View[DType.uint8]
    """The bytes of all items."""
    var offsets: View[DType.uint64]
    """Where each item begins, and where the last one ends."""

    def __len__(self) -> Int:
        """Counts the items.

        Returns:
            How many there are, or were.
        """
        return len(self.offsets) - 1
