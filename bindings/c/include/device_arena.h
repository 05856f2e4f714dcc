// device-arena for C and C++: arenas for the outputs of inference calls, in host, CUDA or ROCm memory.
//
// Every function answers a status. Where the last argument, `error`, is not null, it is filled in as well. Handles are
// numbers: 0 is none, and one that is dead, was freed twice or is of another kind is DEVICE_ARENA_STATUS_INVALID_ARGUMENT.
// A handle that a function makes comes first, and is 0 after a failure. Everything may be called from any thread; a call,
// an output, a run or a deferred result that another thread is using just then is DEVICE_ARENA_STATUS_CONTENDED. Sizes,
// offsets and alignments are bytes, and times nanoseconds, unless it says otherwise. Pointers are null where that is said,
// and else to what their types say; what a function refuses, it leaves as it was.
//
// To begin with, in this order: device_arena_library_load, device_arena_init, device_arena_call_begin,
// device_arena_call_output, device_arena_output_data, device_arena_output_publish, device_arena_call_finish,
// device_arena_view_read_begin and device_arena_view_read_end. Functions without an object in their names, from
// device_arena_init to device_arena_trim, are an arena's. Every handle is to be ended: by the function that uses it up, or by
// the `free` or `end` of its kind.
//
// The header of the same name that kernels include is another one, and both can be included in one program.

#ifndef DEVICE_ARENA_C_H
#define DEVICE_ARENA_C_H

// Made by cbindgen from bindings/c/src. `ci/bindings header` holds it against them.

#include <stdint.h>

// The bytes of an error record's message, its NUL included.
#define DEVICE_ARENA_MESSAGE_BYTES 1020

// The version of this ABI: it counts up where something that was there changes, and not where something is added.
#define DEVICE_ARENA_ABI_VERSION 1

// What a function answers. The numbers are stable.
enum device_arena_status_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It did what it was asked for.
  DEVICE_ARENA_STATUS_OK = 0,
  // A stale view, a dead handle, a wrong executor, a bad tape, a null pointer; a range, a size or an option that can't be.
  DEVICE_ARENA_STATUS_INVALID_ARGUMENT = 1,
  // Host access to a device's memory.
  DEVICE_ARENA_STATUS_DEVICE = 2,
  // Somebody else holds the arena, or another thread is using the handle. The refusal changed nothing.
  DEVICE_ARENA_STATUS_CONTENDED = 3,
  // The driver or the system has no memory of that size.
  DEVICE_ARENA_STATUS_OUT_OF_MEMORY = 4,
  // The arena's own limits: bytes, readers, outputs.
  DEVICE_ARENA_STATUS_OVER_LIMIT = 5,
  // No driver, no device, no worker thread.
  DEVICE_ARENA_STATUS_UNAVAILABLE = 6,
  // Not yet: the call has not finished, or its work has not passed.
  DEVICE_ARENA_STATUS_PENDING = 7,
  // A driver's call or deferred work failed.
  DEVICE_ARENA_STATUS_DRIVER = 8,
  // A fault of this library, caught at its border.
  DEVICE_ARENA_STATUS_INTERNAL = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum device_arena_status_t device_arena_status_t;
#else
typedef int32_t device_arena_status_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Which memory bytes are in.
enum device_arena_residency_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Host pages.
  DEVICE_ARENA_RESIDENCY_RAM = 0,
  // Memory of one device.
  DEVICE_ARENA_RESIDENCY_VRAM = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum device_arena_residency_t device_arena_residency_t;
#else
typedef int32_t device_arena_residency_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Whose driver.
enum device_arena_vendor_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The operating system and the processor's own memory.
  DEVICE_ARENA_VENDOR_HOST = 0,
  // NVIDIA's driver.
  DEVICE_ARENA_VENDOR_CUDA = 1,
  // AMD's runtime, HIP.
  DEVICE_ARENA_VENDOR_ROCM = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum device_arena_vendor_t device_arena_vendor_t;
#else
typedef int32_t device_arena_vendor_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The class of memory behind a pointer.
enum device_arena_memory_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No driver claims it: pageable host memory, and also freed pointers and ones past an end.
  DEVICE_ARENA_MEMORY_UNREGISTERED = 0,
  // Host pages that a driver has pinned or registered.
  DEVICE_ARENA_MEMORY_PINNED_HOST = 1,
  // Memory of one device, or an address that a device alone has for host pages.
  DEVICE_ARENA_MEMORY_DEVICE = 2,
  // Memory that the driver moves between host and device.
  DEVICE_ARENA_MEMORY_MANAGED = 3,
  // Addresses that a driver has reserved and mapped nothing to.
  DEVICE_ARENA_MEMORY_UNMAPPED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum device_arena_memory_t device_arena_memory_t;
#else
typedef int32_t device_arena_memory_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a driver came to memory, where it says.
enum device_arena_origin_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The driver does not say.
  DEVICE_ARENA_ORIGIN_UNKNOWN = 0,
  // An allocation of its own.
  DEVICE_ARENA_ORIGIN_DIRECT = 1,
  // A pool of stream-ordered allocations.
  DEVICE_ARENA_ORIGIN_POOL = 2,
  // Memory that was mapped into reserved addresses.
  DEVICE_ARENA_ORIGIN_VIRTUAL = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum device_arena_origin_t device_arena_origin_t;
#else
typedef int32_t device_arena_origin_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Where an arena's blocks are.
enum device_arena_placement_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Where the executor computes.
  DEVICE_ARENA_PLACEMENT_DEFAULT = 0,
  // Host pages, for calls on the host.
  DEVICE_ARENA_PLACEMENT_HOST = 1,
  // Memory of the executor's device.
  DEVICE_ARENA_PLACEMENT_DEVICE = 2,
  // Pinned host pages that the executor's device reaches too, at the same address.
  DEVICE_ARENA_PLACEMENT_HOST_COHERENT = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum device_arena_placement_t device_arena_placement_t;
