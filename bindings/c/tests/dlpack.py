"""Views in the hands of NumPy and PyTorch, by DLPack and without copying.

    dlpack.py LIBRARY                the host's memory, in NumPy
    dlpack.py LIBRARY --torch N      the memory of GPU N, in PyTorch

LIBRARY is the path of libdevice_arena. It prints `N passed, N failed`.
"""

import ctypes
import sys
import weakref
from ctypes import byref, c_char, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

OK, INVALID_ARGUMENT, DEVICE, CONTENDED = 0, 1, 2, 3
KIND_UINT, KIND_FLOAT = 1, 2


class Error(ctypes.Structure):
    _fields_ = [("status", c_int32), ("message", c_char * 1020)]


class Tensor(ctypes.Structure):
    """The head of a DLManagedTensorVersioned."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, c_void_p)),
        ("flags", c_uint64),
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
    ]


class Library:
    """The functions that this needs; a status that is none of those expected is an exception."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.error = Error()

    def call(self, name, *arguments, expected=(OK,)):
        function = getattr(self.library, "device_arena_" + name)
        status = function(*arguments, byref(self.error))
        if status not in expected:
            raise RuntimeError(f"{name} answered {status}: {self.error.message.decode()}")
        return status

    def make(self, name, *arguments):
        handle = c_uint64()
        self.call(name, byref(handle), *arguments)
        return handle


NAME = b"dltensor_versioned"
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
python.PyCapsule_IsValid.argtypes = [c_void_p, ctypes.c_char_p]
python.PyCapsule_GetPointer.restype = c_void_p
python.PyCapsule_GetPointer.argtypes = [c_void_p, ctypes.c_char_p]


@ctypes.PYFUNCTYPE(None, c_void_p)
def end_of_capsule(capsule):
    """A consumer renames the capsule that it takes. One that nobody took still has its tensor."""
    if python.PyCapsule_IsValid(capsule, NAME):
        address = python.PyCapsule_GetPointer(capsule, NAME)
        Tensor.from_address(address).deleter(address)


class View:
    """A view that offers itself as a tensor."""

    def __init__(self, library, view, executor, kind, bits, shape):
        self.library, self.view, self.executor = library, view, executor
        self.kind, self.bits, self.shape = kind, bits, shape

    def tensor(self):
        address = c_void_p()
        shape = (c_int64 * len(self.shape))(*self.shape)
        self.library.call(
            "view_dlpack", byref(address), self.view, self.executor, c_uint8(self.kind), c_uint8(self.bits),
            c_uint16(1), c_int32(len(self.shape)), shape,
        )
        return address.value

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        assert max_version is not None and max_version[0] >= 1, "the consumer knows no versions"
        # A consumer's default stream is none that an executor can be on: all of ours has passed before it reads.
        self.library.call("executor_synchronize", self.executor)
        return python.PyCapsule_New(self.tensor(), NAME, ctypes.cast(end_of_capsule, c_void_p))

    def __dlpack_device__(self):
        address = self.tensor()
        tensor = Tensor.from_address(address)
        device = (tensor.device_type, tensor.device_id)
        tensor.deleter(address)
        return device


class Bench:
    """An arena, and views of it."""

    def __init__(self, path, number=None):
        self.library = Library(path)
        self.handle = self.library.make("library_load")
        if number is None:
            self.executor = self.library.make("executor_host", self.handle)
        else:
            self.executor = self.library.make("executor_vram", self.handle, c_uint32(number))
        self.arena = self.library.make("init", self.executor)

    def publish(self, values):
        """A view of a NumPy array's or a bytes object's bytes."""
        raw = bytes(values)
        call = self.library.make("call_begin", self.arena, c_uint64(0))
        output = self.library.make("call_output", call, c_uint64(len(raw)))
        self.library.call("output_write", output, raw, c_uint64(len(raw)))
        view = self.library.make("output_publish", output)
        self.library.call("call_finish", call)
        return view

    def view(self, values, kind, bits, shape):
        return View(self.library, self.publish(values), self.executor, kind, bits, shape)

    def begin(self):
        """Whether a call can begin: OK or CONTENDED."""
        call = c_uint64()
        status = self.library.call("call_begin", byref(call), self.arena, c_uint64(0), expected=(OK, CONTENDED))
        if status == OK:
            self.library.call("call_finish", call)
        return status

    def address(self, view):
        """Where a view's bytes are."""
        guard, address = c_uint64(), c_void_p()
        if self.library.call(
            "view_read_begin", byref(guard), view, byref(address), None, expected=(OK, DEVICE)
        ) == DEVICE:
            self.library.call("view_device_pointer", byref(guard), view, c_uint64(0), byref(address))
        self.library.call("view_read_end", guard)
        return address.value


