//! What every backend answers alike: one line below runs the whole suite on one. The contract is that of
//! `device_arena::backend::Backend`, the promises those of the README.

mod arenas;
mod blocks;
mod calls;
mod streams;

use device_arena::backend::{AnyBackend, Host};

/// A backend under test, and the name that the output shows.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) backend: AnyBackend,
}

/// Runs every case on a backend, each as a test of its own.
macro_rules! conformance {
    ($name:ident, $backend:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "which of them a backend's expression needs differs")]
            use super::*;

            fn subject() -> Subject {
                Subject { name: stringify!($name), backend: $backend }
            }

            conformance!(@cases
                blocks: [
                    blocks_are_zeroed_aligned_and_apart,
                    a_block_of_another_ordinal_is_unavailable,
                    a_block_beyond_the_machine_is_out_of_memory,
                    unknown_pointers_are_unregistered,
                    copies_move_every_byte_and_overlap_as_memmove,
                    rewind_fills_just_its_ranges,
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
                    an_abandoned_call_leaves_stale_views,
                    outputs_are_aligned_and_apart,
                    a_deferred_call_holds_its_arena,
                    a_call_deferred_as_it_is_ends_with_its_event,
                    begin_timeout_waits_for_the_holder,
                ]
            );
        }
    };
    (@cases $($module:ident: [$($case:ident),+ $(,)?]),+) => {
        $($(
            #[test]
            fn $case() {
                let subject = subject();
                println!("backend: {}", subject.name);
                super::$module::$case(&subject);
            }
        )+)+
    };
}

conformance!(host, AnyBackend::Host(Host));

#[cfg(device_arena_faults)]
conformance!(host_behind_faults, {
    use device_arena::backend::{FaultPlan, Faults};
    AnyBackend::Faults(Faults::new(AnyBackend::Host(Host), FaultPlan::default()))
});
