//! Calls: the exclusive use of an arena.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use arenas::Call;

use crate::arena::{ArenaObject, device_arena_t};
use crate::border::{Answer, Refusal, cross, handle_out};
use crate::exclusive::{Back, Exclusive};
use crate::executor::{ExecutorObject, device_arena_executor_t, executor_or_none};
use crate::library::Library;
use crate::output::{OutputObject, device_arena_output_t};
use crate::raw;
use crate::scratch::Scopes;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, use_up};

/// The exclusive use of an arena, from its begin to its end. It is used by one thread at a time.
pub type device_arena_call_t = u64;

pub(crate) struct CallObject {
    pub(crate) state: Exclusive<CallState>,
    pub(crate) executor: Option<Arc<ExecutorObject>>,
    pub(crate) library: Arc<Library>,
}
object!(CallObject, Call);

/// A call, and what is open in it.
pub(crate) struct CallState {
    call: Held,
    pub(crate) scopes: Scopes,
}

/// Whose call it is.
pub(crate) enum Held {
    /// The handle's.
    Own(Call),
    /// That of deferred work, as long as the work runs.
    Lent(NonNull<Call>),
}

// SAFETY: a call may move to another thread, and so may the loan of one: whoever lends it waits for the last user.
unsafe impl Send for Held {}

impl CallState {
    pub(crate) fn new(call: Held) -> Self {
        Self { call, scopes: Scopes::default() }
    }

    pub(crate) fn call(&mut self) -> &mut Call {
        self.parts().0
    }

    pub(crate) fn parts(&mut self) -> (&mut Call, &mut Scopes) {
        let call = match &mut self.call {
            Held::Own(call) => call,
            // SAFETY: deferred work lends its call until it has withdrawn it, and touches it in no other way meanwhile; the
            // borrow of this state is exclusive.
            Held::Lent(call) => unsafe { call.as_mut() },
        };
        (call, &mut self.scopes)
    }
}

/// Uses up the call of a handle, which is dead from then on; what `work` refuses it gives back.
pub(crate) fn use_up_own<R>(
    operation: &'static str,
    handle: device_arena_call_t,
    work: impl FnOnce(Call) -> Result<R, Back<Call>>,
) -> Answer<R> {
    let take = |CallState { call, scopes }: CallState| match call {
        Held::Own(call) => {
            let whole = |call| CallState { call: Held::Own(call), scopes };
            work(call).map_err(|back| Box::new((whole(back.0), back.1)))
        }
        Held::Lent(_) => {
            let message = format!("{operation}: the call is deferred work's, and ends with it");
            Err(Box::new((CallState { call, scopes }, Refusal::invalid(message))))
        }
    };
    let (result, _) = use_up::<CallObject, _>(handle, |object| object.state.use_up(take))?;
    Ok(result)
}

fn begin(
    out: Option<&mut MaybeUninit<device_arena_call_t>>,
    arena: device_arena_t,
    executor: device_arena_executor_t,
    timeout: Option<Duration>,
) -> Answer {
    let out = handle_out("call", out)?;
    let object = get::<ArenaObject>(arena)?;
    let executor = executor_or_none(executor)?;
    let call = match (&executor, timeout) {
        (Some(chosen), None) => chosen.executor.begin(&object.arena)?,
        (Some(chosen), Some(timeout)) => chosen.executor.begin_timeout(&object.arena, timeout)?,
        (None, None) => object.arena.begin()?,
        (None, Some(timeout)) => object.arena.begin_timeout(timeout)?,
    };
    let executor = executor.or_else(|| object.executor.clone());
    out.write(insert_call(Held::Own(call), executor, &object.library)?);
    Ok(())
}

/// Makes a handle for a call.
pub(crate) fn insert_call(
    call: Held,
    executor: Option<Arc<ExecutorObject>>,
    library: &Arc<Library>,
) -> Answer<device_arena_call_t> {
    let state = Exclusive::new("call", CallState::new(call));
    insert(CallObject { state, executor, library: Arc::clone(library) })
}

/// Begins a call: rewinds the arena, so that every view of the call before is stale. `executor` says where it computes; 0 for
/// where the arena was made for. CONTENDED while the arena is held: by a call, by an output that is neither published nor
/// freed, by deferred work, by a guard or by a tensor of DLPack. INVALID_ARGUMENT for the arena of another executor's device.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_begin(
    call: Option<&mut MaybeUninit<device_arena_call_t>>,
    arena: device_arena_t,
    executor: device_arena_executor_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || begin(call, arena, executor, None))
}

/// Begins a call as `device_arena_call_begin` does, and waits for the arena to be free for so many nanoseconds at most:
/// CONTENDED where it was held all that time. INVALID_ARGUMENT within deferred work on the host's worker for an arena that
/// this work holds, or work that is queued behind it: it would wait for itself.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_begin_timeout(
    call: Option<&mut MaybeUninit<device_arena_call_t>>,
    arena: device_arena_t,
    executor: device_arena_executor_t,
    nanoseconds: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || begin(call, arena, executor, Some(Duration::from_nanos(nanoseconds))))
}

/// Room for so many bytes, aligned to the arena's alignment. It shows what it held before. 0 bytes are room for none, and
/// allocate nothing. OUT_OF_MEMORY, or OVER_LIMIT for the arena's own limits; the call goes on then.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_output(
    output: Option<&mut MaybeUninit<device_arena_output_t>>,
    call: device_arena_call_t,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("output", output)?;
        let object = get::<CallObject>(call)?;
        let bytes = raw::len::<u8>("bytes", bytes)?;
        let output = object.state.with(|state| Ok(state.call().output::<u8>(bytes)?))?;
        let executor = object.executor.clone();
        out.write(insert(OutputObject::new(output, executor, &object.library))?);
        Ok(())
    })
}

/// Ends a call: its published views can be read. The handle is dead from then on. It neither waits nor calls the driver: an
/// error of queued work surfaces at the first wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_finish(
    call: device_arena_call_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || Ok(use_up_own("finish", call, Ok)?.finish()?))
}

/// Ends a call without a result: its views are stale at once. The handle is dead from then on. What fails after a begin ends
/// its call by this, and frees the outputs that it has not published: either holds the arena for good if it is left open.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_abandon(
    call: device_arena_call_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || use_up_own("abandon", call, Ok).map(drop))
}