#else
typedef int32_t device_arena_placement_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How wide offsets are.
enum device_arena_offsets_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // `uint32_t`.
  DEVICE_ARENA_OFFSETS_U32 = 0,
  // `uint64_t`.
  DEVICE_ARENA_OFFSETS_U64 = 1,
  // `int32_t`, as Arrow's strings have them.
  DEVICE_ARENA_OFFSETS_I32 = 2,
  // `int64_t`, as Arrow's large strings have them.
  DEVICE_ARENA_OFFSETS_I64 = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum device_arena_offsets_t device_arena_offsets_t;
#else
typedef int32_t device_arena_offsets_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The versioned tensor of `dlpack.h`, which C knows by that header.
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;

// The memory that one call's outputs land in. Each call rewinds it, so that a steady loop allocates once.
typedef uint64_t device_arena_t;

// A `device_arena_library_t`, for host pages and calls on the calling thread; or a `device_arena_executor_t`, for memory
// where it computes.
typedef uint64_t device_arena_source_t;

// What a function filled in: its caller owns it. After success the status is OK and the message empty.
typedef struct device_arena_error_t {
  // What the function answered.
  device_arena_status_t status;
  // What was refused and why: one line of UTF-8 that ends with NUL, cut between two characters where it is too long.
  char message[DEVICE_ARENA_MESSAGE_BYTES];
} device_arena_error_t;

// The choices for a new arena, in bytes. All zeros are the defaults.
typedef struct device_arena_options_t {
  // The least alignment of every output: a power of two, at most 4096 on the host and 256 on a device. 0: the backend's
  // own, 64 on the host and 256 on a device.
  uint64_t alignment;
  // The least size of the first block. 0: 64 KiB.
  uint64_t first_capacity;
  // The most bytes that the arena may have reserved at any instant. 0: no limit.
  uint64_t byte_limit;
  // The most bytes by which a block is larger than the one before. 0: 1 GiB.
  uint64_t max_step;
  // A `device_arena_placement_t`.
  int32_t placement;
  // The byte of `has_scrub`.
  uint32_t scrub;
  // Whether a rewind fills what the call before wrote with the byte `scrub`: 0 or 1.
  uint32_t has_scrub;
  // Zero.
  uint32_t reserved;
} device_arena_options_t;

// Where an arena's outputs are.
typedef struct device_arena_description_t {
  // Which memory.
  device_arena_residency_t residency;
  // The device's ordinal, as its driver counts; -1 for host pages, host-coherent ones too.
  int32_t device;
} device_arena_description_t;

// A reading of an arena's counters.
typedef struct device_arena_stats_t {
  // Blocks asked of the driver, and given.
  uint64_t allocations;
  // Blocks given back to the driver.
  uint64_t frees;
  // Blocks that the driver did not take back, which is tried again.
  uint64_t failed_frees;
  // What the arena has from the driver now.
  uint64_t bytes_reserved;
  // What the last call has taken: outputs rounded up to the alignment, and open scratch.
  uint64_t bytes_used;
  // The most that any call had taken at once, or wanted, since the arena was made or trimmed.
  uint64_t bytes_high_water;
  // Rewinds: each call begun is one.
  uint64_t rewinds;
  // Begins, reserves and trims refused as contended.
  uint64_t refused_begins;
  // Uses of stale views refused.
  uint64_t refused_stale_reads;
  // The number of the last call.
  uint64_t generation;
  // Zeros.
  uint64_t reserved[6];
} device_arena_stats_t;

// The exclusive use of an arena, from its begin to its end. It is used by one thread at a time.
typedef uint64_t device_arena_call_t;

// Where calls compute: the host, or one device together with one stream.
typedef uint64_t device_arena_executor_t;

// Room in an arena that the running call may write. It may be filled on any thread, and outlive its call: until it is
// published or freed it holds the arena, and no other call can begin.
typedef uint64_t device_arena_output_t;

// The exclusive use of a planned arena, from its begin to its end. It is used by one thread at a time.
typedef uint64_t device_arena_run_t;

// A copy between two slots, in elements.
typedef struct device_arena_copy_t {
  // The node that is written.
  uint64_t to;
  // The first element of its slot that is.
  uint64_t to_first;
  // The node that is read.
  uint64_t from;
  // The first element of its slot that is.
  uint64_t from_first;
  // How many elements, at most.
  uint64_t count;
} device_arena_copy_t;

// What comes of a deferred call, once its work has passed. The arena is held until then, and not until this is freed.
typedef uint64_t device_arena_deferred_t;

// Deferred work. It uses the call, which is its own as long as it runs, and answers a `device_arena_status_t`: 0 finishes
// the call, and any other number abandons it and is what `device_arena_call_wait` answers; PENDING, and a number that is no
// status, are DRIVER there, with a message that names them. It does not end the call itself, and publishes or frees its
// outputs before it returns. What it publishes, or has to say of a failure, it hands on through `user_data`. It must not
// unwind.
typedef int32_t (*device_arena_work_t)(device_arena_call_t call, void *user_data);

// A caller's function that takes its pointer back: it is called once, on any thread, and must not unwind.
typedef void (*device_arena_release_t)(void *user_data);

// A read-only look at a published output. It holds nothing, and outlives its arena harmlessly: every use of one whose arena
// was rewound or freed is INVALID_ARGUMENT, whatever else is wrong with the use.
typedef uint64_t device_arena_view_t;

// The loaded drivers.
typedef uint64_t device_arena_library_t;

// A device, as its driver describes it.
typedef struct device_arena_device_t {
  // Whose driver.
  device_arena_vendor_t vendor;
  // The device's number as its driver counts it; 0 for the host.
  uint32_t ordinal;
  // Memory in bytes; 0 where the driver does not say.
  uint64_t total_bytes;
  // The driver's name for it, which ends with NUL.
  char name[128];
  // The architecture, which ends with NUL.
  char architecture[64];
} device_arena_device_t;

// Offsets that are fixed ahead of time for named nodes.
typedef uint64_t device_arena_plan_t;

