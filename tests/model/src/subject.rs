//! What a program runs on: the executors of one backend, by name.

use std::fmt;
use std::sync::Arc;

use device_arena::{Executor, Result};

type Make = dyn Fn() -> Result<Executor> + Send + Sync;

/// A backend under test.
#[derive(Clone)]
pub struct Subject {
    name: String,
    executor: Arc<Make>,
}

impl Subject {
    /// A backend whose executors `executor` makes, one with a stream of its own each time.
    pub fn new(
        name: impl Into<String>,
        executor: impl Fn() -> Result<Executor> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), executor: Arc::new(executor) }
    }

    /// The host.
    #[must_use]
    pub fn host() -> Self {
        Self::new("host", Executor::host)
    }

    /// The name that test output carries.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One more executor.
    ///
    /// # Errors
    ///
    /// What the backend says.
    pub fn executor(&self) -> Result<Executor> {
        (self.executor)()
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A backend that tests would run on, if it is here.
#[derive(Clone, Debug)]
pub enum Candidate {
    /// It is.
    Present(Subject),
    /// It is not.
    Absent {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
}

/// Every backend that the design names, the host first. A lane for one more adds its line here.
#[must_use]
pub fn candidates() -> Vec<Candidate> {
    let absent = |name: &str| Candidate::Absent { name: name.into(), reason: "not in this build".into() };
    vec![Candidate::Present(Subject::host()), absent("cuda"), absent("rocm")]
}