def numpy_takes_a_view_without_copying(bench):
    import numpy

    values = numpy.arange(12, dtype="f4")
    view = bench.view(values, KIND_FLOAT, 32, (3, 4))
    array = numpy.from_dlpack(view)
    assert array.shape == (3, 4) and array.dtype == numpy.float32
    assert (array == values.reshape(3, 4)).all()
    assert array.ctypes.data == bench.address(view.view), "it was copied"


def numpy_may_not_write(bench):
    import numpy

    array = numpy.from_dlpack(bench.view(b"abc", KIND_UINT, 8, (3,)))
    assert not array.flags.writeable
    try:
        array[0] = 1
    except ValueError:
        return
    raise AssertionError("it was written")


def the_arena_is_contended_until_numpy_is_done(bench):
    import numpy

    view = bench.view(b"abcd", KIND_UINT, 8, (4,))
    array = numpy.from_dlpack(view)
    part = array[1:3]
    assert bench.begin() == CONTENDED
    assert b"reader" in bench.library.error.message
    gone = weakref.ref(array)
    del array
    assert bench.begin() == CONTENDED, "a part of it keeps it"
    del part
    assert gone() is None
    assert bench.begin() == OK
    try:
        numpy.from_dlpack(view)
    except RuntimeError as error:
        assert "stale" in str(error)
        return
    raise AssertionError("a stale view was taken")


def a_capsule_that_nobody_takes_is_given_back(bench):
    view = bench.view(b"abcd", KIND_UINT, 8, (4,))
    capsule = view.__dlpack__(max_version=(1, 0))
    assert bench.begin() == CONTENDED
    del capsule
    assert bench.begin() == OK


def numpy_outlives_the_arena(bench):
    import numpy

    array = numpy.from_dlpack(bench.view(b"wxyz", KIND_UINT, 8, (2, 2)))
    bench.library.call("free", bench.arena)
    bench.library.call("executor_free", bench.executor)
    bench.library.call("library_free", bench.handle)
    assert array.tobytes() == b"wxyz"


def torch_takes_a_view_without_copying(bench):
    import numpy
    import torch

    values = numpy.arange(4096, dtype="f4")
    view = bench.view(values, KIND_FLOAT, 32, (64, 64))
    tensor = torch.from_dlpack(view)
    assert tensor.is_cuda and tuple(tensor.shape) == (64, 64) and tensor.dtype == torch.float32
    assert tensor.data_ptr() == bench.address(view.view), "it was copied"
    assert (tensor.cpu().numpy() == values.reshape(64, 64)).all()
    assert float(tensor.sum()) == float(values.sum())


def the_arena_is_contended_until_torch_is_done(bench):
    import torch

    tensor = torch.from_dlpack(bench.view(bytes(range(64)), KIND_UINT, 8, (64,)))
    assert bench.begin() == CONTENDED
    total = int(tensor.sum())
    torch.cuda.synchronize()
    del tensor
    assert total == sum(range(64))
    assert bench.begin() == OK


def main(arguments):
    on_host = [
        numpy_takes_a_view_without_copying,
        numpy_may_not_write,
        the_arena_is_contended_until_numpy_is_done,
        a_capsule_that_nobody_takes_is_given_back,
        numpy_outlives_the_arena,
    ]
    on_device = [torch_takes_a_view_without_copying, the_arena_is_contended_until_torch_is_done]
    number = int(arguments[2]) if arguments[1:2] == ["--torch"] else None
    passed = failed = 0
    for test in on_host if number is None else on_device:
        try:
            test(Bench(arguments[0], number))
            print("ok    ", test.__name__)
            passed += 1
        except Exception as error:  # one failure is no reason to leave the others out
            print("FAILED", test.__name__, repr(error))
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