// One node's place in a planned arena. Offsets, sizes and alignments are bytes; the offset counts from the arena's start.
typedef struct device_arena_slot_t {
  // The node, by any number of the caller's.
  uint64_t node;
  // Its first byte.
  uint64_t offset;
  // Its size.
  uint64_t size;
  // What its offset is a multiple of: a power of two, or 0 for 1.
  uint64_t alignment;
  // The first step in which its bytes are its own, where `has_lifetime` is not 0.
  uint64_t live_start;
  // The step after the last.
  uint64_t live_end;
  // The node whose bytes it shares on purpose, where `is_alias` is not 0.
  uint64_t alias_of;
  // 1 for bytes that are its own in the steps from `live_start` to before `live_end`; 0 for always.
  uint32_t has_lifetime;
  // 1 for a node that shares bytes of `alias_of`; 0 for none.
  uint32_t is_alias;
} device_arena_slot_t;

// What a plan says of itself.
typedef struct device_arena_plan_description_t {
  // How many nodes there are.
  uint64_t nodes;
  // The bytes that an arena of this plan needs.
  uint64_t total;
  // What the arena's start is aligned to, in bytes.
  uint64_t alignment;
  // The number of the whole layout, its lower and its upper 64 bits: plans that are equal have equal ones, and plans that
  // differ in a node, an offset, a size, an alignment, a lifetime or an alias have others.
  uint64_t fingerprint[2];
} device_arena_plan_description_t;

// An arena whose places are fixed by a plan: every node has its slot, in every run, and the bytes stay from run to run.
typedef uint64_t device_arena_planned_t;

// The answer to a classification.
typedef struct device_arena_pointer_info_t {
  // The class of the memory.
  device_arena_memory_t memory;
  // Whose driver claims it; the host where none does.
  device_arena_vendor_t vendor;
  // The ordinal of the device that the memory belongs to; -1 for none.
  int32_t device;
  // How the driver came to the memory.
  device_arena_origin_t origin;
  // Whether the host can read through the pointer, given that it is live: 1 or 0.
  uint32_t is_host_accessible;
  // Whether a device's kernels can: 1 or 0.
  uint32_t is_device_accessible;
  // The address of the allocation that the pointer lies in; 0 where the driver does not say.
  uint64_t allocation;
  // The allocation's size in bytes; 0 where the driver does not say.
  uint64_t allocation_bytes;
  // The allocation's identity: a later one of the same address has another. 0 where `has_buffer_id` is 0.
  uint64_t buffer_id;
  // Whether the driver has given the allocation an identity: 1 or 0.
  uint32_t has_buffer_id;
  // Zero.
  uint32_t reserved;
} device_arena_pointer_info_t;

// A scope of scratch room in a call. Scopes nest, and end in the reverse of the order in which they began.
typedef uint64_t device_arena_scratch_t;

// A checked look at a tape: item `i` is the bytes from offset `i` to offset `i + 1`. It owns neither.
typedef uint64_t device_arena_tape_t;

// A tape where a call computes.
typedef struct device_arena_staged_t {
  // The bytes' address there.
  const void *bytes;
  // How many bytes there are.
  uint64_t byte_count;
  // The address there of the offsets, which count from `bytes`: one more than there are items, or none for no items.
  const uint64_t *offsets;
  // How many items there are.
  uint64_t items;
  // How many bytes were copied into the call's arena, offsets included: none where all of the tape was reachable.
  uint64_t copied_bytes;
} device_arena_staged_t;

// What a tape says of itself.
typedef struct device_arena_tape_description_t {
  // How many items there are.
  uint64_t items;
  // How many bytes there are, those that no item covers included.
  uint64_t bytes;
  // What the bytes' memory is. A span that no driver was asked about is unregistered.
  device_arena_memory_t memory;
  // The ordinal of the bytes' device; -1 for the host's memory.
  int32_t device;
} device_arena_tape_description_t;

// What a view says of itself.
typedef struct device_arena_view_description_t {
  // Where the bytes are.
  struct device_arena_description_t arena;
  // How many there are.
  uint64_t bytes;
  // The number of the call that published the view.
  uint64_t generation;
  // 1 while the arena is at the view's call still, and 0 once the view is stale. Only a guard keeps it 1.
  uint32_t is_current;
  // Zero.
  uint32_t reserved;
} device_arena_view_description_t;

// What a reader holds while it reads: no call can begin until it is ended.
typedef uint64_t device_arena_guard_t;

// Room in an arena that grows as it is written, on the host. It may move until it is published.
typedef uint64_t device_arena_writer_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes an arena: for a library, of host pages for calls on the calling thread; for an executor, of memory where it
// computes. Nothing is allocated yet.
device_arena_status_t device_arena_init(device_arena_t *arena,
                                        device_arena_source_t source,
                                        struct device_arena_error_t *error);

// Makes an arena as `device_arena_init` does, with choices. Null stands for the defaults. INVALID_ARGUMENT for choices that
// can't be had, and for a library any placement but the host's.
device_arena_status_t device_arena_init_with_options(device_arena_t *arena,
                                                     device_arena_source_t source,
                                                     const struct device_arena_options_t *options,
                                                     struct device_arena_error_t *error);

// Frees an arena: its views are stale from then on. A call, a guard or a tensor that is alive then goes on, and the last of
// them frees the blocks. It waits for what a deferred call has queued on a device, and not for work on the host's worker,
// which goes on.
device_arena_status_t device_arena_free(device_arena_t arena,
                                        struct device_arena_error_t *error);

// Where the arena's outputs are.
device_arena_status_t device_arena_describe(device_arena_t arena,
                                            struct device_arena_description_t *description_out,
                                            struct device_arena_error_t *error);

// What the arena has done so far.
device_arena_status_t device_arena_stats(device_arena_t arena,
                                         struct device_arena_stats_t *stats_out,
                                         struct device_arena_error_t *error);

// Makes sure that the next call can take so many bytes without asking the driver. Views of the last call stay current.
// CONTENDED while somebody holds the arena.
device_arena_status_t device_arena_reserve(device_arena_t arena,
                                           uint64_t bytes,
                                           struct device_arena_error_t *error);

// Gives every block back to the driver and makes every view stale. `freed_out`, which may be null, takes the bytes that
// were freed. CONTENDED while somebody holds the arena.
device_arena_status_t device_arena_trim(device_arena_t arena,
                                        uint64_t *freed_out,
                                        struct device_arena_error_t *error);

