//! The header beside the library: what a C compiler makes of the one is what Rust made of the other.

use std::fmt::Write;
use std::io::Write as _;
use std::mem::offset_of;
use std::process::{Command, Stdio};

use crate::{arena, copies, deferred, description, executor, plan, pointer, stage, status, tape, view};

/// Size, alignment and every field's place of a struct, as assertions of C.
macro_rules! layout {
    ($text:ident, $module:ident :: $type:ident { $($field:ident),+ $(,)? }) => {{
        type T = $module::$type;
        let name = stringify!($type);
        // That no field is missing here: this is never run.
        let _all = |$module::$type { $($field: _),+ }: &T| {};
        writeln!($text, "_Static_assert(sizeof({name}) == {}, \"{name}\");", size_of::<T>()).unwrap();
        writeln!($text, "_Static_assert(_Alignof({name}) == {}, \"{name}\");", align_of::<T>()).unwrap();
        $(
            let field = stringify!($field);
            let (place, name_) = (offset_of!(T, $field), format!("{name}.{field}"));
            writeln!($text, "_Static_assert(offsetof({name}, {field}) == {place}, \"{name_}\");").unwrap();
        )+
    }};
}

/// The numbers of an enum, and its size.
macro_rules! numbers {
    ($text:ident, $module:ident :: $type:ident { $($variant:ident),+ $(,)? }) => {{
        use crate::$module::$type as E;
        // That no variant is missing here.
        let number_of = |value: E| match value { $(E::$variant => E::$variant as i32),+ };
        let name = stringify!($type);
        writeln!($text, "_Static_assert(sizeof({name}) == {}, \"{name}\");", size_of::<E>()).unwrap();
        $(
            let (variant, number) = (stringify!($variant), number_of(E::$variant));
            writeln!($text, "_Static_assert((int){variant} == {number}, \"{variant}\");").unwrap();
        )+
    }};
}

