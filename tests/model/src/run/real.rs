//! Outputs, views and readers of the crate, whatever their type is.

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use device_arena::{
    ArenaDescription, Call, Error, Executor, Export, Output, PublishedTape, ReadGuard, Result, TapeOutput,
    View, Writer,
};

use crate::lane::Lane;
use crate::program::{Room, Type, Write};
use crate::value::{Value, bytes_of, pattern, values, with_type};

/// The payload of every panic that a program asks for.
#[derive(Debug)]
pub(super) struct Scripted;

/// Panics without a word on standard error.
pub(super) fn scripted_panic() -> ! {
    resume_unwind(Box::new(Scripted))
}

/// Runs `work`, which may panic as the program asks: `None` then.
pub(super) fn until_panic<R>(work: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(answer) => Some(answer),
        Err(payload) if payload.is::<Scripted>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `work`, on another thread perhaps.
pub(super) fn on_thread<R: Send>(elsewhere: bool, work: impl FnOnce() -> R + Send) -> R {
    if !elsewhere {
        return work();
    }
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(answer) => answer,
        Err(payload) => resume_unwind(payload),
    })
}

/// What publishing makes.
pub(super) enum Published {
    View(Arc<dyn AnyView>),
    Tape(Arc<PublishedTape>),
}

/// An open output.
pub(super) trait AnyOpen: Send + Debug {
    fn address(&self) -> usize;
    /// Its address, of memory that is a device's.
    fn device_address(&mut self) -> Result<usize> {
        Ok(0)
    }
    /// Queues a fill in the stream of its executor.
    fn fill(&mut self, _lane: &Lane, _token: u64) -> Result<()> {
        Ok(())
    }
    /// Copies a view of the same type.
    fn copy_from(&mut self, _view: &dyn AnyView) -> Result<()> {
        Ok(())
    }
    /// The room that it has, in bytes; of a tape, what is written.
    fn room(&self) -> usize;
    /// Its bytes as they are now; of a tape, nothing.
    fn bytes(&self) -> Result<Vec<u8>>;
    /// Values, or finished items.
    fn len(&self) -> usize;
    /// Writes. `Ok(None)` where the program's own panic cut it short.
    fn write(&mut self, what: Write, token: u64) -> Result<Option<usize>>;
    fn publish(self: Box<Self>) -> Published;
    fn publish_prefix(self: Box<Self>, len: usize) -> Result<Published, (Error, Box<dyn AnyOpen>)>;
}

impl<T: Value> AnyOpen for Output<T> {
    fn address(&self) -> usize {
        self.as_slice().map_or(0, |slice| slice.as_ptr().addr())
    }

    fn device_address(&mut self) -> Result<usize> {
        Ok(self.device_ptr()?.addr())
    }

    fn fill(&mut self, lane: &Lane, token: u64) -> Result<()> {
        super::device::fill(self, lane, token)
    }

    fn copy_from(&mut self, view: &dyn AnyView) -> Result<()> {
        match view.as_any().downcast_ref::<View<T>>() {
            Some(view) => self.copy_from_view(view),
            None => unreachable!("a view of another type"),
        }
    }

    fn room(&self) -> usize {
        Output::len(self) * size_of::<T>()
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(bytes_of(self.as_slice()?).to_vec())
    }

    fn len(&self) -> usize {
        Output::len(self)
    }

    fn write(&mut self, what: Write, token: u64) -> Result<Option<usize>> {
        let len = Output::len(self);
        let all = values::<T>(token, 0, len);
        match what {
            Write::Slice(_) => self.copy_from_slice(&all)?,
            Write::Iter(count) => {
                return self.fill_from_iter(all.into_iter().take(count.into())).map(Some);
            }
            Write::Each(_) => self.fill_with(|i| all[i])?,
            Write::PanicAt(at) => {
                let write =
                    || self.fill_with(|i| if i == usize::from(at) { scripted_panic() } else { all[i] });
                return until_panic(write).transpose().map(|done| done.map(|()| len));
            }
            Write::Reserve(_) => self.copy_from_slice(&values::<T>(token, 0, len + 1))?,
            Write::Truncate(_) => self.fill(values::<T>(token, 0, 1)[0])?,
            Write::Huge => self.as_mut_slice()?.copy_from_slice(&all),
        }
        Ok(Some(len))
    }