// Begins a call: rewinds the arena, so that every view of the call before is stale. `executor` says where it computes; 0 for
// where the arena was made for. CONTENDED while the arena is held: by a call, by an output that is neither published nor
// freed, by deferred work, by a guard or by a tensor of DLPack. INVALID_ARGUMENT for the arena of another executor's device.
device_arena_status_t device_arena_call_begin(device_arena_call_t *call,
                                              device_arena_t arena,
                                              device_arena_executor_t executor,
                                              struct device_arena_error_t *error);

// Begins a call as `device_arena_call_begin` does, and waits for the arena to be free for so many nanoseconds at most:
// CONTENDED where it was held all that time. INVALID_ARGUMENT within deferred work on the host's worker for an arena that
// this work holds, or work that is queued behind it: it would wait for itself.
device_arena_status_t device_arena_call_begin_timeout(device_arena_call_t *call,
                                                      device_arena_t arena,
                                                      device_arena_executor_t executor,
                                                      uint64_t nanoseconds,
                                                      struct device_arena_error_t *error);

// Room for so many bytes, aligned to the arena's alignment. It shows what it held before. 0 bytes are room for none, and
// allocate nothing. OUT_OF_MEMORY, or OVER_LIMIT for the arena's own limits; the call goes on then.
device_arena_status_t device_arena_call_output(device_arena_output_t *output,
                                               device_arena_call_t call,
                                               uint64_t bytes,
                                               struct device_arena_error_t *error);

// Ends a call: its published views can be read. The handle is dead from then on. It neither waits nor calls the driver: an
// error of queued work surfaces at the first wait for it.
device_arena_status_t device_arena_call_finish(device_arena_call_t call,
                                               struct device_arena_error_t *error);

// Ends a call without a result: its views are stale at once. The handle is dead from then on. What fails after a begin ends
// its call by this, and frees the outputs that it has not published: either holds the arena for good if it is left open.
device_arena_status_t device_arena_call_abandon(device_arena_call_t call,
                                                struct device_arena_error_t *error);

// Copies the first `count` elements of one slot to the start of another. As many as both hold are copied, and `moved_out`,
// which may be null, is told how many. Slots that start together are left as they are.
device_arena_status_t device_arena_run_copy_prefix(device_arena_run_t run,
                                                   uint64_t to,
                                                   uint64_t from,
                                                   uint32_t element_bytes,
                                                   uint64_t count,
                                                   uint64_t *moved_out,
                                                   struct device_arena_error_t *error);

// Copies `count` elements from element `from_first` of one slot to element `to_first` of another: as
// `device_arena_run_copy_prefix`. Where they overlap, it is as if by way of a buffer.
device_arena_status_t device_arena_run_copy_range(device_arena_run_t run,
                                                  uint64_t to,
                                                  uint64_t to_first,
                                                  uint64_t from,
                                                  uint64_t from_first,
                                                  uint32_t element_bytes,
                                                  uint64_t count,
                                                  uint64_t *moved_out,
                                                  struct device_arena_error_t *error);

// Makes many copies as one launch. They have no order among themselves: INVALID_ARGUMENT, and nothing is copied, where one
// writes what another reads or writes. `moved_out`, which may be null, is told how many elements were copied in all.
//
// # Safety
//
// `copies` is to `copy_count` copies, or null for none.
device_arena_status_t device_arena_run_copies(device_arena_run_t run,
                                              const struct device_arena_copy_t *copies,
                                              uint64_t copy_count,
                                              uint32_t element_bytes,
                                              uint64_t *moved_out,
                                              struct device_arena_error_t *error);

// Copies all bytes into the run of another arena of an equal plan. INVALID_ARGUMENT for another plan, and for the run itself.
device_arena_status_t device_arena_run_copy_into(device_arena_run_t run,
                                                 device_arena_run_t twin,
                                                 struct device_arena_error_t *error);

// Fills a slot with zeros.
device_arena_status_t device_arena_run_clear(device_arena_run_t run,
                                             uint64_t node,
                                             struct device_arena_error_t *error);

// Runs `work` in the executor's order: on the host's worker; on a device at once, where it only queues. The arena is held
// until all of it has passed. `executor` is 0 for the one that the arena was made for, and INVALID_ARGUMENT where it was
// made for a library. CONTENDED as for `device_arena_call_begin`. `release`, which may be null, is called with `user_data`
// when `work` has returned, on the same thread; after a failure neither is called.
//
// # Safety
//
// `work` and `release` take `user_data`, on any thread, and it is theirs until then.
device_arena_status_t device_arena_call_defer_work(device_arena_deferred_t *deferred,
                                                   device_arena_t arena,
                                                   device_arena_executor_t executor,
                                                   device_arena_work_t work,
                                                   void *user_data,
                                                   device_arena_release_t release,
                                                   struct device_arena_error_t *error);

// Leaves a call to the work that is queued on the executor now: its arena is held until that has passed, and the call is
// finished then. `executor` is 0 for the one that the call computes on, and INVALID_ARGUMENT where that is none. The call's
// handle is dead from then on; after a failure the call is as it was.
device_arena_status_t device_arena_call_defer(device_arena_deferred_t *deferred,
                                              device_arena_call_t call,
                                              device_arena_executor_t executor,
                                              struct device_arena_error_t *error);

// Blocks until the work of a deferred call has passed, or for so many nanoseconds at most, UINT64_MAX for as long as it
// takes, and answers what came of it: PENDING where the time was up first, and else what the work answered, DRIVER where that
// is no status. It may be asked again. INVALID_ARGUMENT on the worker of the host's queue that is to do the work.
device_arena_status_t device_arena_call_wait(device_arena_deferred_t deferred,
                                             uint64_t nanoseconds,
                                             struct device_arena_error_t *error);

// Whether the work of a deferred call has passed: 1 or 0. Never blocks.
device_arena_status_t device_arena_deferred_is_done(device_arena_deferred_t deferred,
                                                    uint32_t *done_out,
                                                    struct device_arena_error_t *error);

