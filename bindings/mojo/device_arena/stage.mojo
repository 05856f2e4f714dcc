"""Inputs where a call computes."""

from ._memory import at
from ._records import CStaged


struct StagedTape[origin: ImmOrigin](ImplicitlyCopyable, Sized):
    """A tape where a call computes: what was reachable there is used where it is, what was not is a copy in the call's arena,
    until the next call.

    Parameters:
        origin: The bytes that it was staged from, which have to live until work that reads the tape has passed.
    """

    var _items: Int
    var _byte_count: Int
    var _copied_bytes: Int
    var _bytes: Int
    var _offsets: Int

    @doc_hidden
    def __init__(out self, record: CStaged):
        self._items = Int(record.items)
        self._byte_count = Int(record.byte_count)
        self._copied_bytes = Int(record.copied_bytes)
        self._bytes = Int(record.bytes)
        self._offsets = Int(record.offsets)

    def __len__(self) -> Int:
        """Counts the items.

        Returns:
            How many there are.
        """
        return self._items

    def byte_count(self) -> Int:
        """Counts the bytes.

        Returns:
            How many there are.
        """
        return self._byte_count

    def copied_bytes(self) -> Int:
        """Counts the bytes that were copied into the call's arena, offsets included.

        Returns:
            How many; 0 where all of the tape was reachable.
        """
        return self._copied_bytes

    def bytes(self) -> Pointer[UInt8, Self.origin]:
        """Shows the bytes to what computes there.

        Returns:
            Their address there.
        """
        return at[DType.uint8](self._bytes).unsafe_mut_cast[False]().unsafe_origin_cast[Self.origin]()

    def offsets(self) -> Pointer[UInt64, Self.origin]:
        """Shows the offsets to what computes there. They count from `bytes`.

        Returns:
            Their address there: one more than there are items, or none for no items.
        """
        return at[DType.uint64](self._offsets).unsafe_mut_cast[False]().unsafe_origin_cast[Self.origin]()
