//! Arenas: the memory of one call's outputs.

use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::{Arena, ArenaOptions, Growth, Placement, Scrub};

use crate::border::{Answer, Refusal, cross, handle_out, needed, tell};
use crate::description::{device_arena_description_t, device_arena_stats_t};
use crate::executor::{ExecutorObject, executor_of};
use crate::library::{Library, library_of};
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{Kind, get, insert, object, remove};

/// The memory that one call's outputs land in. Each call rewinds it, so that a steady loop allocates once.
pub type device_arena_t = u64;

/// A `device_arena_library_t`, for host pages and calls on the calling thread; or a `device_arena_executor_t`, for memory
/// where it computes.
pub type device_arena_source_t = u64;

pub(crate) struct ArenaObject {
    pub(crate) arena: Arena,
    pub(crate) executor: Option<Arc<ExecutorObject>>,
    pub(crate) library: Arc<Library>,
}
object!(ArenaObject, Arena);

/// The executor of a source, or none for a library, and what keeps the drivers.
pub(crate) fn source_of(
    source: device_arena_source_t,
) -> Answer<(Option<Arc<ExecutorObject>>, Arc<Library>)> {
    match Kind::of(source) {
        Some(Kind::Library) => Ok((None, library_of(source)?)),
        Some(Kind::Executor) => {
            let executor = executor_of(source)?;
            let library = Arc::clone(&executor.library);
            Ok((Some(executor), library))
        }
        Some(kind) => Err(Refusal::invalid(format!(
            "the handle is of {}, where one of a library or an executor is needed",
            kind.one()
        ))),
        None => Err(Refusal::invalid(format!(
            "the handle of a library or an executor is needed, and {source:#x} is none"
        ))),
    }
}

/// Where an arena's blocks are.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum device_arena_placement_t {
    /// Where the executor computes.
    DEVICE_ARENA_PLACEMENT_DEFAULT = 0,
    /// Host pages, for calls on the host.
    DEVICE_ARENA_PLACEMENT_HOST = 1,
    /// Memory of the executor's device.
    DEVICE_ARENA_PLACEMENT_DEVICE = 2,
    /// Pinned host pages that the executor's device reaches too, at the same address.
    DEVICE_ARENA_PLACEMENT_HOST_COHERENT = 3,
}

/// A placement by its number, which C may have made up.
pub(crate) fn placement_of(number: i32) -> Answer<Option<Placement>> {
    use device_arena_placement_t::*;
    match number {
        _ if number == DEVICE_ARENA_PLACEMENT_DEFAULT as i32 => Ok(None),
        _ if number == DEVICE_ARENA_PLACEMENT_HOST as i32 => Ok(Some(Placement::Host)),
        _ if number == DEVICE_ARENA_PLACEMENT_DEVICE as i32 => Ok(Some(Placement::Device)),
        _ if number == DEVICE_ARENA_PLACEMENT_HOST_COHERENT as i32 => Ok(Some(Placement::HostCoherent)),
        _ => Err(Refusal::invalid(format!("there is no placement of number {number}"))),
    }
}

/// Checks the placement that is asked of a library.
pub(crate) fn of_library(placement: Option<Placement>) -> Answer {
    match placement {
        None | Some(Placement::Host) => Ok(()),
        // Nothing would pin it for anybody.
        Some(_) => Err(Refusal::invalid("a library has the host's pages alone")),
    }
}

/// The choices for a new arena, in bytes. All zeros are the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_options_t {
    /// The least alignment of every output: a power of two, at most 4096 on the host and 256 on a device. 0: the backend's
    /// own, 64 on the host and 256 on a device.
    pub alignment: u64,
    /// The least size of the first block. 0: 64 KiB.
    pub first_capacity: u64,
    /// The most bytes that the arena may have reserved at any instant. 0: no limit.
    pub byte_limit: u64,
    /// The most bytes by which a block is larger than the one before. 0: 1 GiB.
    pub max_step: u64,
    /// A `device_arena_placement_t`.
    pub placement: i32,
    /// The byte of `has_scrub`.
    pub scrub: u32,
    /// Whether a rewind fills what the call before wrote with the byte `scrub`: 0 or 1.
    pub has_scrub: u32,
    /// Zero.
    pub reserved: u32,
}

