//! Copies of a view to an output, between arenas of any kinds.

use super::scopes::Chain;
use super::{Checked, Runner};
use crate::model::{Answer, Home, Kind, View};
use crate::program::Room;

impl Runner<'_> {
    /// Opens an output of a view's length, or of one more value, and copies the view to it.
    pub(super) fn copy(&mut self, call: u8, view: u8, fits: bool, chain: &mut dyn Chain) -> Checked {
        let Some(id) = self.model.pick_call(call, false) else { return Ok(()) };
        // Those that can be read more often than not.
        let fits_in = |it: &View| it.alive && it.call != id && self.model.stale(it.call).is_none();
        let current = crate::model::pick(self.model.views.iter().map(fits_in), view);
        let Some(at) = current.filter(|_| !view.is_multiple_of(8)).or_else(|| self.model.pick_view(view))
        else {
            return Ok(());
        };
        let model = self.model.views[at].clone();
        let (to, from) = (self.model.home_of(id), self.model.home_of(model.call));
        let Some(real) = self.views[at].clone() else { return Err(format!("view{at} is lost")) };
        let len = real.len() + usize::from(!fits);
        let Some(open) = self.open_output(id, model.of, len, Room::Plain, chain)? else { return Ok(()) };
        // The gates that opened for the room.
        self.pump()?;
        self.say(format_args!("output{open}.copy_from_view view{at}"));
        let expected = self.model.check_current(model.call).and_then(|()| {
            let (expected, actual) = (len, real.len());
            if fits { Ok(()) } else { Err(Answer::LengthMismatch { expected, actual }) }
        });
        let nothing = model.bytes.is_empty();
        let expected = match expected {
            Ok(()) if !nothing => self.model.check_read(model.call, 1),
            other => other,
        };
        if expected.is_ok() && !nothing {
            match (from, to) {
                (Home::Host, Home::Device { executor, .. }) | (Home::Device { executor, .. }, Home::Host) => {
                    self.before_wait(Some(executor));
                }
                (Home::Coherent { executor }, Home::Host) => self.before_wait(Some(executor)),
                (Home::Host, Home::Coherent { .. }) => self.quiesce(self.model.calls[id].arena)?,
                _ => {}
            }
        }
        let Some(output) = &mut self.opens[open] else { return Err(format!("output{open} is lost")) };
        let got = output.copy_from(&*real);
        if self.compare(expected, got)?.is_none() || nothing {
            return Ok(());
        }
        self.report.meet("copy");
        if let (Some(_), Some(reader)) = (from.executor(), to.executor()) {
            self.shared_with(id, Some(reader));
            self.shared_with(model.call, Some(reader));
            self.model.opens[open].by_device = true;
        }
        if let (Some(own), Some(reader)) = (from.executor(), to.executor())
            && own != reader
        {
            self.model.order_after_queue(reader, own);
            self.model.leave_reader(self.model.calls[model.call].arena, reader);
            self.report.meet("copy to another executor");
        }
        if let Kind::Fixed { bytes } = &mut self.model.opens[open].kind {
            bytes.clone_from(&model.bytes);
        }
        Ok(())
    }
}