    fn publish(self: Box<Self>) -> Published {
        Published::View(Arc::new(Output::publish(*self)))
    }

    fn publish_prefix(self: Box<Self>, len: usize) -> Result<Published, (Error, Box<dyn AnyOpen>)> {
        match Output::publish_prefix(*self, len) {
            Ok(view) => Ok(Published::View(Arc::new(view))),
            Err(refused) => Err((refused.error, Box::new(refused.value))),
        }
    }
}

impl<T: Value> AnyOpen for Writer<T> {
    fn address(&self) -> usize {
        self.as_slice().as_ptr().addr()
    }

    fn room(&self) -> usize {
        if size_of::<T>() == 0 { 0 } else { self.capacity() * size_of::<T>() }
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(bytes_of(self.as_slice()).to_vec())
    }

    fn len(&self) -> usize {
        Writer::len(self)
    }

    fn write(&mut self, what: Write, token: u64) -> Result<Option<usize>> {
        let before = Writer::len(self);
        match what {
            Write::Slice(count) => self.extend_from_slice(&values(token, 0, count.into()))?,
            // A filter does not say how much it will yield.
            Write::Iter(count) => self.extend(values(token, 0, count.into()).into_iter().filter(|_| true))?,
            Write::Each(count) => {
                for value in values(token, 0, count.into()) {
                    self.push(value)?;
                }
            }
            Write::PanicAt(at) => {
                let yielded = values::<T>(token, 0, at.into()).into_iter().map(Some).chain([None]);
                let write = || self.extend(yielded.map(|value| value.unwrap_or_else(|| scripted_panic())));
                return until_panic(write).transpose().map(|done| done.map(|()| 0));
            }
            Write::Reserve(count) => self.reserve(count.into())?,
            Write::Truncate(count) => self.truncate(count.into()),
            Write::Huge => self.reserve(usize::MAX)?,
        }
        Ok(Some(Writer::len(self).saturating_sub(before)))
    }

    fn publish(self: Box<Self>) -> Published {
        Published::View(Arc::new(Writer::publish(*self)))
    }

    fn publish_prefix(self: Box<Self>, _len: usize) -> Result<Published, (Error, Box<dyn AnyOpen>)> {
        Ok(self.publish())
    }
}

impl AnyOpen for TapeOutput {
    fn address(&self) -> usize {
        0
    }

