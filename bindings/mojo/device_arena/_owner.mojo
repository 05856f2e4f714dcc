"""What somebody lends to the library, kept until the library has no more use for it."""

from std.memory import ArcPointer


@doc_hidden
struct Owner[T: Movable & Deinitable](Movable):
    """A value that keeps itself until `release_owner`."""

    var value: Self.T
    var own: Optional[ArcPointer[Self]]

    def __init__(out self, var value: Self.T):
        self.value = value^
        self.own = None


@doc_hidden
def keep[T: Movable & Deinitable](var value: T) -> Int:
    """Where a value is kept, which is what `release_owner` takes."""
    var owner = ArcPointer(Owner(value^))
    owner[].own = owner
    return Int(Pointer(to=owner[]))


@doc_hidden
def release_owner[T: Movable & Deinitable](place: Int) abi("C"):
    """Lets the value go: what the library calls when it has no more use for it."""
    ref owner = Pointer[Owner[T], MutUnsafeAnyOrigin](unsafe_from_address=place)[]
    var own = owner.own.take()
    _ = own^