// Makes all work that is queued on the executor from now on wait for a deferred call, without the host.
device_arena_status_t device_arena_executor_order_after(device_arena_executor_t executor,
                                                        device_arena_deferred_t deferred,
                                                        struct device_arena_error_t *error);

// Lets a deferred result go. Its work goes on, and holds the arena until it has passed.
device_arena_status_t device_arena_deferred_free(device_arena_deferred_t deferred,
                                                 struct device_arena_error_t *error);

// Makes a view a tensor of DLPack without copying: a `DLManagedTensorVersioned` of version 1, flagged as read-only. Until
// its consumer calls its deleter, the view's arena is held as by a reader, and a begin is CONTENDED. `type_code`, `bits` and
// `lanes` are those of `DLDataType`, and `shape` has `ndim` extents whose elements are all bytes of the view: null for one
// dimension of as many as there are. A device's tensor is for the stream of `executor`, which waits for the work of the
// view's call: 0 for the executor that the call computed on. A consumer on another stream waits by itself before, and is done
// before it calls the deleter.
//
// # Safety
//
// `shape` is null or to `ndim` extents.
device_arena_status_t device_arena_view_dlpack(struct DLManagedTensorVersioned **tensor,
                                               device_arena_view_t view,
                                               device_arena_executor_t executor,
                                               uint8_t type_code,
                                               uint8_t bits,
                                               uint16_t lanes,
                                               int32_t ndim,
                                               const int64_t *shape,
                                               struct device_arena_error_t *error);

// The host, with a queue of its own.
device_arena_status_t device_arena_executor_host(device_arena_executor_t *executor,
                                                 device_arena_library_t library,
                                                 struct device_arena_error_t *error);

// The first GPU that a driver offers, and the host where no driver or no device exists. Any other failure is one, not a
// slow run.
device_arena_status_t device_arena_executor_best(device_arena_executor_t *executor,
                                                 device_arena_library_t library,
                                                 struct device_arena_error_t *error);

// The device of that number among all GPUs, with a stream of its own: NVIDIA's come first, then AMD's. UNAVAILABLE where
// there is none of that number, or no driver at all.
device_arena_status_t device_arena_executor_vram(device_arena_executor_t *executor,
                                                 device_arena_library_t library,
                                                 uint32_t number,
                                                 struct device_arena_error_t *error);

// A device by its vendor, a `device_arena_vendor_t`, and its ordinal as that vendor's driver counts it.
device_arena_status_t device_arena_executor_of_vendor(device_arena_executor_t *executor,
                                                      device_arena_library_t library,
                                                      int32_t vendor,
                                                      uint32_t ordinal,
                                                      struct device_arena_error_t *error);

// An executor on a stream that somebody else made: a `CUstream` or a `hipStream_t`, by its vendor, a
// `device_arena_vendor_t`. Null and the handles of default streams are refused. `release`, which may be null, is called
// with `user_data` once the stream is not used any more; after a failure it is not, and never will be.
//
// # Safety
//
// `stream` is a live stream of that vendor, and it and its context live until `release` is called.
device_arena_status_t device_arena_executor_adopt(device_arena_executor_t *executor,
                                                  device_arena_library_t library,
                                                  int32_t vendor,
                                                  void *stream,
                                                  void *user_data,
                                                  device_arena_release_t release,
                                                  struct device_arena_error_t *error);

// Lets the executor go. Arenas that were made for it go on, and keep it alive.
device_arena_status_t device_arena_executor_free(device_arena_executor_t executor,
                                                 struct device_arena_error_t *error);

// Whose driver the executor computes with.
device_arena_status_t device_arena_executor_vendor(device_arena_executor_t executor,
                                                   device_arena_vendor_t *vendor_out,
                                                   struct device_arena_error_t *error);

// Describes the device that the executor computes on.
device_arena_status_t device_arena_executor_describe(device_arena_executor_t executor,
                                                     struct device_arena_device_t *device_out,
                                                     struct device_arena_error_t *error);

// The executor's stream for launches and libraries that take one: a `CUstream` or a `hipStream_t`. It lives as long as the
// executor does.
device_arena_status_t device_arena_executor_stream(device_arena_executor_t executor,
                                                   void **stream_out,
                                                   struct device_arena_error_t *error);

// Blocks until everything that is queued on the executor has passed. INVALID_ARGUMENT on the queue's own worker; DRIVER for
// an error of the queued work.
device_arena_status_t device_arena_executor_synchronize(device_arena_executor_t executor,
                                                        struct device_arena_error_t *error);

// Loads the drivers that there are, once a process. A machine without any has the host alone, which is no failure, and
// neither is a driver that is broken: whoever asks for its devices is told.
device_arena_status_t device_arena_library_load(device_arena_library_t *library,
                                                struct device_arena_error_t *error);

// Lets the library go. Whatever was made with it goes on: the drivers go with the last of that.
device_arena_status_t device_arena_library_free(device_arena_library_t library,
                                                struct device_arena_error_t *error);

// How many GPUs the drivers offer: NVIDIA's first, then AMD's. UNAVAILABLE or DRIVER for a driver that is there and fails.
device_arena_status_t device_arena_library_device_count(device_arena_library_t library,
                                                        uint32_t *count_out,
                                                        struct device_arena_error_t *error);

// The room's address on the host, and its size in bytes, which `bytes_out` takes and may be null. Both hold until the output
// is published or freed. DEVICE for a device's memory; PENDING while a device may use the room.
device_arena_status_t device_arena_output_data(device_arena_output_t output,
                                               void **data_out,
                                               uint64_t *bytes_out,
                                               struct device_arena_error_t *error);

// The room's address for a device's kernels. Work that uses it is to be queued on the executor's stream before the call
// ends. INVALID_ARGUMENT for host pages, which no device has been told of.
device_arena_status_t device_arena_output_device_pointer(device_arena_output_t output,
                                                         void **pointer_out,
                                                         struct device_arena_error_t *error);

