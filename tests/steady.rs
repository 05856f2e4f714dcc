//! A steady call makes no system call and no heap allocation, on the host: not few, none.
#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use device_arena::{Arena, Error, Result};

/// Counts this thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

fn count() {
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(address, layout) }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(address, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A call that uses every kind of output, scratch, a guard, and meets two refusals.
fn steady_call(arena: &Arena, destination: &mut [u64]) -> Result<()> {
    let mut call = arena.begin()?;
    let rows = call.output_from_fn(1000, |i| i as f32)?.publish();
    let mut words = call.writer::<u32>()?;
    words.extend(0..500)?;
    let mut tape = call.tape_output()?;
    for item in [&b"one"[..], b"", b"three"] {
        tape.push(item)?;
    }
    let sums = call.scratch(|scope| {
        let terms = scope.take::<u64>(64)?;
        terms.fill(2);
        let sum = terms.iter().sum();
        Ok::<_, Error>(scope.call().output_from_slice(&[sum; 16])?.publish())
    })?;
    let (words, tape) = (words.publish(), tape.publish());
    assert!(arena.begin().is_err() && rows.read().is_err());
    call.finish()?;
    assert_eq!(rows.read()?[999], 999.0);
    assert_eq!(words.slice(100..)?.read()?.len(), 400);
    assert_eq!(tape.read()?.tape().get(2)?, b"three");
    sums.copy_to(destination)
}

fn warm_arena() -> Result<Arena> {
    let arena = Arena::host();
    // The first call makes the block, or a chain; the second has one that fits.
    for _ in 0..2 {
        steady_call(&arena, &mut [0; 16])?;
    }
    Ok(arena)
}

#[test]
fn a_steady_call_allocates_nothing_on_the_heap() {
    let arena = warm_arena().unwrap();
    let before = (allocations(), arena.stats().allocations);
    for _ in 0..100 {
        steady_call(&arena, &mut [0; 16]).unwrap();
    }
    assert_eq!((allocations(), arena.stats().allocations), before);
    drop(vec![0u8; 100]);
    assert_eq!(allocations(), before.0 + 2, "the counter counts");
}

/// Runs `work` in a child process that may only exit: any system call kills it. Answers the child's status, or
/// none where the system has no such mode.
fn without_system_calls(work: impl FnOnce() -> bool) -> Option<libc::c_int> {
    const UNSUPPORTED: libc::c_long = 77;
    // SAFETY: the child runs `work` alone, and leaves by a bare exit: it touches no lock that another thread of the
    // parent could have held, since what it runs neither allocates nor prints.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "fork");
        if child == 0 {
            if libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) != 0 {
                libc::syscall(libc::SYS_exit, UNSUPPORTED);
            }
            let passed = work();
            // The bare call: what the C library's exit does besides is not allowed here.
            libc::syscall(libc::SYS_exit, libc::c_long::from(!passed));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        let unsupported =
            libc::WIFEXITED(status) && libc::c_long::from(libc::WEXITSTATUS(status)) == UNSUPPORTED;
        if unsupported { None } else { Some(status) }
    }
}

#[test]
fn a_steady_call_makes_no_system_call() {
    let arena = warm_arena().unwrap();
    let mut destination = [0; 16];
    let steady = || (0..100).all(|_| steady_call(&arena, &mut destination).is_ok());
    let Some(status) = without_system_calls(steady) else {
        println!("skipped: this system has no strict seccomp mode");
        return;
    };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");
    // A call that outgrows its block asks the system for another, and dies of it.
    let growing = || arena.begin().and_then(|call| call.output::<u8>(64 << 20).map(drop)).is_ok();
    let status = without_system_calls(growing).unwrap();
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL, "status {status:#x}");
}
