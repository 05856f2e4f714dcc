"""The shared library that does the work."""

from std.ffi import OwnedDLHandle, RTLD
from std.memory import ArcPointer
from std.os import getenv

from ._failure import Failure, out
from ._records import ABI_VERSION
from ._symbols import Symbols
from .status import ArenaError, Status

comptime LIBRARY_VARIABLE = "DEVICE_ARENA_LIBRARY"
"""The environment variable that names the shared library."""


struct Library(ImplicitlyCopyable):
    """`libdevice_arena`, opened, and the drivers that it has found. Copies are the same library.

    Everything that is made with it keeps it open.
    """

    var _loaded: ArcPointer[Loaded]

    def __init__(out self) raises ArenaError:
        """Opens the library that the environment variable `DEVICE_ARENA_LIBRARY` names, or else the one that the loader finds
        by its name.

        Raises:
            UNAVAILABLE where there is none, or where it is of another version than this package.
        """
        var path = getenv(LIBRARY_VARIABLE)
        self = Self(path if path else String("libdevice_arena.so"))

    def __init__(out self, path: String) raises ArenaError:
        """Opens a library, and checks that everything is in it that this package calls.

        Args:
            path: Where it is, or its name, as `dlopen` takes it.

        Raises:
            UNAVAILABLE where there is none, or where it is of another version than this package.
        """
        self._loaded = ArcPointer(Loaded(path))

    def device_count(self) raises ArenaError -> Int:
        """Counts the GPUs: NVIDIA's first, then AMD's.

        Returns:
            How many there are; 0 without a driver.

        Raises:
            UNAVAILABLE or DRIVER for a driver that is there and fails.
        """
        var count = UInt32(0)
        var failure = Failure()
        ref loaded = self._loaded[]
        failure.check(loaded.c.library_device_count(loaded.id, out(count), failure.out()))
        return Int(count)


@doc_hidden
struct Loaded(Movable):
    """The opened library. Its code stays mapped until the process ends, since threads of it may be running; nothing else in
    this package has to be destroyed in a certain order for that."""

    var c: Symbols
    var handle: OwnedDLHandle
    var id: UInt64

    @doc_hidden
    def __init__(out self, path: String) raises ArenaError:
        try:
            self.handle = OwnedDLHandle(path, RTLD.NOW | RTLD.LOCAL | RTLD.NODELETE)
        except error:
            raise ArenaError(Status.UNAVAILABLE, String("the library ", path, " is not to be opened: ", error))
        self.c = Symbols(self.handle)
        var version = self.c.abi_version()
        if version != ABI_VERSION:
            var message = String("the library is of ABI ", version, ", and this package of ABI ", ABI_VERSION)
            raise ArenaError(Status.UNAVAILABLE, message)
        self.id = 0
        var failure = Failure()
        failure.check(self.c.library_load(out(self.id), failure.out()))

    @doc_hidden
    def __deinit__(deinit self):
        var failure = Failure()
        _ = self.c.library_free(self.id, failure.out())
