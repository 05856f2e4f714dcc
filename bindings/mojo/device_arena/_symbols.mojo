"""The functions of the C ABI that this package calls, each found and checked once. Made by `symbols.py`."""

from std.ffi import OwnedDLHandle

from ._records import *
from .status import ArenaError, Status


struct Symbols:
    """Where the functions are. They hold as long as the library is loaded."""

    var init: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var init_with_options: def(Out[UInt64], UInt64, Out[COptions], Out[CError]) thin abi("C") -> Int32
    var free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var describe: def(UInt64, Out[CDescription], Out[CError]) thin abi("C") -> Int32
    var stats: def(UInt64, Out[CStats], Out[CError]) thin abi("C") -> Int32
    var reserve: def(UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var trim: def(UInt64, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var call_begin: def(Out[UInt64], UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var call_begin_timeout: def(Out[UInt64], UInt64, UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var call_output: def(Out[UInt64], UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var call_finish: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var call_abandon: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var run_copy_prefix: def(UInt64, UInt64, UInt64, UInt32, UInt64, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var run_copy_range: def(UInt64, UInt64, UInt64, UInt64, UInt64, UInt32, UInt64, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var run_copies: def(UInt64, Out[CCopy], UInt64, UInt32, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var run_copy_into: def(UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var run_clear: def(UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var call_defer_work: def(Out[UInt64], UInt64, UInt64, CWork, Int, CRelease, Out[CError]) thin abi("C") -> Int32
    var call_defer: def(Out[UInt64], UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var call_wait: def(UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var deferred_is_done: def(UInt64, Out[UInt32], Out[CError]) thin abi("C") -> Int32
    var executor_order_after: def(UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var deferred_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var executor_host: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var executor_best: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var executor_vram: def(Out[UInt64], UInt64, UInt32, Out[CError]) thin abi("C") -> Int32
    var executor_of_vendor: def(Out[UInt64], UInt64, Int32, UInt32, Out[CError]) thin abi("C") -> Int32
    var executor_adopt: def(Out[UInt64], UInt64, Int32, Int, Int, CRelease, Out[CError]) thin abi("C") -> Int32
    var executor_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var executor_vendor: def(UInt64, Out[Int32], Out[CError]) thin abi("C") -> Int32
    var executor_describe: def(UInt64, Out[CDevice], Out[CError]) thin abi("C") -> Int32
    var executor_stream: def(UInt64, Out[Int], Out[CError]) thin abi("C") -> Int32
    var executor_synchronize: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var library_load: def(Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var library_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var library_device_count: def(UInt64, Out[UInt32], Out[CError]) thin abi("C") -> Int32
    var output_data: def(UInt64, Out[Int], Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var output_device_pointer: def(UInt64, Out[Int], Out[CError]) thin abi("C") -> Int32
    var output_write: def(UInt64, Int, UInt64, Out[CError]) thin abi("C") -> Int32
    var output_copy_from_view: def(UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var output_publish: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var output_publish_prefix: def(Out[UInt64], UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var output_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var plan_init: def(Out[UInt64], UInt64, Out[CSlot], UInt64, UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var plan_describe: def(UInt64, Out[CPlanDescription], Out[CError]) thin abi("C") -> Int32
    var plan_slot: def(UInt64, UInt64, Out[CSlot], Out[CError]) thin abi("C") -> Int32
    var plan_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var planned_init: def(Out[UInt64], UInt64, UInt64, Int32, Out[CError]) thin abi("C") -> Int32
    var planned_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var planned_describe: def(UInt64, Out[CDescription], Out[CError]) thin abi("C") -> Int32
    var planned_stats: def(UInt64, Out[CStats], Out[CError]) thin abi("C") -> Int32
    var planned_has: def(UInt64, UInt64, Out[UInt32], Out[CError]) thin abi("C") -> Int32
    var planned_slot: def(UInt64, UInt64, Out[CSlot], Out[CError]) thin abi("C") -> Int32
    var planned_elem_offset: def(UInt64, UInt64, UInt32, Out[UInt32], Out[CError]) thin abi("C") -> Int32
    var planned_elem_offset_64: def(UInt64, UInt64, UInt32, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var planned_last: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var pointer_classify: def(UInt64, Int, Out[CPointerInfo], Out[CError]) thin abi("C") -> Int32
    var pointer_classify_range: def(UInt64, Int, UInt64, Out[CPointerInfo], Out[CError]) thin abi("C") -> Int32
    var run_begin: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var run_begin_timeout: def(Out[UInt64], UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var run_write: def(UInt64, UInt64, UInt64, UInt32, Int, UInt64, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var run_read: def(UInt64, UInt64, UInt64, UInt32, Int, UInt64, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var run_read_at: def(UInt64, UInt64, UInt32, Int, UInt64, Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var run_device_pointer: def(UInt64, UInt64, Out[Int], Out[CError]) thin abi("C") -> Int32
    var run_data: def(UInt64, Out[Int], Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var run_finish: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var run_abandon: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var call_scratch_begin: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var call_scratch_take: def(UInt64, UInt64, UInt64, Out[Int], Out[CError]) thin abi("C") -> Int32
    var call_scratch_take_on_device: def(UInt64, UInt64, UInt64, Out[Int], Out[CError]) thin abi("C") -> Int32
    var call_scratch_end: def(UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var call_stage: def(UInt64, UInt64, Out[CStaged], Out[CError]) thin abi("C") -> Int32
    var call_collect: def(UInt64, UInt64, Int, UInt64, Out[CError]) thin abi("C") -> Int32
    var abi_version: def() thin abi("C") -> UInt32
    var tape_of_span: def(Out[UInt64], UInt64, Int, UInt64, Int, UInt64, Int32, Out[CError]) thin abi("C") -> Int32
    var tape_of_pointer: def(Out[UInt64], UInt64, Int, UInt64, Int, UInt64, Int32, Out[CError]) thin abi("C") -> Int32
    var tape_describe: def(UInt64, Out[CTapeDescription], Out[CError]) thin abi("C") -> Int32
    var tape_item: def(UInt64, UInt64, Out[Int], Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var tape_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var view_describe: def(UInt64, Out[CViewDescription], Out[CError]) thin abi("C") -> Int32
    var view_read_begin: def(Out[UInt64], UInt64, Out[Int], Out[UInt64], Out[CError]) thin abi("C") -> Int32
    var view_device_pointer: def(Out[UInt64], UInt64, UInt64, Out[Int], Out[CError]) thin abi("C") -> Int32
    var view_read_end: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var view_copy_to_host: def(UInt64, Int, UInt64, Out[CError]) thin abi("C") -> Int32
    var view_slice: def(Out[UInt64], UInt64, UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var view_free: def(UInt64, Out[CError]) thin abi("C") -> Int32
    var call_writer: def(Out[UInt64], UInt64, UInt64, Out[CError]) thin abi("C") -> Int32
    var writer_append: def(UInt64, Int, UInt64, Out[CError]) thin abi("C") -> Int32
    var writer_publish: def(Out[UInt64], UInt64, Out[CError]) thin abi("C") -> Int32
    var writer_free: def(UInt64, Out[CError]) thin abi("C") -> Int32

    def __init__(out self, handle: OwnedDLHandle) raises ArenaError:
        """Finds all of them, or says which is missing: calling that one would end the process."""
        self.init = found[type_of(self.init)](handle, "device_arena_init")
        self.init_with_options = found[type_of(self.init_with_options)](handle, "device_arena_init_with_options")
        self.free = found[type_of(self.free)](handle, "device_arena_free")
        self.describe = found[type_of(self.describe)](handle, "device_arena_describe")
        self.stats = found[type_of(self.stats)](handle, "device_arena_stats")
        self.reserve = found[type_of(self.reserve)](handle, "device_arena_reserve")
        self.trim = found[type_of(self.trim)](handle, "device_arena_trim")
        self.call_begin = found[type_of(self.call_begin)](handle, "device_arena_call_begin")
        self.call_begin_timeout = found[type_of(self.call_begin_timeout)](handle, "device_arena_call_begin_timeout")
        self.call_output = found[type_of(self.call_output)](handle, "device_arena_call_output")
        self.call_finish = found[type_of(self.call_finish)](handle, "device_arena_call_finish")
        self.call_abandon = found[type_of(self.call_abandon)](handle, "device_arena_call_abandon")
        self.run_copy_prefix = found[type_of(self.run_copy_prefix)](handle, "device_arena_run_copy_prefix")
        self.run_copy_range = found[type_of(self.run_copy_range)](handle, "device_arena_run_copy_range")
        self.run_copies = found[type_of(self.run_copies)](handle, "device_arena_run_copies")
        self.run_copy_into = found[type_of(self.run_copy_into)](handle, "device_arena_run_copy_into")
        self.run_clear = found[type_of(self.run_clear)](handle, "device_arena_run_clear")
        self.call_defer_work = found[type_of(self.call_defer_work)](handle, "device_arena_call_defer_work")
        self.call_defer = found[type_of(self.call_defer)](handle, "device_arena_call_defer")
        self.call_wait = found[type_of(self.call_wait)](handle, "device_arena_call_wait")
        self.deferred_is_done = found[type_of(self.deferred_is_done)](handle, "device_arena_deferred_is_done")
        self.executor_order_after = found[type_of(self.executor_order_after)](handle, "device_arena_executor_order_after")
        self.deferred_free = found[type_of(self.deferred_free)](handle, "device_arena_deferred_free")
        self.executor_host = found[type_of(self.executor_host)](handle, "device_arena_executor_host")
        self.executor_best = found[type_of(self.executor_best)](handle, "device_arena_executor_best")
        self.executor_vram = found[type_of(self.executor_vram)](handle, "device_arena_executor_vram")
        self.executor_of_vendor = found[type_of(self.executor_of_vendor)](handle, "device_arena_executor_of_vendor")
        self.executor_adopt = found[type_of(self.executor_adopt)](handle, "device_arena_executor_adopt")
        self.executor_free = found[type_of(self.executor_free)](handle, "device_arena_executor_free")
        self.executor_vendor = found[type_of(self.executor_vendor)](handle, "device_arena_executor_vendor")
        self.executor_describe = found[type_of(self.executor_describe)](handle, "device_arena_executor_describe")
        self.executor_stream = found[type_of(self.executor_stream)](handle, "device_arena_executor_stream")
        self.executor_synchronize = found[type_of(self.executor_synchronize)](handle, "device_arena_executor_synchronize")
        self.library_load = found[type_of(self.library_load)](handle, "device_arena_library_load")
        self.library_free = found[type_of(self.library_free)](handle, "device_arena_library_free")
        self.library_device_count = found[type_of(self.library_device_count)](handle, "device_arena_library_device_count")
        self.output_data = found[type_of(self.output_data)](handle, "device_arena_output_data")
        self.output_device_pointer = found[type_of(self.output_device_pointer)](handle, "device_arena_output_device_pointer")
        self.output_write = found[type_of(self.output_write)](handle, "device_arena_output_write")
        self.output_copy_from_view = found[type_of(self.output_copy_from_view)](handle, "device_arena_output_copy_from_view")
        self.output_publish = found[type_of(self.output_publish)](handle, "device_arena_output_publish")
        self.output_publish_prefix = found[type_of(self.output_publish_prefix)](handle, "device_arena_output_publish_prefix")
        self.output_free = found[type_of(self.output_free)](handle, "device_arena_output_free")
        self.plan_init = found[type_of(self.plan_init)](handle, "device_arena_plan_init")
        self.plan_describe = found[type_of(self.plan_describe)](handle, "device_arena_plan_describe")
        self.plan_slot = found[type_of(self.plan_slot)](handle, "device_arena_plan_slot")
        self.plan_free = found[type_of(self.plan_free)](handle, "device_arena_plan_free")
        self.planned_init = found[type_of(self.planned_init)](handle, "device_arena_planned_init")
        self.planned_free = found[type_of(self.planned_free)](handle, "device_arena_planned_free")
        self.planned_describe = found[type_of(self.planned_describe)](handle, "device_arena_planned_describe")
        self.planned_stats = found[type_of(self.planned_stats)](handle, "device_arena_planned_stats")
        self.planned_has = found[type_of(self.planned_has)](handle, "device_arena_planned_has")
        self.planned_slot = found[type_of(self.planned_slot)](handle, "device_arena_planned_slot")
        self.planned_elem_offset = found[type_of(self.planned_elem_offset)](handle, "device_arena_planned_elem_offset")
        self.planned_elem_offset_64 = found[type_of(self.planned_elem_offset_64)](handle, "device_arena_planned_elem_offset_64")
        self.planned_last = found[type_of(self.planned_last)](handle, "device_arena_planned_last")
        self.pointer_classify = found[type_of(self.pointer_classify)](handle, "device_arena_pointer_classify")
        self.pointer_classify_range = found[type_of(self.pointer_classify_range)](handle, "device_arena_pointer_classify_range")
        self.run_begin = found[type_of(self.run_begin)](handle, "device_arena_run_begin")
        self.run_begin_timeout = found[type_of(self.run_begin_timeout)](handle, "device_arena_run_begin_timeout")
        self.run_write = found[type_of(self.run_write)](handle, "device_arena_run_write")
        self.run_read = found[type_of(self.run_read)](handle, "device_arena_run_read")
        self.run_read_at = found[type_of(self.run_read_at)](handle, "device_arena_run_read_at")
        self.run_device_pointer = found[type_of(self.run_device_pointer)](handle, "device_arena_run_device_pointer")
        self.run_data = found[type_of(self.run_data)](handle, "device_arena_run_data")
        self.run_finish = found[type_of(self.run_finish)](handle, "device_arena_run_finish")
        self.run_abandon = found[type_of(self.run_abandon)](handle, "device_arena_run_abandon")
        self.call_scratch_begin = found[type_of(self.call_scratch_begin)](handle, "device_arena_call_scratch_begin")
        self.call_scratch_take = found[type_of(self.call_scratch_take)](handle, "device_arena_call_scratch_take")
        self.call_scratch_take_on_device = found[type_of(self.call_scratch_take_on_device)](handle, "device_arena_call_scratch_take_on_device")
        self.call_scratch_end = found[type_of(self.call_scratch_end)](handle, "device_arena_call_scratch_end")
        self.call_stage = found[type_of(self.call_stage)](handle, "device_arena_call_stage")
        self.call_collect = found[type_of(self.call_collect)](handle, "device_arena_call_collect")
        self.abi_version = found[type_of(self.abi_version)](handle, "device_arena_abi_version")
        self.tape_of_span = found[type_of(self.tape_of_span)](handle, "device_arena_tape_of_span")
        self.tape_of_pointer = found[type_of(self.tape_of_pointer)](handle, "device_arena_tape_of_pointer")
        self.tape_describe = found[type_of(self.tape_describe)](handle, "device_arena_tape_describe")
        self.tape_item = found[type_of(self.tape_item)](handle, "device_arena_tape_item")
        self.tape_free = found[type_of(self.tape_free)](handle, "device_arena_tape_free")
        self.view_describe = found[type_of(self.view_describe)](handle, "device_arena_view_describe")
        self.view_read_begin = found[type_of(self.view_read_begin)](handle, "device_arena_view_read_begin")
        self.view_device_pointer = found[type_of(self.view_device_pointer)](handle, "device_arena_view_device_pointer")
        self.view_read_end = found[type_of(self.view_read_end)](handle, "device_arena_view_read_end")
        self.view_copy_to_host = found[type_of(self.view_copy_to_host)](handle, "device_arena_view_copy_to_host")
        self.view_slice = found[type_of(self.view_slice)](handle, "device_arena_view_slice")
        self.view_free = found[type_of(self.view_free)](handle, "device_arena_view_free")
        self.call_writer = found[type_of(self.call_writer)](handle, "device_arena_call_writer")
        self.writer_append = found[type_of(self.writer_append)](handle, "device_arena_writer_append")
        self.writer_publish = found[type_of(self.writer_publish)](handle, "device_arena_writer_publish")
        self.writer_free = found[type_of(self.writer_free)](handle, "device_arena_writer_free")


def found[F: TrivialRegisterPassable](handle: OwnedDLHandle, name: StaticString) raises ArenaError -> F:
    """A function of the library's."""
    var symbol = handle.get_symbol[NoneType](name)
    if not symbol:
        raise ArenaError(Status.UNAVAILABLE, String("the library lacks the function ", name))
    var address = symbol.value()
    return Pointer(to=address).unsafe_bitcast[F]()[]
