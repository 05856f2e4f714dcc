//! What a program runs on: the executors of one backend, and where their arenas are, by name.

use std::sync::Arc;

use device_arena::backend::{AnyBackend, Backend, Host, Vendor};
use device_arena::{Executor, Placement, Result};

use crate::lane::Lane;

/// A backend under test, and where its arenas are.
#[derive(Clone, Debug)]
pub struct Subject {
    name: String,
    backend: AnyBackend,
    /// None for the host, which has one kind of memory.
    placement: Option<Placement>,
    ordinals: u32,
    one_at_a_time: bool,
}

/// An executor, and for a device the way to its stream beside it.
pub(crate) struct Seat {
    pub(crate) executor: Executor,
    pub(crate) lane: Option<Lane>,
}

impl Subject {
    /// The host.
    #[must_use]
    pub fn host() -> Self {
        let (name, backend) = ("host".into(), AnyBackend::Host(Host));
        Self { name, backend, placement: None, ordinals: 1, one_at_a_time: false }
    }

    /// The devices of a backend, whose arenas are placed so.
    ///
    /// # Errors
    ///
    /// What the backend says of its devices and their streams.
    pub fn devices(name: impl Into<String>, backend: AnyBackend, placement: Placement) -> Result<Self> {
        let ordinals = u32::try_from(backend.devices()?.len()).unwrap_or(u32::MAX).max(1);
        let one_at_a_time = Lane::is_one_at_a_time(&backend)?;
        Ok(Self { name: name.into(), backend, placement: Some(placement), ordinals, one_at_a_time })
    }

    /// The name that test output carries.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where arenas are; none for the host.
    pub(crate) fn placement(&self) -> Option<Placement> {
        self.placement
    }

    pub(crate) fn is_device(&self) -> bool {
        self.placement.is_some()
    }

    /// Whether the driver runs one stream's host work at a time, so that one gate keeps all others from opening.
    pub fn is_one_at_a_time(&self) -> bool {
        self.one_at_a_time
    }

    /// The least alignment of an output in the executors' arenas, and a block's own.
    pub(crate) fn alignments(&self) -> (usize, usize) {
        (self.backend.output_alignment(), self.backend.block_alignment())
    }

    /// The `index`th executor: of the ordinals in turn, each with a stream of its own.
    pub(crate) fn executor(&self, index: usize) -> Result<Seat> {
        if !self.is_device() {
            return Ok(Seat { executor: Executor::on(self.backend.clone(), 0)?, lane: None });
        }
        let ordinal = u32::try_from(index).unwrap_or(0) % self.ordinals;
        let stream = Arc::new(self.backend.create_stream(ordinal)?);
        let raw = self.backend.raw_stream(&stream)?;
        let keep_alive = Box::new(Arc::clone(&stream));
        // SAFETY: the stream lives as long as the keep-alive.
        let executor = unsafe { Executor::adopt(self.backend.clone(), raw, keep_alive) }?;
        Ok(Seat { executor, lane: Some(Lane::new(self.backend.clone(), stream)) })
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

/// The host, and the devices of these vendors in either placement. Whether a vendor's backend is here, only the caller's
/// features say.
#[must_use]
pub fn candidates(vendors: &[(Vendor, Result<AnyBackend>)]) -> Vec<Candidate> {
    let mut all = vec![Candidate::Present(Subject::host())];
    for (vendor, backend) in vendors {
        for (suffix, placement) in [("", Placement::Device), (" host-coherent", Placement::HostCoherent)] {
            let name = format!("{vendor}{suffix}");
            let subject = backend.clone().and_then(|it| Subject::devices(name.as_str(), it, placement));
            all.push(match subject {
                Ok(subject) => Candidate::Present(subject),
                Err(error) => Candidate::Absent { name, reason: error.to_string() },
            });
        }
    }
    all
}
