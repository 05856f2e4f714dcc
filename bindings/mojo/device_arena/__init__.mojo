"""Arenas for the outputs of inference calls, in host, CUDA or ROCm memory."""

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
