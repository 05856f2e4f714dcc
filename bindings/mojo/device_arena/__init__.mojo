"""Arenas for the outputs of inference calls, in host, CUDA or ROCm memory."""

from .arena import Arena
from .call import Call
from .description import ArenaDescription, ArenaOptions, ArenaStats, Placement, Residency
from .executor import DeviceInfo, Executor, Vendor
from .library import Library
from .output import Output
from .pointer import MemoryKind
from .status import ArenaError, Status
from .tape import TapeView
from .view import DeviceGuard, ReadGuard, View