// Copies bytes of the host's into the room, which has as many: in the stream's order for a device's, and done with them when
// it returns.
//
// # Safety
//
// `data` is to `bytes` bytes, or null for none.
device_arena_status_t device_arena_output_write(device_arena_output_t output,
                                                const void *data,
                                                uint64_t bytes,
                                                struct device_arena_error_t *error);

// Copies all bytes of a view into the room, which has as many: from any arena to any other, but not between two vendors'
// devices.
device_arena_status_t device_arena_output_copy_from_view(device_arena_output_t output,
                                                         device_arena_view_t view,
                                                         struct device_arena_error_t *error);

// Makes the room a view, which can be read once the call has finished. The output's handle is dead from then on.
device_arena_status_t device_arena_output_publish(device_arena_view_t *view,
                                                  device_arena_output_t output,
                                                  struct device_arena_error_t *error);

// Makes the first `bytes` bytes of the room a view. The rest stays taken until the arena is rewound.
device_arena_status_t device_arena_output_publish_prefix(device_arena_view_t *view,
                                                         device_arena_output_t output,
                                                         uint64_t bytes,
                                                         struct device_arena_error_t *error);

// Drops an output that is not published: nothing of it can be read.
device_arena_status_t device_arena_output_free(device_arena_output_t output,
                                               struct device_arena_error_t *error);

// Builds a plan of so many slots, in any order. `alignment` is what every slot and the arena are aligned to at least, 0 for 1;
// `total` is the arena's size, 0 for the end of the last slot. INVALID_ARGUMENT, and a message that names the slots, for a
// node that comes twice, a slot that is not aligned or ends beyond the total, nodes that share bytes while both are live
// and are no aliases, and the like.
//
// # Safety
//
// `slots` is to `count` slots, or null for none.
device_arena_status_t device_arena_plan_init(device_arena_plan_t *plan,
                                             device_arena_library_t library,
                                             const struct device_arena_slot_t *slots,
                                             uint64_t count,
                                             uint64_t alignment,
                                             uint64_t total,
                                             struct device_arena_error_t *error);

// Describes a plan.
device_arena_status_t device_arena_plan_describe(device_arena_plan_t plan,
                                                 struct device_arena_plan_description_t *description_out,
                                                 struct device_arena_error_t *error);

// A node's slot. INVALID_ARGUMENT for a node that the plan has not.
device_arena_status_t device_arena_plan_slot(device_arena_plan_t plan,
                                             uint64_t node,
                                             struct device_arena_slot_t *slot_out,
                                             struct device_arena_error_t *error);

// Lets a plan go. Arenas of it go on.
device_arena_status_t device_arena_plan_free(device_arena_plan_t plan, struct device_arena_error_t *error);

// Makes an arena of a plan: for a library in host pages, for an executor where it computes or in the placement that is asked
// for, a `device_arena_placement_t`. Nothing is allocated before the first run, and all bytes are zero then.
device_arena_status_t device_arena_planned_init(device_arena_planned_t *planned,
                                                device_arena_source_t source,
                                                device_arena_plan_t plan,
                                                int32_t placement,
                                                struct device_arena_error_t *error);

// Frees a planned arena: views of its runs are stale from then on. A run or a guard that is alive then goes on.
device_arena_status_t device_arena_planned_free(device_arena_planned_t planned,
                                                struct device_arena_error_t *error);

// Where the bytes are.
device_arena_status_t device_arena_planned_describe(device_arena_planned_t planned,
                                                    struct device_arena_description_t *description_out,
                                                    struct device_arena_error_t *error);

// What the planned arena has done so far.
device_arena_status_t device_arena_planned_stats(device_arena_planned_t planned,
                                                 struct device_arena_stats_t *stats_out,
                                                 struct device_arena_error_t *error);

// Whether the plan has the node: 1 or 0.
device_arena_status_t device_arena_planned_has(device_arena_planned_t planned,
                                               uint64_t node,
                                               uint32_t *has_out,
                                               struct device_arena_error_t *error);

// A node's slot: where it begins and how large it is. INVALID_ARGUMENT for a node that the plan has not.
device_arena_status_t device_arena_planned_slot(device_arena_planned_t planned,
                                                uint64_t node,
                                                struct device_arena_slot_t *slot_out,
                                                struct device_arena_error_t *error);

// Where a node begins, in bytes from the arena's start.
device_arena_status_t device_arena_planned_byte_offset(device_arena_planned_t planned,
                                                       uint64_t node,
                                                       uint64_t *offset_out,
                                                       struct device_arena_error_t *error);

// Where a node begins, in elements of so many bytes from the arena's start, in the 32 bits of a push constant.
// INVALID_ARGUMENT where it begins between two elements, or does not fit.
device_arena_status_t device_arena_planned_elem_offset(device_arena_planned_t planned,
                                                       uint64_t node,
                                                       uint32_t element_bytes,
                                                       uint32_t *offset_out,
                                                       struct device_arena_error_t *error);

// As `device_arena_planned_elem_offset`, in 64 bits.
device_arena_status_t device_arena_planned_elem_offset_64(device_arena_planned_t planned,
                                                          uint64_t node,
                                                          uint32_t element_bytes,
                                                          uint64_t *offset_out,
                                                          struct device_arena_error_t *error);

// A view of all bytes, as the last finished run has left them. PENDING before the first has finished.
device_arena_status_t device_arena_planned_last(device_arena_view_t *view,
                                                device_arena_planned_t planned,
                                                struct device_arena_error_t *error);

// Asks the drivers what a pointer is. What none claims is unregistered: pageable host memory, null, and also freed pointers.
// The pointer is not read through. A query that fails is DRIVER, never a guess.
//
// # Safety
//
// The memory stays allocated while the answer is used.
device_arena_status_t device_arena_pointer_classify(device_arena_library_t library,
                                                    const void *pointer,
                                                    struct device_arena_pointer_info_t *info_out,
                                                    struct device_arena_error_t *error);

// As `device_arena_pointer_classify`, of so many bytes: INVALID_ARGUMENT where they leave the allocation that they begin in,
// and for null. Nothing is asked for 0 bytes.
//
// # Safety
//
// As `device_arena_pointer_classify`.
device_arena_status_t device_arena_pointer_classify_range(device_arena_library_t library,
                                                          const void *pointer,
                                                          uint64_t bytes,
                                                          struct device_arena_pointer_info_t *info_out,
                                                          struct device_arena_error_t *error);

