//! Copies of a whole arena into another of the same plan.

use super::Run;
use crate::error::Result;

impl Run {
    /// Copies all bytes into the run of another arena whose plan is the same; returns how many. From one device to another
    /// it is queued in the twin's stream behind this one's work, and this one's stream waits for it; where one end is the
    /// host's, it has passed when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::AnotherPlan`](crate::Error::AnotherPlan); [`Error::Capturing`](crate::Error::Capturing) within a capture;
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn copy_into(&mut self, twin: &mut Run) -> Result<u64> {
        self.shared.plan.check_same("copy_into", &twin.shared.plan)?;
        self.room.copy_all_into("copy_into", &mut twin.room)?;
        Ok(self.shared.plan.total())
    }
}
