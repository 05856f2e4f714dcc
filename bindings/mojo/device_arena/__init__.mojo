"""Arenas for the outputs of inference calls, in host, CUDA or ROCm memory.

```mojo
from device_arena import Arena, Executor, Library

def main() raises:
    var library = Library()  # what DEVICE_ARENA_LIBRARY names
    var executor = Executor.for_host(library)
    var arena = Arena(executor)  # nothing is allocated yet
    var call = executor.begin(arena)  # rewinds, or raises CONTENDED
    var rows = call.output[DType.float32](4)
    rows.fill(1.5)
    var view = rows^.publish()
    call^.finish()
    print(view.to_list()[3])
```
"""

from .arena import Arena
from .call import Call
from .deferred import Deferred, DeferredWork, Work, defer
from .description import ArenaDescription, ArenaOptions, ArenaStats, Placement, Residency
from .executor import DeviceInfo, Executor
from .library import Library
from .output import Output
from .plan import MemoryPlan, Slot
from .planned import PlannedArena, PlannedView
from .pointer import AllocationOrigin, MemoryKind, PointerInfo, classify, classify_range
from .run import Copy, Run
from .scratch import Scratch
from .stage import StagedTape
from .status import ArenaError, Status
from .tape import TapeView
from .vendor import Vendor
from .view import DeviceGuard, ReadGuard, View
from .writer import PublishedTape, TapeOutput, Writer