fn options_of(options: &device_arena_options_t) -> Answer<ArenaOptions> {
    let mut chosen = ArenaOptions::new();
    if options.alignment != 0 {
        chosen = chosen.alignment(raw::len::<u8>("alignment", options.alignment)?);
    }
    if options.first_capacity != 0 {
        chosen = chosen.first_capacity(raw::len::<u8>("first_capacity", options.first_capacity)?);
    }
    if options.byte_limit != 0 {
        chosen = chosen.byte_limit(usize::try_from(options.byte_limit).unwrap_or(usize::MAX));
    }
    if options.max_step != 0 {
        let max_step = usize::try_from(options.max_step).unwrap_or(usize::MAX);
        chosen = chosen.growth(Growth::Geometric { max_step });
    }
    if let Some(placement) = placement_of(options.placement)? {
        chosen = chosen.placement(placement);
    }
    match (options.has_scrub, u8::try_from(options.scrub)) {
        (0, _) => {}
        (_, Ok(0)) => chosen = chosen.scrub(Scrub::Zero),
        (_, Ok(value)) => chosen = chosen.scrub(Scrub::Poison(value)),
        (_, Err(_)) => return Err(Refusal::invalid(format!("scrub is {}, which is no byte", options.scrub))),
    }
    Ok(chosen)
}

fn init(
    out: Option<&mut MaybeUninit<device_arena_t>>,
    source: device_arena_source_t,
    make: impl FnOnce(Option<&ExecutorObject>) -> Answer<Arena>,
) -> Answer {
    let out = handle_out("arena", out)?;
    let (executor, library) = source_of(source)?;
    let arena = make(executor.as_deref())?;
    out.write(insert(ArenaObject { arena, executor, library })?);
    Ok(())
}

/// Makes an arena: for a library, of host pages for calls on the calling thread; for an executor, of memory where it
/// computes. Nothing is allocated yet.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_init(
    arena: Option<&mut MaybeUninit<device_arena_t>>,
    source: device_arena_source_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        init(arena, source, |executor| {
            Ok(executor.map_or_else(Arena::host, |object| Arena::new(&object.executor)))
        })
    })
}

/// Makes an arena as `device_arena_init` does, with choices. Null stands for the defaults. INVALID_ARGUMENT for choices that
/// can't be had, and for a library any placement but the host's.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_init_with_options(
    arena: Option<&mut MaybeUninit<device_arena_t>>,
    source: device_arena_source_t,
    options: Option<&device_arena_options_t>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        init(arena, source, |executor| {
            let placement = options.map_or(Ok(None), |options| placement_of(options.placement))?;
            let options = options.map_or_else(|| Ok(ArenaOptions::new()), options_of)?;
            Ok(match executor {
                Some(object) => options.build(&object.executor)?,
                None => {
                    of_library(placement)?;
                    options.build_host()?
                }
            })
        })
    })
}

/// Frees an arena: its views are stale from then on. A call, a guard or a tensor that is alive then goes on, and the last of
/// them frees the blocks. It waits for what a deferred call has queued on a device, and not for work on the host's worker,
/// which goes on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_free(
    arena: device_arena_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<ArenaObject>(arena).map(drop))
}

/// Where the arena's outputs are.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_describe(
    arena: device_arena_t,
    description_out: Option<&mut MaybeUninit<device_arena_description_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("description_out", description_out)?;
        out.write(get::<ArenaObject>(arena)?.arena.describe().into());
        Ok(())
    })
}

/// What the arena has done so far.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_stats(
    arena: device_arena_t,
    stats_out: Option<&mut MaybeUninit<device_arena_stats_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("stats_out", stats_out)?;
        let object = get::<ArenaObject>(arena)?;
        out.write(device_arena_stats_t::new(&object.arena.stats(), object.arena.generation()));
        Ok(())
    })
}

/// Makes sure that the next call can take so many bytes without asking the driver. Views of the last call stay current.
/// CONTENDED while somebody holds the arena.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_reserve(
    arena: device_arena_t,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || Ok(get::<ArenaObject>(arena)?.arena.reserve(raw::len::<u8>("bytes", bytes)?)?))
}

/// Gives every block back to the driver and makes every view stale. `freed_out`, which may be null, takes the bytes that
/// were freed. CONTENDED while somebody holds the arena.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_trim(
    arena: device_arena_t,
    freed_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        tell(freed_out, get::<ArenaObject>(arena)?.arena.trim()? as u64);
        Ok(())
    })
}
