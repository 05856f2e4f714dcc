//! Deferred work: what is queued where, and what has passed.

use std::collections::BTreeSet;

use super::answer::Answer;

/// What a place in a queue is taken by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A closure, which waits at a gate.
    Closure { early: bool },
    /// A call that was deferred as it was.
    Call,
    /// The wait for other work.
    Wait { on: usize },
}

/// Work in the queue of an executor.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) executor: usize,
    pub(crate) task: Task,
    /// The call that it holds; none for a wait.
    pub(crate) call: Option<usize>,
    /// Its gate is open.
    pub(crate) released: bool,
    pub(crate) started: bool,
    pub(crate) passed: bool,
    /// Its handle is there.
    pub(crate) alive: bool,
    /// What waiting for it answers: a number, or the refusal.
    pub(crate) outcome: Result<u64, Answer>,
    /// The outcome was given away.
    pub(crate) taken: bool,
    /// Its future was polled in vain.
    pub(crate) polled: bool,
}

/// What happens to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It came to the head of its queue.
    Started(usize),
    /// It is over, and so is its hold.
    Passed(usize),
}

/// All queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Works {
    pub(crate) list: Vec<Work>,
    executors: usize,
}

impl Works {
    pub(crate) fn add_executor(&mut self) {
        self.executors += 1;
    }

    pub(crate) fn push(&mut self, executor: usize, task: Task, call: Option<usize>) -> usize {
        let released = !matches!(task, Task::Closure { .. });
        self.list.push(Work {
            executor,
            alive: call.is_some(),
            task,
            call,
            released,
            started: false,
            passed: false,
            outcome: Ok(0),
            taken: false,
            polled: false,
        });
        self.list.len() - 1
    }

    /// All that must pass so that `work` can, itself included, in an order in which it can pass.
    pub(crate) fn up_to(&self, work: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        let mut left = vec![work];
        while let Some(work) = left.pop() {
            if self.list[work].passed || !all.insert(work) {
                continue;
            }
            if let Task::Wait { on } = self.list[work].task {
                left.push(on);
            }
            let executor = self.list[work].executor;
            left.extend((0..work).filter(|earlier| self.list[*earlier].executor == executor));
        }
        all
    }

    /// All that must pass so that an executor's queue is empty.
    pub(crate) fn all_of(&self, executor: usize) -> BTreeSet<usize> {
        let last = (0..self.list.len()).rev().find(|work| self.list[*work].executor == executor);
        last.map(|last| self.up_to(last)).unwrap_or_default()
    }

    /// The last work in an executor's queue, unless all has passed.
    pub(crate) fn last_of(&self, executor: usize) -> Option<usize> {
        (0..self.list.len())
            .rev()
            .find(|work| self.list[*work].executor == executor && !self.list[*work].passed)
    }

    /// Whether everything that is queued has passed.
    pub(crate) fn is_idle(&self, executor: usize) -> bool {
        self.list.iter().all(|work| work.executor != executor || work.passed)
    }

    /// What happens next, if anything does before another gate opens.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        for executor in 0..self.executors {
            let of = |work: &&mut Work| work.executor == executor && !work.passed;
            let Some(head) = self.list.iter_mut().position(|mut work| of(&mut work)) else { continue };
            let waits = match self.list[head].task {
                Task::Wait { on } => !self.list[on].passed,
                _ => !self.list[head].released,
            };
            let work = &mut self.list[head];
            if !work.started {
                work.started = true;
                return Some(Event::Started(head));
            }
            if !waits {
                work.passed = true;
                return Some(Event::Passed(head));
            }
        }
        None
    }
}
