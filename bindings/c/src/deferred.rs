//! Deferred calls: work that is left to an executor's queue, and how to wait for it.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arenas::{Call, Deferred, Error};

use crate::arena::{ArenaObject, device_arena_t};
use crate::border::{Answer, Refusal, cross, handle_out, needed};
use crate::call::{CallObject, Held, device_arena_call_t, insert_call, use_up_own};
use crate::exclusive::Exclusive;
use crate::executor::{
    ExecutorObject, device_arena_executor_t, device_arena_release_t, executor_of, executor_or_none,
};
use crate::library::Library;
use crate::owner::Owner;
use crate::status::device_arena_error_t;
use crate::status::device_arena_status_t::{self, DEVICE_ARENA_STATUS_DRIVER, DEVICE_ARENA_STATUS_PENDING};
use crate::table::{get, insert, object, remove};

/// What comes of a deferred call, once its work has passed. The arena is held until then, and not until this is freed.
pub type device_arena_deferred_t = u64;

/// Deferred work. It uses the call, which is its own as long as it runs, and answers a `device_arena_status_t`: 0 finishes
/// the call, and any other number abandons it and is what `device_arena_call_wait` answers; PENDING, and a number that is no
/// status, are DRIVER there, with a message that names them. It does not end the call itself, and publishes or frees its
/// outputs before it returns. What it publishes, or has to say of a failure, it hands on through `user_data`. It must not
/// unwind.
pub type device_arena_work_t =
    Option<unsafe extern "C" fn(call: device_arena_call_t, user_data: *mut c_void) -> i32>;

/// What work answered that is not 0.
type Answered = Arc<Mutex<Option<i32>>>;

pub(crate) struct DeferredObject {
    state: Exclusive<Waiting>,
    _executor: Arc<ExecutorObject>,
    _library: Arc<Library>,
}
object!(DeferredObject, Deferred);

struct Waiting {
    deferred: Deferred<()>,
    answered: Answered,
    /// Once it is known, so that everybody who asks is told.
    outcome: Option<Result<(), (device_arena_status_t, String)>>,
}

impl DeferredObject {
    pub(crate) fn new(deferred: Deferred<()>, executor: Arc<ExecutorObject>) -> Self {
        Self::of_work(deferred, Answered::default(), executor)
    }

    fn of_work(deferred: Deferred<()>, answered: Answered, executor: Arc<ExecutorObject>) -> Self {
        let waiting = Waiting { deferred, answered, outcome: None };
        let library = Arc::clone(&executor.library);
        Self { state: Exclusive::new("deferred result", waiting), _executor: executor, _library: library }
    }
}

impl Waiting {
    /// What came of it, or none where the time was up first.
    fn wait(&mut self, timeout: Duration) -> Answer<bool> {
        if self.outcome.is_none() {
            self.outcome = match self.deferred.wait_timeout(timeout) {
                Ok(Some(())) => Some(Ok(())),
                Ok(None) => return Ok(false),
                // The thread that would do the work is no judge of it.
                Err(error @ Error::WouldDeadlock { .. }) => return Err(error.into()),
                Err(error) => Some(Err(self.of_error(error))),
            };
        }
        match &self.outcome {
            Some(Err((status, message))) => Err(Refusal::Here(*status, message.clone().into())),
            _ => Ok(true),
        }
    }

    fn of_error(&self, error: Error) -> (device_arena_status_t, String) {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        match (answered, answered.and_then(device_arena_status_t::of_number)) {
            // Whoever waits takes PENDING for "not yet", and would wait for ever.
            (Some(_), Some(status)) => {
                let name = status.name().to_string_lossy();
                let is_final = status != DEVICE_ARENA_STATUS_PENDING;
                let status = if is_final { status } else { DEVICE_ARENA_STATUS_DRIVER };
                (status, format!("deferred work answered {name}"))
            }
            (Some(number), None) => (DEVICE_ARENA_STATUS_DRIVER, format!("deferred work answered {number}")),
            (None, _) => (error.status().into(), error.to_string()),
        }
    }
}

/// A caller's function, and what it is called with.
struct Work {
    function: unsafe extern "C" fn(device_arena_call_t, *mut c_void) -> i32,
    owner: Arc<Mutex<Option<Owner>>>,
    answered: Answered,
    executor: Arc<ExecutorObject>,
}

impl Work {
    fn run(self, call: &mut Call) -> arenas::Result<()> {
        // Dropped when the work is done, which tells the caller.
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let data = owner.as_ref().map_or(std::ptr::null_mut(), |owner| owner.data);
        let failed = |refusal: Refusal| match refusal {
            Refusal::Of(error) => error,
            Refusal::Here(_, message) => Error::Panicked { message: message.into_owned() },
        };
        let lent = Held::Lent(NonNull::from(call));
        let library = &self.executor.library;
        let handle = insert_call(lent, Some(Arc::clone(&self.executor)), library).map_err(failed)?;
        let object = get::<CallObject>(handle);
        // SAFETY: the function takes this pointer, by the contract of who deferred it.
        let number = unsafe { (self.function)(handle, data) };
        // Nobody uses the call any more when this is done, on whatever thread the handle is.
        if let Ok(object) = object {
            drop(object.state.withdraw());
        }
        let _ = remove::<CallObject>(handle);
        if number == 0 {
            return Ok(());
        }
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
        Err(Error::Panicked { message: format!("deferred work answered {number}") })
    }
}

