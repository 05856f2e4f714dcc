"""Rows that an NVIDIA GPU makes, by the kernel of the Rust example: launched on the executor's stream through the driver
itself, as an engine with kernels of its own does it."""

from device_arena import Arena, ArenaError, Executor, Library, Status, TapeView, View
from std.ffi import OwnedDLHandle
from verbs import Tokens
from words import DIM

comptime THREADS = UInt32(32)
"""Of a block, as the kernel has it: one block embeds one text."""


struct Kernels(Movable):
    """The kernel, loaded where an executor computes."""

    var driver: OwnedDLHandle
    var executor: Executor
    var context: Int
    var rows: Int

    def __init__(out self, executor: Executor, path: String) raises:
        """Loads the PTX of a file."""
        self.driver = OwnedDLHandle("libcuda.so.1")
        # A call of a function that is not there would end the process.
        for name in [
            "cuStreamGetCtx",
            "cuCtxPushCurrent_v2",
            "cuCtxPopCurrent_v2",
            "cuModuleLoadData",
            "cuModuleGetFunction",
            "cuLaunchKernel",
        ]:
            if not self.driver.check_symbol(name):
                raise Error("the driver lacks ", name)
        self.executor = executor
        self.context = 0
        self.rows = 0
        var image: List[UInt8]
        with open(path, "r") as file:
            image = file.read_bytes()
        # The driver takes text that ends with a zero byte.
        image.append(0)
        var context = Int(0)
        var module = Int(0)
        var function = Int(0)
        succeed(self.driver.call["cuStreamGetCtx", UInt32](executor.stream(), place(context)))
        self.context = context
        self.enter()
        succeed(self.driver.call["cuModuleLoadData", UInt32](place(module), Int(image.unsafe_ptr())))
        succeed(self.driver.call["cuModuleGetFunction", UInt32](place(function), module, "embed_rows".ptr()))
        self.leave()
        _ = image^
        self.rows = function

    def enter(self) raises ArenaError:
        """Makes the executor's context current."""
        succeed(self.driver.call["cuCtxPushCurrent_v2", UInt32](self.context))

    def leave(self) raises ArenaError:
        """Makes current what was before."""
        var popped = Int(0)
        succeed(self.driver.call["cuCtxPopCurrent_v2", UInt32](place(popped)))

    def launch(self, texts: Int, var strings: Int, var tokens: Int, var first: Int, var rows: Int) raises ArenaError:
        """Queues the kernel on the executor's stream. Its arguments are addresses on the device."""
        if texts == 0:
            return
        var count = UInt64(texts)
        # Where each argument is, in the kernel's order.
        var arguments: Array[Int, 5] = [
            Int(place(strings)),
            Int(place(tokens)),
            Int(place(first)),
            Int(place(count)),
            Int(place(rows)),
        ]
        var one = UInt32(1)
        var zero = UInt32(0)
        self.enter()
        var launched = self.driver.call["cuLaunchKernel", UInt32](
            self.rows,
            UInt32(texts),
            one,
            one,
            THREADS,
            one,
            one,
            zero,
            self.executor.stream(),
            place(arguments),
            Int(0),
        )
        self.leave()
        succeed(launched)


def place[T: AnyType](mut value: T) -> Pointer[T, MutUnsafeAnyOrigin]:
    """Where the driver finds a value, or puts one."""
    return Pointer(to=value).as_unsafe_any_origin()


def succeed(code: UInt32) raises ArenaError:
    """Raises what the driver answered, where that is an error."""
    if code != 0:
        raise ArenaError(Status.DRIVER, String("the driver answered ", code))


def embed_by(kernels: Kernels, library: Library, tokens: Tokens, arena: Arena) raises ArenaError -> View[DType.float32]:
    """The verb `embed`, by the kernel."""
    var bytes = tokens.strings.bytes.read()
    var offsets = tokens.strings.offsets.read()
    var first = tokens.first.read()
    var tape = TapeView.of(library, bytes.span(), offsets.span())
    var texts = len(first) - 1
    var call = kernels.executor.begin(arena)
    # Brings the tokens to the GPU, unless it reaches them where they are.
    var staged = call.stage(tape)
    var starts = call.output[DType.uint64](len(first))
    starts.write(first.span())
    var rows = call.output[DType.float32](texts * DIM)
    kernels.launch(
        texts,
        Int(staged.bytes()),
        Int(staged.offsets()),
        Int(starts.device_pointer()),
        Int(rows.device_pointer()),
    )
    var view = rows^.publish()
    call^.finish()
    # Until here the guards hold what the GPU reads where it is.
    kernels.executor.synchronize()
    _ = bytes^
    _ = offsets^
    _ = starts^
    return view^
