//! Threads that share one arena: whatever they do to each other, a guard shows the bytes of one output and of no
//! other, and what is refused is refused for a reason that the design names.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use device_arena::{Arena, ArenaOptions, Deferred, Error, Executor, Export, Result, Scrub, View};

const THREADS: u64 = 4;
const ROUNDS: u64 = 4000;

/// The first value of an output says what its others are.
fn value(token: u64, index: usize) -> u64 {
    token.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (index as u64).wrapping_mul(0xD1B5_4A32_D192_ED03)
}

/// The length of a token's outputs: from nothing to more than a block.
fn len(token: u64) -> usize {
    (token * 7919 % 1500) as usize
}

/// A view and the token of its values.
#[derive(Clone)]
struct Marked {
    view: View<u64>,
    token: u64,
}

struct Shared {
    executor: Executor,
    arena: Arena,
    tokens: AtomicU64,
    /// What anybody has published lately.
    views: Mutex<Vec<Marked>>,
    reads: AtomicU64,
    refusals: AtomicU64,
}

impl Shared {
    fn new(options: ArenaOptions) -> Result<Self> {
        let executor = Executor::host()?;
        let arena = options.build(&executor)?;
        let (tokens, reads, refusals) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { executor, arena, tokens, views: Mutex::default(), reads, refusals })
    }

    fn token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    fn keep(&self, marked: Marked) {
        let mut views = self.views.lock().unwrap();
        if views.len() > 16 {
            views.remove(0);
        }
        views.push(marked);
    }

    fn pick(&self, round: u64) -> Option<Marked> {
        let views = self.views.lock().unwrap();
        // The newest are current more often than not.
        views.iter().rev().nth(round as usize % 3).cloned()
    }

    /// A refusal that another thread's use explains, or a failure of the test.
    fn explained(&self, error: &Error) {
        let explained = matches!(
            error,
            Error::Stale { .. }
                | Error::Pending { .. }
                | Error::Contended { .. }
                | Error::TooManyReaders { .. }
        );
        assert!(explained, "{error:?}");
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self, marked: &Marked) {
        match marked.view.read() {
            Ok(guard) => self.check(&guard, marked.token),
            Err(error) => self.explained(&error),
        }
    }

    fn check(&self, values: &[u64], token: u64) {
        assert_eq!(values.len(), len(token));
        for (index, got) in values.iter().enumerate() {
            assert_eq!(*got, value(token, index), "value {index} of token {token}");
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
    }
}

/// Two outputs, one of them a writer that grows beside the other.
fn write(call: &device_arena::Call, first: u64, second: u64) -> Result<(Marked, Marked)> {
    let mut words = call.writer::<u64>()?;
    let mut output = call.output::<u64>(len(first))?;
    for (index, place) in output.as_mut_slice()?.iter_mut().enumerate() {
        *place = value(first, index);
    }
    words.extend((0..len(second)).map(|index| value(second, index)).filter(|_| true))?;
    let (output, words) = (output.publish(), words.publish());
    Ok((Marked { view: output, token: first }, Marked { view: words, token: second }))
}

/// What one thread does; every path ends without a hold.
fn hammer(shared: &Shared, thread: u64) -> Result<()> {
    let mut kept: Option<(Export<u64>, u64)> = None;
    let mut soon: Option<Deferred<(Marked, Marked)>> = None;
    for round in 0..ROUNDS {
        let (first, second) = (shared.token(), shared.token());
        match (value(thread, 1) ^ value(round, 2)) >> 59 {
            0..=11 => {
                let wait = Duration::from_micros((round % 3) * 50);
                match shared.executor.begin_timeout(&shared.arena, wait) {
                    Ok(call) => {
                        let (a, b) = write(&call, first, second)?;
                        if round % 7 == 0 {
                            drop(call);
                        } else {
                            call.finish()?;
                        }
                        for marked in [a, b] {
                            shared.read(&marked);
                            shared.keep(marked);
                        }
                    }
                    Err(error) => shared.explained(&error),
                }
            }
            12..=14 => match shared.executor.defer(&shared.arena, move |call| write(call, first, second)) {
                Ok(deferred) => soon = Some(deferred),
                Err(refused) => shared.explained(&refused.error),
            },
            15..=22 => {
                if let Some((export, token)) = kept.take() {
                    shared.check(&export, token);
                }
                if let Some(deferred) = soon.take() {
                    let (a, b) = deferred.wait()?;
                    shared.keep(a);
                    shared.keep(b);
                }
            }
            23 if kept.is_none() => {
                if let Some(marked) = shared.pick(round) {
                    match marked.view.export() {
                        Ok(export) => kept = Some((export, marked.token)),
                        Err(error) => shared.explained(&error),
                    }
                }
            }
            24 if round % 4 == 0 => {
                if let Err(error) = shared.arena.trim() {
                    shared.explained(&error);
                }
            }
            _ => {
                if let Some(marked) = shared.pick(round) {
                    shared.read(&marked);
                }
            }
        }
    }
    if let Some((export, token)) = kept {
        shared.check(&export, token);
    }
    Ok(())
}

#[test]
fn guards_show_one_output_whatever_other_threads_do() {
    let options = ArenaOptions::new().first_capacity(4096);
    for options in [options, options.scrub(Scrub::Poison(0xA5))] {
        let shared = Shared::new(options).unwrap();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn({
                        let shared = &shared;
                        move || hammer(shared, thread)
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
        let (reads, refusals) = (shared.reads.into_inner(), shared.refusals.into_inner());
        println!("{reads} reads, {refusals} refusals, {:?}", shared.arena.stats());
        assert!(reads > 0 && refusals > 0, "{reads} reads and {refusals} refusals: the threads never met");
        // Whatever they left is over by now.
        shared.executor.synchronize().unwrap();
        shared.arena.close().map_err(|refused| refused.error).unwrap();
    }
}

#[test]
fn outputs_of_one_call_are_filled_on_many_threads() {
    let arena = ArenaOptions::new().first_capacity(4096).build_host().unwrap();
    for round in 0..40 {
        let call = arena.begin().unwrap();
        let writers: Vec<_> = (0..THREADS).map(|_| call.writer::<u64>().unwrap()).collect();
        let views: Vec<_> = std::thread::scope(|scope| {
            let fill = |(thread, mut writer): (u64, device_arena::Writer<u64>)| {
                move || {
                    let token = 1 + round * THREADS + thread;
                    (0..len(token)).try_for_each(|index| writer.push(value(token, index))).unwrap();
                    (writer.publish(), token)
                }
            };
            let threads: Vec<_> = (0..).zip(writers).map(|writer| scope.spawn(fill(writer))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        call.finish().unwrap();
        for (view, token) in views {
            let expected: Vec<_> = (0..len(token)).map(|index| value(token, index)).collect();
            assert_eq!(view.to_vec().unwrap(), expected);
        }
    }
}