/// The executor that is named, or the one that the arena was made for.
fn chosen(
    executor: device_arena_executor_t,
    own: Option<&Arc<ExecutorObject>>,
) -> Answer<Arc<ExecutorObject>> {
    let named = executor_or_none(executor)?;
    named
        .or_else(|| own.cloned())
        .ok_or_else(|| Refusal::invalid("executor is 0, and the arena was made for none"))
}

/// Runs `work` in the executor's order: on the host's worker; on a device at once, where it only queues. The arena is held
/// until all of it has passed. `executor` is 0 for the one that the arena was made for, and INVALID_ARGUMENT where it was
/// made for a library. CONTENDED as for `device_arena_call_begin`. `release`, which may be null, is called with `user_data`
/// when `work` has returned, on the same thread; after a failure neither is called.
///
/// # Safety
///
/// `work` and `release` take `user_data`, on any thread, and it is theirs until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_call_defer_work(
    deferred: Option<&mut MaybeUninit<device_arena_deferred_t>>,
    arena: device_arena_t,
    executor: device_arena_executor_t,
    work: device_arena_work_t,
    user_data: *mut c_void,
    release: device_arena_release_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("deferred", deferred)?;
        let function = work.ok_or_else(|| Refusal::invalid("work is null"))?;
        let object = get::<ArenaObject>(arena)?;
        let executor = chosen(executor, object.executor.as_ref())?;
        let owner = Arc::new(Mutex::new(Some(Owner { data: user_data, release })));
        let answered = Answered::default();
        let work = Work {
            function,
            owner: Arc::clone(&owner),
            answered: Arc::clone(&answered),
            executor: Arc::clone(&executor),
        };
        let deferred =
            executor.executor.defer(&object.arena, move |call| work.run(call)).map_err(|refused| {
                if let Some(owner) = owner.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    owner.forget();
                }
                Refusal::from(refused.error)
            })?;
        out.write(insert(DeferredObject::of_work(deferred, answered, executor))?);
        Ok(())
    })
}

/// Leaves a call to the work that is queued on the executor now: its arena is held until that has passed, and the call is
/// finished then. `executor` is 0 for the one that the call computes on, and INVALID_ARGUMENT where that is none. The call's
/// handle is dead from then on; after a failure the call is as it was.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_defer(
    deferred: Option<&mut MaybeUninit<device_arena_deferred_t>>,
    call: device_arena_call_t,
    executor: device_arena_executor_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("deferred", deferred)?;
        let executor = chosen(executor, get::<CallObject>(call)?.executor.as_ref())?;
        let deferred = use_up_own("defer", call, |call| {
            executor
                .executor
                .defer_call(call)
                .map_err(|refused| Box::new((refused.value, refused.error.into())))
        })?;
        out.write(insert(DeferredObject::new(deferred, executor))?);
        Ok(())
    })
}

/// Blocks until the work of a deferred call has passed, or for so many nanoseconds at most, UINT64_MAX for as long as it
/// takes, and answers what came of it: PENDING where the time was up first, and else what the work answered, DRIVER where that
/// is no status. It may be asked again. INVALID_ARGUMENT on the worker of the host's queue that is to do the work.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_wait(
    deferred: device_arena_deferred_t,
    nanoseconds: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let object = get::<DeferredObject>(deferred)?;
        let passed = object.state.with(|waiting| waiting.wait(Duration::from_nanos(nanoseconds)))?;
        if passed {
            return Ok(());
        }
        let message = format!("the deferred work has not passed after {nanoseconds} ns");
        Err(Refusal::Here(DEVICE_ARENA_STATUS_PENDING, message.into()))
    })
}

/// Whether the work of a deferred call has passed: 1 or 0. Never blocks.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_deferred_is_done(
    deferred: device_arena_deferred_t,
    done_out: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("done_out", done_out)?;
        let object = get::<DeferredObject>(deferred)?;
        let done =
            object.state.with(|waiting| Ok(waiting.outcome.is_some() || waiting.deferred.is_done()?))?;
        out.write(done.into());
        Ok(())
    })
}

/// Makes all work that is queued on the executor from now on wait for a deferred call, without the host.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_order_after(
    executor: device_arena_executor_t,
    deferred: device_arena_deferred_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let executor = executor_of(executor)?;
        let object = get::<DeferredObject>(deferred)?;
        object.state.with(|waiting| Ok(executor.executor.order_after(&waiting.deferred)?))
    })
}

/// Lets a deferred result go. Its work goes on, and holds the arena until it has passed.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_deferred_free(
    deferred: device_arena_deferred_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<DeferredObject>(deferred).map(drop))
}