// Begins a run: earlier views are stale, and the bytes are as the last run left them. CONTENDED while a run, deferred work or
// a reader holds the arena.
device_arena_status_t device_arena_run_begin(device_arena_run_t *run,
                                             device_arena_planned_t planned,
                                             struct device_arena_error_t *error);

// Begins a run, and waits for the arena to be free for so many nanoseconds at most.
device_arena_status_t device_arena_run_begin_timeout(device_arena_run_t *run,
                                                     device_arena_planned_t planned,
                                                     uint64_t nanoseconds,
                                                     struct device_arena_error_t *error);

// Writes `count` elements of `element_bytes` bytes each from element `first` of a slot on. As many as the slot holds are
// written, and `moved_out`, which may be null, is told how many. INVALID_ARGUMENT for a start beyond the slot.
//
// # Safety
//
// `data` is to as many elements, or null for none.
device_arena_status_t device_arena_run_write(device_arena_run_t run,
                                             uint64_t node,
                                             uint64_t first,
                                             uint32_t element_bytes,
                                             const void *data,
                                             uint64_t count,
                                             uint64_t *moved_out,
                                             struct device_arena_error_t *error);

// Reads `count` elements of `element_bytes` bytes each from element `first` of a slot on, as `device_arena_run_write` writes
// them.
//
// # Safety
//
// `data` is to room for as many elements that nobody else uses meanwhile, or null for none.
device_arena_status_t device_arena_run_read(device_arena_run_t run,
                                            uint64_t node,
                                            uint64_t first,
                                            uint32_t element_bytes,
                                            void *data,
                                            uint64_t count,
                                            uint64_t *moved_out,
                                            struct device_arena_error_t *error);

// Reads `count` elements of `element_bytes` bytes each from element `first` of the *arena* on, across slots. As many as there
// are are read, and `moved_out`, which may be null, is told how many.
//
// # Safety
//
// As `device_arena_run_read`.
device_arena_status_t device_arena_run_read_at(device_arena_run_t run,
                                               uint64_t first,
                                               uint32_t element_bytes,
                                               void *data,
                                               uint64_t count,
                                               uint64_t *moved_out,
                                               struct device_arena_error_t *error);

// A slot's address for a device's kernels, which use it in the order of the executor's stream. INVALID_ARGUMENT for host pages.
device_arena_status_t device_arena_run_device_pointer(device_arena_run_t run,
                                                      uint64_t node,
                                                      void **pointer_out,
                                                      struct device_arena_error_t *error);

// The arena's first address on the host, which offsets of the plan count from, and its size, which `bytes_out` takes and may
// be null; it holds until the run ends.
// DEVICE for a device's memory; PENDING while a device may use it.
device_arena_status_t device_arena_run_data(device_arena_run_t run,
                                            void **data_out,
                                            uint64_t *bytes_out,
                                            struct device_arena_error_t *error);

// Ends a run, and answers a view of all bytes as it has left them, which slices look at slot by slot. The handle is dead
// from then on. It waits for nothing.
device_arena_status_t device_arena_run_finish(device_arena_view_t *view,
                                              device_arena_run_t run,
                                              struct device_arena_error_t *error);

// Leaves a run to the work that is queued on the executor now: the arena is held until that has passed. `executor` is 0 for
// the one that the arena was made for. The handle is dead from then on; after a failure the run is as it was.
device_arena_status_t device_arena_run_defer(device_arena_deferred_t *deferred,
                                             device_arena_view_t *view,
                                             device_arena_run_t run,
                                             device_arena_executor_t executor,
                                             struct device_arena_error_t *error);

// Ends a run without a result: the bytes are as it left them, and views of it are stale. The handle is dead from then on.
device_arena_status_t device_arena_run_abandon(device_arena_run_t run,
                                               struct device_arena_error_t *error);

// Begins a scope of scratch room in a call.
device_arena_status_t device_arena_call_scratch_begin(device_arena_scratch_t *scratch,
                                                      device_arena_call_t call,
                                                      struct device_arena_error_t *error);

// Room for so many bytes until the scope ends, on the host: it shows what it held before. The scope is the innermost that is
// open. DEVICE for the arena of a device.
device_arena_status_t device_arena_call_scratch_take(device_arena_call_t call,
                                                     device_arena_scratch_t scratch,
                                                     uint64_t bytes,
                                                     void **data_out,
                                                     struct device_arena_error_t *error);

// Room for so many bytes until the scope ends, for a device's kernels. Work that uses it is to be queued on the executor's
// stream before the scope ends. INVALID_ARGUMENT for host pages.
device_arena_status_t device_arena_call_scratch_take_on_device(device_arena_call_t call,
                                                               device_arena_scratch_t scratch,
                                                               uint64_t bytes,
                                                               void **pointer_out,
                                                               struct device_arena_error_t *error);

// Ends a scope, which is the innermost that is open: its room is free again. Scopes that are open when their call ends go
// with it.
device_arena_status_t device_arena_call_scratch_end(device_arena_call_t call,
                                                    device_arena_scratch_t scratch,
                                                    struct device_arena_error_t *error);

// Brings a tape to where the call computes. What is reachable there is used where it is, and the tape's memory has to live
// until the work that reads it has passed; what is not is copied into the call's arena, where it is until the next call.
device_arena_status_t device_arena_call_stage(device_arena_call_t call,
                                              device_arena_tape_t tape,
                                              struct device_arena_staged_t *staged_out,
                                              struct device_arena_error_t *error);

// Copies all bytes of a view that the call published to the host's memory, before the call's end: `bytes` is as many as the
// view has. From a device it waits for what the call has queued so far. INVALID_ARGUMENT for the view of another call.
//
// # Safety
//
// `data` is to `bytes` bytes that nobody else uses meanwhile, or null for none.
device_arena_status_t device_arena_call_collect(device_arena_call_t call,
                                                device_arena_view_t view,
                                                void *data,
                                                uint64_t bytes,
                                                struct device_arena_error_t *error);