fn assertions() -> String {
    let mut text = String::from("#include <stddef.h>\n#include \"device_arena.h\"\n");
    let t = &mut text;
    layout!(t, status::device_arena_error_t { status, message });
    layout!(t, description::device_arena_description_t { residency, device });
    layout!(
        t,
        description::device_arena_stats_t {
            allocations,
            frees,
            failed_frees,
            bytes_reserved,
            bytes_used,
            bytes_high_water,
            rewinds,
            refused_begins,
            refused_stale_reads,
            generation,
            reserved,
        }
    );
    layout!(
        t,
        arena::device_arena_options_t {
            alignment,
            first_capacity,
            byte_limit,
            max_step,
            placement,
            scrub,
            has_scrub,
            reserved,
        }
    );
    layout!(t, executor::device_arena_device_t { vendor, ordinal, total_bytes, name, architecture });
    layout!(t, view::device_arena_view_description_t { arena, bytes, generation, is_current, reserved });
    layout!(t, tape::device_arena_tape_description_t { items, bytes, memory, device });
    layout!(t, stage::device_arena_staged_t { bytes, byte_count, offsets, items, copied_bytes });
    layout!(
        t,
        pointer::device_arena_pointer_info_t {
            memory,
            vendor,
            device,
            origin,
            is_host_accessible,
            is_device_accessible,
            allocation,
            allocation_bytes,
            buffer_id,
            has_buffer_id,
            reserved,
        }
    );
    layout!(
        t,
        plan::device_arena_slot_t {
            node,
            offset,
            size,
            alignment,
            live_start,
            live_end,
            alias_of,
            has_lifetime,
            is_alias,
        }
    );
    layout!(t, plan::device_arena_plan_description_t { nodes, total, alignment, fingerprint });
    layout!(t, copies::device_arena_copy_t { to, to_first, from, from_first, count });
    numbers!(
        t,
        status::device_arena_status_t {
            DEVICE_ARENA_STATUS_OK,
            DEVICE_ARENA_STATUS_INVALID_ARGUMENT,
            DEVICE_ARENA_STATUS_DEVICE,
            DEVICE_ARENA_STATUS_CONTENDED,
            DEVICE_ARENA_STATUS_OUT_OF_MEMORY,
            DEVICE_ARENA_STATUS_OVER_LIMIT,
            DEVICE_ARENA_STATUS_UNAVAILABLE,
            DEVICE_ARENA_STATUS_PENDING,
            DEVICE_ARENA_STATUS_DRIVER,
            DEVICE_ARENA_STATUS_INTERNAL,
        }
    );
    numbers!(
        t,
        description::device_arena_residency_t { DEVICE_ARENA_RESIDENCY_RAM, DEVICE_ARENA_RESIDENCY_VRAM }
    );
    numbers!(
        t,
        library::device_arena_vendor_t {
            DEVICE_ARENA_VENDOR_HOST,
            DEVICE_ARENA_VENDOR_CUDA,
            DEVICE_ARENA_VENDOR_ROCM,
        }
    );
    numbers!(
        t,
        arena::device_arena_placement_t {
            DEVICE_ARENA_PLACEMENT_DEFAULT,
            DEVICE_ARENA_PLACEMENT_HOST,
            DEVICE_ARENA_PLACEMENT_DEVICE,
            DEVICE_ARENA_PLACEMENT_HOST_COHERENT,
        }
    );
    numbers!(
        t,
        tape::device_arena_offsets_t {
            DEVICE_ARENA_OFFSETS_U32,
            DEVICE_ARENA_OFFSETS_U64,
            DEVICE_ARENA_OFFSETS_I32,
            DEVICE_ARENA_OFFSETS_I64,
        }
    );
    numbers!(
        t,
        tape::device_arena_memory_t {
            DEVICE_ARENA_MEMORY_UNREGISTERED,
            DEVICE_ARENA_MEMORY_PINNED_HOST,
            DEVICE_ARENA_MEMORY_DEVICE,
            DEVICE_ARENA_MEMORY_MANAGED,
            DEVICE_ARENA_MEMORY_UNMAPPED,
        }
    );
    numbers!(
        t,
        pointer::device_arena_origin_t {
            DEVICE_ARENA_ORIGIN_UNKNOWN,
            DEVICE_ARENA_ORIGIN_DIRECT,
            DEVICE_ARENA_ORIGIN_POOL,
            DEVICE_ARENA_ORIGIN_VIRTUAL,
        }
    );
    // Handles, and functions of the caller's.
    for handle in [
        "library", "executor", "call", "scratch", "output", "view", "guard", "tape", "deferred", "plan",
        "planned", "run", "source",
    ] {
        writeln!(t, "_Static_assert(sizeof(device_arena_{handle}_t) == 8, \"{handle}\");").unwrap();
    }
    let functions =
        (size_of::<deferred::device_arena_work_t>(), size_of::<executor::device_arena_release_t>());
    writeln!(t, "_Static_assert(sizeof(device_arena_work_t) == {}, \"work\");", functions.0).unwrap();
    writeln!(t, "_Static_assert(sizeof(device_arena_release_t) == {}, \"release\");", functions.1).unwrap();
    text
}

/// Whether the compiler takes it; none where there is no compiler.
fn compiles(text: &str) -> Option<(bool, String)> {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut child = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", include, "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn the_header_has_the_sizes_and_numbers_of_the_library() {
    let text = assertions();
    let Some((is_right, said)) = compiles(&text) else {
        println!("skipped: there is no C compiler");
        return;
    };
    assert!(is_right, "{said}");
    assert!(text.matches("_Static_assert").count() > 100);
    // An assertion that is wrong is seen.
    let wrong = text.replacen(
        "offsetof(device_arena_error_t, message) == 4",
        "offsetof(device_arena_error_t, message) == 8",
        1,
    );
    assert_ne!(text, wrong);
    assert!(!compiles(&wrong).unwrap().0);
}