    fn room(&self) -> usize {
        self.byte_len()
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn len(&self) -> usize {
        TapeOutput::len(self)
    }

    fn write(&mut self, what: Write, token: u64) -> Result<Option<usize>> {
        match what {
            Write::Slice(len) => self.push(&pattern(token, 0, len.into()))?,
            Write::Iter(len) => {
                self.push_part(&pattern(token, 0, len.into()))?;
                self.end_item()?;
            }
            Write::Each(len) => self.push_part(&pattern(token, 0, len.into()))?,
            Write::PanicAt(_) | Write::Huge => self.push(&[])?,
            Write::Reserve(_) => self.end_item()?,
            Write::Truncate(_) => self.push_part(&[])?,
        }
        Ok(Some(self.byte_len()))
    }

    fn publish(self: Box<Self>) -> Published {
        Published::Tape(Arc::new(TapeOutput::publish(*self)))
    }

    fn publish_prefix(self: Box<Self>, _len: usize) -> Result<Published, (Error, Box<dyn AnyOpen>)> {
        Ok(self.publish())
    }
}

/// Opens an output of `len` values, filled under `token` unless it is plain.
pub(super) fn output(call: &Call, of: Type, len: usize, how: Room, token: u64) -> Result<Box<dyn AnyOpen>> {
    fn open<T: Value>(call: &Call, len: usize, how: Room, token: u64) -> Result<Box<dyn AnyOpen>> {
        Ok(Box::new(match how {
            Room::Plain => call.output::<T>(len)?,
            Room::FromSlice => call.output_from_slice(&values::<T>(token, 0, len))?,
            Room::FromFn => {
                let all = values::<T>(token, 0, len);
                call.output_from_fn(len, |i| all[i])?
            }
        }))
    }
    with_type!(of, T => open::<T>(call, len, how, token))
}

/// Opens a writer.
pub(super) fn writer(call: &Call, of: Type, capacity: usize) -> Result<Box<dyn AnyOpen>> {
    with_type!(of, T => Ok(Box::new(call.writer_with_capacity::<T>(capacity)?)))
}

/// A view.
pub(super) trait AnyView: Send + Sync {
    fn len(&self) -> usize;
    fn byte_len(&self) -> usize;
    fn generation(&self) -> u64;
    fn is_current(&self) -> bool;
    fn describe(&self) -> ArenaDescription;
    fn as_any(&self) -> &dyn Any;
    fn read(&self) -> Result<Box<dyn Held + '_>>;
    fn read_on(&self, reader: &Executor) -> Result<Box<dyn Held + Send>>;
    fn export(&self) -> Result<Box<dyn Held + Send>>;
    fn export_by(&self, call: &Call) -> Result<Box<dyn Held + Send>>;
    fn to_vec(&self) -> Result<Vec<u8>>;
    fn copy_to(&self, len: usize) -> Result<Vec<u8>>;
    fn slice(&self, start: usize, end: usize) -> Result<Arc<dyn AnyView>>;
    fn cloned(&self) -> Arc<dyn AnyView>;
}

/// Whoever reads.
pub(super) trait Held {
    /// What it holds, if that is for the host.
    fn bytes(&self) -> Option<&[u8]>;
    fn address(&self) -> usize;
    /// Whose work reads, if that is a device's.
    fn reader(&self) -> Option<&Executor> {
        None
    }
}

impl<T: Value> Held for ReadGuard<'_, T> {
    fn bytes(&self) -> Option<&[u8]> {
        Some(bytes_of(self))
    }

    fn address(&self) -> usize {
        self.as_ptr().addr()
    }
}

impl<T: Value> Held for Export<T> {
    fn bytes(&self) -> Option<&[u8]> {
        Some(bytes_of(self))
    }

    fn address(&self) -> usize {
        self.as_ptr().addr()
    }
}

impl<T: Value> AnyView for View<T> {
    fn len(&self) -> usize {
        View::len(self)
    }

    fn byte_len(&self) -> usize {
        View::byte_len(self)
    }

    fn generation(&self) -> u64 {
        View::generation(self)
    }

    fn is_current(&self) -> bool {
        View::is_current(self)
    }

    fn describe(&self) -> ArenaDescription {
        View::describe(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read_on(&self, reader: &Executor) -> Result<Box<dyn Held + Send>> {
        Ok(Box::new(View::read_on(self, reader)?))
    }

    fn read(&self) -> Result<Box<dyn Held + '_>> {
        Ok(Box::new(View::read(self)?))
    }

    fn export(&self) -> Result<Box<dyn Held + Send>> {
        Ok(Box::new(View::export(self)?))
    }

    fn export_by(&self, call: &Call) -> Result<Box<dyn Held + Send>> {
        Ok(Box::new(call.export(self)?))
    }

    fn to_vec(&self) -> Result<Vec<u8>> {
        Ok(bytes_of(&View::to_vec(self)?).to_vec())
    }

    fn copy_to(&self, len: usize) -> Result<Vec<u8>> {
        let mut copy = values::<T>(0, 0, len);
        View::copy_to(self, &mut copy)?;
        Ok(bytes_of(&copy).to_vec())
    }

    fn slice(&self, start: usize, end: usize) -> Result<Arc<dyn AnyView>> {
        Ok(Arc::new(View::slice(self, start..end)?))
    }

    fn cloned(&self) -> Arc<dyn AnyView> {
        Arc::new(self.clone())
    }
}