// The ABI version of the library that was loaded, to be held against `DEVICE_ARENA_ABI_VERSION`.
uint32_t device_arena_abi_version(void);

// The name of a status, such as "CONTENDED"; "UNKNOWN" for a number that is none. It is never freed.
const char *device_arena_status_name(int32_t status);

// A tape over the host's memory; no driver is asked. `offset_type` is a `device_arena_offsets_t`. There is one more offset
// than there are items, or none for no items; they never decrease, none is negative, and the last lies within the bytes: or
// else INVALID_ARGUMENT, and a message that names the first that is wrong.
//
// # Safety
//
// `bytes` and `offsets` are to as many bytes and offsets, or null for none; both live, and nobody writes them, until the
// tape is freed and work that reads it has passed.
device_arena_status_t device_arena_tape_of_span(device_arena_tape_t *tape,
                                                device_arena_library_t library,
                                                const void *bytes,
                                                uint64_t byte_count,
                                                const void *offsets,
                                                uint64_t offset_count,
                                                int32_t offset_type,
                                                struct device_arena_error_t *error);

// A tape over any memory: the drivers are asked what the pointers are. The bytes may be a device's; offsets have to be the
// host's to read, and are DEVICE else. As `device_arena_tape_of_span` otherwise.
//
// # Safety
//
// As `device_arena_tape_of_span`. For memory that no driver claims, nobody but the caller can vouch for that.
device_arena_status_t device_arena_tape_of_pointer(device_arena_tape_t *tape,
                                                   device_arena_library_t library,
                                                   const void *bytes,
                                                   uint64_t byte_count,
                                                   const void *offsets,
                                                   uint64_t offset_count,
                                                   int32_t offset_type,
                                                   struct device_arena_error_t *error);

// Describes a tape.
device_arena_status_t device_arena_tape_describe(device_arena_tape_t tape,
                                                 struct device_arena_tape_description_t *description_out,
                                                 struct device_arena_error_t *error);

// An item's address and size. DEVICE where its bytes are a device's; INVALID_ARGUMENT beyond the last.
device_arena_status_t device_arena_tape_item(device_arena_tape_t tape,
                                             uint64_t index,
                                             const void **data_out,
                                             uint64_t *bytes_out,
                                             struct device_arena_error_t *error);

// Lets a tape go. Its memory is the caller's.
device_arena_status_t device_arena_tape_free(device_arena_tape_t tape, struct device_arena_error_t *error);

// Describes a view: a stale one too.
device_arena_status_t device_arena_view_describe(device_arena_view_t view,
                                                 struct device_arena_view_description_t *description_out,
                                                 struct device_arena_error_t *error);

// Holds the bytes for reading on the host: no call can begin until `device_arena_view_read_end`, until which the address
// holds. `bytes_out` may be null. INVALID_ARGUMENT for a stale view; DEVICE for a device's memory; PENDING before the call has
// finished.
device_arena_status_t device_arena_view_read_begin(device_arena_guard_t *guard,
                                                   device_arena_view_t view,
                                                   const void **data_out,
                                                   uint64_t *bytes_out,
                                                   struct device_arena_error_t *error);

// Holds the bytes for work on a device, and orders the reader's stream after the work of the view's call: 0 for the executor
// that the view's call computed on. No call can begin until `device_arena_view_read_end`, and the next one's work then waits
// for what the reader has queued by that time. INVALID_ARGUMENT for a stale view, and for host pages.
device_arena_status_t device_arena_view_device_pointer(device_arena_guard_t *guard,
                                                       device_arena_view_t view,
                                                       device_arena_executor_t executor,
                                                       const void **pointer_out,
                                                       struct device_arena_error_t *error);

// Ends the reading that either of the two functions above began.
device_arena_status_t device_arena_view_read_end(device_arena_guard_t guard,
                                                 struct device_arena_error_t *error);

// Copies all bytes of a view to the host's memory, from a device's too: `bytes` is as many as the view has. It waits for the
// work of the view's call.
//
// # Safety
//
// `data` is to `bytes` bytes that nobody else uses meanwhile, or null for none.
device_arena_status_t device_arena_view_copy_to_host(device_arena_view_t view,
                                                     void *data,
                                                     uint64_t bytes,
                                                     struct device_arena_error_t *error);

// A view of some of a view's bytes: `bytes` from byte `start` on.
device_arena_status_t device_arena_view_slice(device_arena_view_t *slice,
                                              device_arena_view_t view,
                                              uint64_t start,
                                              uint64_t bytes,
                                              struct device_arena_error_t *error);

// Lets a view go. Guards of it go on.
device_arena_status_t device_arena_view_free(device_arena_view_t view, struct device_arena_error_t *error);

// Makes an output that grows, with room for so many bytes to begin with. A tape is written by two: one for the bytes, and
// one for the offsets. DEVICE for the arena of a device.
device_arena_status_t device_arena_call_writer(device_arena_writer_t *writer,
                                               device_arena_call_t call,
                                               uint64_t capacity,
                                               struct device_arena_error_t *error);

// Writes more bytes behind those that are written. After a failure none is.
//
// # Safety
//
// `data` is to `bytes` bytes, or null for none.
device_arena_status_t device_arena_writer_append(device_arena_writer_t writer,
                                                 const void *data,
                                                 uint64_t bytes,
                                                 struct device_arena_error_t *error);

// How many bytes are written.
device_arena_status_t device_arena_writer_bytes(device_arena_writer_t writer,
                                                uint64_t *bytes_out,
                                                struct device_arena_error_t *error);

// Makes what is written a view, which can be read once the call has finished. The writer's handle is dead from then on.
device_arena_status_t device_arena_writer_publish(device_arena_view_t *view,
                                                  device_arena_writer_t writer,
                                                  struct device_arena_error_t *error);

// Drops a writer that is not published: nothing of it can be read.
device_arena_status_t device_arena_writer_free(device_arena_writer_t writer,
                                               struct device_arena_error_t *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DEVICE_ARENA_C_H */
