"""What a function of the C ABI answers, as an error."""

from ._records import CError, Out
from .status import ArenaError, Status


struct Failure:
    """The record that a function fills in."""

    var record: CError

    def __init__(out self):
        self.record = CError()

    def out(mut self) -> Out[CError]:
        """Where the function fills it in."""
        return out(self.record)

    def check(self, status: Int32) raises ArenaError:
        """Raises what a function answered, where that is not OK."""
        if status != Status.OK.number:
            raise ArenaError(Status(status), String(unsafe_from_utf8_ptr=self.record.message.unsafe_ptr()))


def out[T: AnyType](mut place: T) -> Out[T]:
    """A place that a function fills in. The pointer may be to anything that is alive: with a narrower origin the compiler takes
    the place for unchanged."""
    return Pointer(to=place).as_unsafe_any_origin()
