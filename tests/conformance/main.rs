//! What every backend answers alike: one line below runs the whole suite on one. The contract is that of
//! `device_arena::backend::Backend`, the promises those of the README.

mod arenas;
mod blocks;
mod calls;
mod copies;
mod streams;
#[path = "../vendors/mod.rs"]
mod vendors;

use std::sync::{Arc, mpsc};

use device_arena::backend::{AnyBackend, Backend, Host, Stream, Vendor};
use device_arena::{Arena, ArenaOptions, Call, Executor, Placement, Result, View};

/// A backend under test, where its arenas are, and the name that the output shows.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) backend: AnyBackend,
    pub(crate) placement: Placement,
}

impl Subject {
    pub(crate) fn executor(&self) -> Executor {
        Executor::on(self.backend.clone(), 0).unwrap()
    }

    /// An executor, and a way to hold its queue up: what is queued behind waits until the sender is used or dropped.
    pub(crate) fn executor_with_gate(&self) -> (Executor, mpsc::Sender<()>) {
        let stream = Arc::new(self.backend.create_stream(0).unwrap());
        // Before it is held up: a stream that is not adopted is waited for.
        let executor = self.adopt(Arc::clone(&stream));
        let (open, opened) = mpsc::channel();
        let wait = Box::new(move || opened.recv().unwrap_or(()));
        self.backend.enqueue(&stream, wait).unwrap();
        (executor, open)
    }

    fn adopt(&self, stream: Arc<Stream>) -> Executor {
        let raw = self.backend.raw_stream(&stream).unwrap();
        // SAFETY: the stream lives as long as the keep-alive.
        unsafe { Executor::adopt(self.backend.clone(), raw, Box::new(stream)) }.unwrap()
    }

    pub(crate) fn options(&self) -> ArenaOptions {
        // The host has one kind of memory, whose placement need not be said.
        let is_host = self.backend.vendor() == Vendor::Host;
        if is_host { ArenaOptions::new() } else { ArenaOptions::new().placement(self.placement) }
    }

    pub(crate) fn arena(&self, executor: &Executor) -> Arena {
        self.options().build(executor).unwrap()
    }

    /// Whether the host reaches the arenas' memory.
    pub(crate) fn is_host_accessible(&self) -> bool {
        self.backend.is_host_accessible(self.placement)
    }

    /// An output with these bytes, for a queue that is held up: where filling it would wait for the queue, zeros.
    pub(crate) fn publish(&self, call: &Call, bytes: &[u8]) -> Result<View<u8>> {
        let output =
            if self.is_host_accessible() { call.output_from_slice(bytes) } else { call.output(bytes.len()) };
        Ok(output?.publish())
    }

    /// Holds such an output's view against its bytes.
    pub(crate) fn expect(&self, view: &View<u8>, bytes: &[u8]) {
        let expected = if self.is_host_accessible() { bytes.to_vec() } else { vec![0; bytes.len()] };
        assert_eq!(view.to_vec().unwrap(), expected);
    }
}

/// Runs every case on a backend, each as a test of its own.
macro_rules! conformance {
    ($name:ident, $placement:ident, $backend:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "which of them a backend's expression needs differs")]
            use super::*;

            fn subject() -> Option<Subject> {
                let backend: Option<AnyBackend> = $backend;
                let placement = Placement::$placement;
                backend.map(|backend| Subject { name: stringify!($name), backend, placement })
            }

            conformance!(@cases
                blocks: [
                    blocks_are_aligned_and_apart,
                    blocks_of_the_host_are_zeros,
                    blocks_are_what_they_are,
                    a_block_of_another_ordinal_is_unavailable,
                    a_block_beyond_the_machine_is_out_of_memory,
                    unknown_pointers_are_unregistered,
                    copies_move_every_byte_and_overlap_as_memmove,
                    a_long_range_that_overlaps_itself_moves_as_memmove,
                    many_ranges_are_copied_at_once,
                    long_lists_of_ranges_of_many_lengths,
                    rewind_fills_just_its_ranges,
                ],
                copies: [
                    rows_are_copied_in_order_and_with_strides,
                    rows_are_copied_by_number,
                    rows_longer_than_a_tile,
                    a_row_that_overlaps_itself_moves_as_memmove,
                    no_rows_and_rows_without_bytes,
                    rows_follow_the_work_before_them,
                    a_prepared_list_copies_what_is_there_at_each_launch,
                    prepared_lists_of_every_length,
                    a_prepared_list_stays_until_its_launch_has_passed,
                    a_prepared_list_is_dropped_by_work_of_its_stream,
                ],
                streams: [
                    work_runs_in_order,
                    an_event_passes_after_the_work_before_it,
                    a_stream_waits_for_another_without_the_host,
                    a_wait_times_out,
                    a_wait_on_its_own_worker_is_refused,
                    a_notice_comes_once_the_event_has_passed,
                    work_that_panics_does_not_end_the_stream,
                    dropping_a_stream_waits_for_its_work,
                    an_adopted_stream_is_the_same_queue,
                ],
                arenas: [
                    making_an_arena_allocates_nothing,
                    a_steady_loop_allocates_once,
                    a_chain_is_replaced_by_one_block,
                    no_address_moves_when_a_call_outgrows_its_block,
                    reserve_makes_the_first_call_steady,
                    trim_gives_everything_back,
                    close_reports_what_it_freed,
                    the_limit_holds_at_every_instant,
                    stats_count_what_happened,
                ],
                calls: [
                    begin_makes_every_view_stale,
                    stale_comes_before_everything_else,
                    a_second_begin_is_contended_and_changes_nothing,
                    a_guard_and_an_export_keep_begins_away,
                    a_device_guard_keeps_begins_away,
                    an_abandoned_call_leaves_stale_views,
                    outputs_are_aligned_and_apart,
                    a_deferred_call_holds_its_arena,
                    a_call_deferred_as_it_is_ends_with_its_event,
                    work_that_fails_is_an_error_of_the_wait,
                    an_arena_serves_its_own_executor_alone,
                    values_go_between_host_and_arena,
                    room_that_nobody_wrote_shows_zeros_or_poison,
                    begin_timeout_waits_for_the_holder,
                ]
            );
        }
    };
    (@cases $($module:ident: [$($case:ident),+ $(,)?]),+) => {
        $($(
            #[test]
            fn $case() {
                let Some(subject) = subject() else { return };
                println!("backend: {}", subject.name);
                super::$module::$case(&subject);
            }
        )+)+
    };
}

conformance!(host, Host, Some(AnyBackend::Host(Host)));

#[cfg(device_arena_faults)]
conformance!(host_behind_faults, Host, {
    use device_arena::backend::{FaultPlan, Faults};
    Some(AnyBackend::Faults(Faults::new(AnyBackend::Host(Host), FaultPlan::default())))
});

#[cfg(feature = "cuda")]
conformance!(cuda, Device, vendors::present(Vendor::Cuda));

#[cfg(feature = "cuda")]
conformance!(cuda_host_coherent, HostCoherent, vendors::present(Vendor::Cuda));

#[cfg(feature = "rocm")]
conformance!(rocm, Device, vendors::present(Vendor::Rocm));

#[cfg(feature = "rocm")]
conformance!(rocm_host_coherent, HostCoherent, vendors::present(Vendor::Rocm));
