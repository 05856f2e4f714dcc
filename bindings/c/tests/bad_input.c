// Whatever a caller gets wrong is a status: null, nothing, numbers that nobody gave out, handles that are dead or of others.
#include <stdlib.h>

#include "check.h"

static int nobody(device_arena_call_t call, void *user_data) {
  (void)call;
  (void)user_data;
  return 0;
}

// Every function, with null wherever it can be passed, and then with the handle that is asked about.
static void refuses(uint64_t handle) {
  const uint64_t h = handle, lib = on.library;
  uint64_t out = 7;
  uint32_t number;
  device_arena_vendor_t vendor;
  void *pointer;
  const void *data;
  unsigned char byte = 0;
  device_arena_description_t description;
  device_arena_stats_t stats;
  device_arena_device_t device;
  device_arena_view_description_t view;
  device_arena_tape_description_t tape;
  device_arena_staged_t staged;
  device_arena_pointer_info_t info;
  device_arena_plan_description_t plan;
  device_arena_slot_t slot;
  device_arena_copy_t copy = {0, 0, 0, 0, 0};
  struct DLManagedTensorVersioned *tensor;

  ANSWERS(INVALID, device_arena_library_free(h, &error));
  ANSWERS(INVALID, device_arena_library_device_count(h, &number, &error));
  ANSWERS(INVALID, device_arena_executor_host(&out, h, &error));
  CHECK(out == 0);
  ANSWERS(INVALID, device_arena_executor_best(&out, h, &error));
  ANSWERS(INVALID, device_arena_executor_vram(&out, h, 0, &error));
  ANSWERS(INVALID, device_arena_executor_of_vendor(&out, h, 0, 0, &error));
  ANSWERS(INVALID, device_arena_executor_adopt(&out, h, 1, NULL, NULL, NULL, &error));
  ANSWERS(INVALID, device_arena_executor_free(h, &error));
  ANSWERS(INVALID, device_arena_executor_vendor(h, &vendor, &error));
  ANSWERS(INVALID, device_arena_executor_describe(h, &device, &error));
  ANSWERS(INVALID, device_arena_executor_stream(h, &pointer, &error));
  ANSWERS(INVALID, device_arena_executor_synchronize(h, &error));
  ANSWERS(INVALID, device_arena_executor_order_after(h, h, &error));
  ANSWERS(INVALID, device_arena_init(&out, h, &error));
  ANSWERS(INVALID, device_arena_init_with_options(&out, h, NULL, &error));
  ANSWERS(INVALID, device_arena_free(h, &error));
  ANSWERS(INVALID, device_arena_describe(h, &description, &error));
  ANSWERS(INVALID, device_arena_stats(h, &stats, &error));
  ANSWERS(INVALID, device_arena_reserve(h, 1, &error));
  ANSWERS(INVALID, device_arena_trim(h, &out, &error));
  ANSWERS(INVALID, device_arena_call_begin(&out, h, 0, &error));
  ANSWERS(INVALID, device_arena_call_begin_timeout(&out, h, 0, 1, &error));
  ANSWERS(INVALID, device_arena_call_output(&out, h, 1, &error));
  ANSWERS(INVALID, device_arena_call_scratch_begin(&out, h, &error));
  ANSWERS(INVALID, device_arena_call_scratch_take(h, h, 1, &pointer, &error));
  ANSWERS(INVALID, device_arena_call_scratch_take_on_device(h, h, 1, &pointer, &error));
  ANSWERS(INVALID, device_arena_call_scratch_end(h, h, &error));
  ANSWERS(INVALID, device_arena_call_stage(h, h, &staged, &error));
  ANSWERS(INVALID, device_arena_call_collect(h, h, &byte, 1, &error));
  ANSWERS(INVALID, device_arena_call_finish(h, &error));
  ANSWERS(INVALID, device_arena_call_abandon(h, &error));
  ANSWERS(INVALID, device_arena_call_defer(&out, h, 0, &error));
  ANSWERS(INVALID, device_arena_call_defer_work(&out, h, 0, nobody, NULL, NULL, &error));
  ANSWERS(INVALID, device_arena_call_wait(h, 0, &error));
  ANSWERS(INVALID, device_arena_deferred_is_done(h, &number, &error));
  ANSWERS(INVALID, device_arena_deferred_free(h, &error));
  ANSWERS(INVALID, device_arena_output_data(h, &pointer, &out, &error));
  ANSWERS(INVALID, device_arena_output_device_pointer(h, &pointer, &error));
  ANSWERS(INVALID, device_arena_output_write(h, &byte, 1, &error));
  ANSWERS(INVALID, device_arena_output_copy_from_view(h, h, &error));
  ANSWERS(INVALID, device_arena_output_publish(&out, h, &error));
  ANSWERS(INVALID, device_arena_output_publish_prefix(&out, h, 0, &error));
  ANSWERS(INVALID, device_arena_output_free(h, &error));
  ANSWERS(INVALID, device_arena_view_describe(h, &view, &error));
  ANSWERS(INVALID, device_arena_view_read_begin(&out, h, &data, NULL, &error));
  ANSWERS(INVALID, device_arena_view_device_pointer(&out, h, 0, &data, &error));
  ANSWERS(INVALID, device_arena_view_read_end(h, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(h, &byte, 1, &error));
  ANSWERS(INVALID, device_arena_view_slice(&out, h, 0, 0, &error));
  ANSWERS(INVALID, device_arena_view_free(h, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, h, 0, 1, 8, 1, 1, NULL, &error));
  CHECK(tensor == NULL);
  ANSWERS(INVALID, device_arena_tape_of_span(&out, h, NULL, 0, NULL, 0, 0, &error));
  ANSWERS(INVALID, device_arena_tape_of_pointer(&out, h, NULL, 0, NULL, 0, 0, &error));
  ANSWERS(INVALID, device_arena_tape_describe(h, &tape, &error));
  ANSWERS(INVALID, device_arena_tape_item(h, 0, &data, &out, &error));
  ANSWERS(INVALID, device_arena_tape_free(h, &error));
  ANSWERS(INVALID, device_arena_pointer_classify(h, &byte, &info, &error));
  ANSWERS(INVALID, device_arena_pointer_classify_range(h, &byte, 1, &info, &error));
  ANSWERS(INVALID, device_arena_plan_init(&out, h, NULL, 0, 0, 0, &error));
  ANSWERS(INVALID, device_arena_plan_describe(h, &plan, &error));
  ANSWERS(INVALID, device_arena_plan_slot(h, 0, &slot, &error));
  ANSWERS(INVALID, device_arena_plan_free(h, &error));
  ANSWERS(INVALID, device_arena_planned_init(&out, lib, h, 0, &error));
  ANSWERS(INVALID, device_arena_planned_init(&out, h, h, 0, &error));
  ANSWERS(INVALID, device_arena_planned_free(h, &error));
  ANSWERS(INVALID, device_arena_planned_describe(h, &description, &error));
  ANSWERS(INVALID, device_arena_planned_stats(h, &stats, &error));
  ANSWERS(INVALID, device_arena_planned_has(h, 0, &number, &error));
  ANSWERS(INVALID, device_arena_planned_slot(h, 0, &slot, &error));
  ANSWERS(INVALID, device_arena_planned_byte_offset(h, 0, &out, &error));
  ANSWERS(INVALID, device_arena_planned_elem_offset(h, 0, 4, &number, &error));
  ANSWERS(INVALID, device_arena_planned_elem_offset_64(h, 0, 4, &out, &error));
  ANSWERS(INVALID, device_arena_planned_last(&out, h, &error));
  ANSWERS(INVALID, device_arena_run_begin(&out, h, &error));
  ANSWERS(INVALID, device_arena_run_begin_timeout(&out, h, 1, &error));
  ANSWERS(INVALID, device_arena_run_write(h, 0, 0, 1, &byte, 1, NULL, &error));
  ANSWERS(INVALID, device_arena_run_read(h, 0, 0, 1, &byte, 1, NULL, &error));
  ANSWERS(INVALID, device_arena_run_read_at(h, 0, 1, &byte, 1, NULL, &error));
  ANSWERS(INVALID, device_arena_run_copy_prefix(h, 0, 0, 1, 1, NULL, &error));
  ANSWERS(INVALID, device_arena_run_copy_range(h, 0, 0, 0, 0, 1, 1, NULL, &error));
  ANSWERS(INVALID, device_arena_run_copies(h, &copy, 1, 1, NULL, &error));
  ANSWERS(INVALID, device_arena_run_copy_into(h, h, &error));
  ANSWERS(INVALID, device_arena_run_clear(h, 0, &error));
  ANSWERS(INVALID, device_arena_run_device_pointer(h, 0, &pointer, &error));
  ANSWERS(INVALID, device_arena_run_data(h, &pointer, NULL, &error));
  ANSWERS(INVALID, device_arena_run_finish(&out, h, &error));
  ANSWERS(INVALID, device_arena_run_defer(&out, &out, h, 0, &error));
  ANSWERS(INVALID, device_arena_run_abandon(h, &error));
}

static void no_handle_at_all(void) {
  refuses(0);
}

static void numbers_that_nobody_gave_out(void) {
  refuses(1);
  refuses(UINT64_MAX);
  refuses((uint64_t)3 << 56 | (uint64_t)9 << 32 | 12345);
}

static void a_handle_of_another_kind(void) {
  // A guard's is asked for by read_end alone: it is the kind that all others refuse.
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 64, 0);
  device_arena_guard_t guard = 0;
  const void *data;
  if (on.is_device) {
    ANSWERS(OK, device_arena_view_device_pointer(&guard, view, 0, &data, &error));
  } else {
    ANSWERS(OK, device_arena_view_read_begin(&guard, view, &data, NULL, &error));
  }
  ANSWERS(INVALID, device_arena_free(guard, &error));
  SAYS("guard");
  ANSWERS(INVALID, device_arena_view_free(arena, &error));
  ANSWERS(INVALID, device_arena_call_finish(view, &error));
  ANSWERS(INVALID, device_arena_init(&arena, view, &error));
  CHECK(arena == 0);
  ANSWERS(OK, device_arena_view_read_end(guard, &error));
  ANSWERS(INVALID, device_arena_view_read_end(guard, &error));
  refuses(guard);
  ANSWERS(OK, device_arena_view_free(view, &error));
  refuses(view);
}

static void a_dead_handle_stays_dead_when_its_place_is_used_again(void) {
  device_arena_t dead[8], alive[8];
  for (size_t i = 0; i < LENGTH(dead); i++) dead[i] = new_arena();
  for (size_t i = 0; i < LENGTH(dead); i++) ANSWERS(OK, device_arena_free(dead[i], &error));
  for (size_t i = 0; i < LENGTH(alive); i++) alive[i] = new_arena();
  for (size_t i = 0; i < LENGTH(dead); i++) {
    for (size_t j = 0; j < LENGTH(alive); j++) CHECK(dead[i] != alive[j]);
    ANSWERS(INVALID, device_arena_free(dead[i], &error));
    SAYS("was freed");
  }
  for (size_t i = 0; i < LENGTH(alive); i++) ANSWERS(OK, device_arena_free(alive[i], &error));
}

static void places_that_are_null(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 64, 0);
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_guard_t guard = 0;
  const void *data;
  void *pointer;
  uint64_t out;
  ANSWERS(INVALID, device_arena_library_load(NULL, &error));
  SAYS("library is null");
  ANSWERS(INVALID, device_arena_library_device_count(on.library, NULL, &error));
  ANSWERS(INVALID, device_arena_executor_host(NULL, on.library, &error));
  ANSWERS(INVALID, device_arena_executor_vendor(on.executor, NULL, &error));
  ANSWERS(INVALID, device_arena_executor_describe(on.executor, NULL, &error));
  ANSWERS(INVALID, device_arena_executor_stream(on.executor, NULL, &error));
  ANSWERS(INVALID, device_arena_init(NULL, on.executor, &error));
  ANSWERS(INVALID, device_arena_describe(arena, NULL, &error));
  ANSWERS(INVALID, device_arena_stats(arena, NULL, &error));
  ANSWERS(INVALID, device_arena_call_begin(NULL, arena, 0, &error));
  ANSWERS(INVALID, device_arena_view_describe(view, NULL, &error));
  ANSWERS(INVALID, device_arena_view_read_begin(NULL, view, &data, &out, &error));
  ANSWERS(INVALID, device_arena_view_read_begin(&guard, view, NULL, &out, &error));
  ANSWERS(INVALID, device_arena_view_device_pointer(&guard, view, 0, NULL, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(view, NULL, 64, &error));
  ANSWERS(INVALID, device_arena_view_slice(NULL, view, 0, 1, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(NULL, view, 0, 1, 8, 1, 1, NULL, &error));
  ANSWERS(INVALID, device_arena_pointer_classify(on.library, &out, NULL, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(NULL, on.library, NULL, 0, NULL, 0, 0, &error));
  ANSWERS(INVALID, device_arena_plan_init(NULL, on.library, NULL, 0, 0, 0, &error));
  ANSWERS(INVALID, device_arena_plan_init(&out, on.library, NULL, 3, 0, 0, &error));

  // What was refused has left the arena free, and the record is for those who want one.
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, NULL));
  ANSWERS(INVALID, device_arena_call_output(NULL, call, 8, NULL));
  ANSWERS(OK, device_arena_call_output(&output, call, 8, NULL));
  ANSWERS(INVALID, device_arena_output_data(output, NULL, NULL, NULL));
  ANSWERS(INVALID, device_arena_output_device_pointer(output, NULL, NULL));
  ANSWERS(INVALID, device_arena_output_write(output, NULL, 8, NULL));
  ANSWERS(INVALID, device_arena_output_publish(NULL, output, NULL));
  ANSWERS(INVALID, device_arena_call_scratch_begin(NULL, call, NULL));
  ANSWERS(INVALID, device_arena_call_stage(call, 0, NULL, NULL));
  ANSWERS(INVALID, device_arena_call_defer(NULL, call, 0, NULL));
  ANSWERS(INVALID, device_arena_call_defer_work(&out, arena, 0, NULL, NULL, NULL, NULL));
  ANSWERS(INVALID, device_arena_call_scratch_take(call, 0, 1, NULL, NULL));
  ANSWERS(INVALID, device_arena_call_scratch_take(call, 0, 1, &pointer, NULL));
  ANSWERS(OK, device_arena_output_free(output, NULL));
  ANSWERS(OK, device_arena_call_finish(call, NULL));
  ANSWERS(OK, device_arena_view_free(view, NULL));
  ANSWERS(OK, device_arena_free(arena, NULL));
}

static void sizes_that_can_not_be(void) {
  device_arena_t arena = new_arena();
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_view_t view = 0, slice = 0;
  unsigned char none;
  ANSWERS(INVALID, device_arena_reserve(arena, UINT64_MAX, &error));
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(INVALID, device_arena_call_output(&output, call, UINT64_MAX, &error));
  CHECK(device_arena_call_output(&output, call, INT64_MAX, &error) != OK);
  CHECK(output == 0 && stats_of(arena).bytes_used == 0);
  ANSWERS(OK, device_arena_call_output(&output, call, 16, &error));
  ANSWERS(INVALID, device_arena_output_write(output, "", UINT64_MAX, &error));
  ANSWERS(INVALID, device_arena_output_write(output, "short", 5, &error));
  ANSWERS(INVALID, device_arena_output_publish_prefix(&view, output, 17, &error));
  ANSWERS(INVALID, device_arena_output_publish_prefix(&view, output, UINT64_MAX, &error));
  ANSWERS(OK, device_arena_output_publish_prefix(&view, output, 8, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(view, &none, UINT64_MAX, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(view, &none, 1, &error));
  ANSWERS(INVALID, device_arena_view_slice(&slice, view, 0, 9, &error));
  ANSWERS(INVALID, device_arena_view_slice(&slice, view, 9, 0, &error));
  ANSWERS(INVALID, device_arena_view_slice(&slice, view, INT64_MAX, INT64_MAX, &error));
  ANSWERS(OK, device_arena_view_slice(&slice, view, 8, 0, &error));
  ANSWERS(OK, device_arena_view_free(slice, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void sizes_of_nothing(void) {
  device_arena_t arena = new_arena();
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_view_t view = 0;
  device_arena_guard_t guard = 0;
  void *room = NULL;
  const void *data = NULL;
  uint64_t bytes = 7;
  ANSWERS(OK, device_arena_reserve(arena, 0, &error));
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, 0, &error));
  ANSWERS(OK, device_arena_output_write(output, NULL, 0, &error));
  if (!on.is_device) {
    ANSWERS(OK, device_arena_output_data(output, &room, &bytes, &error));
    CHECK(room != NULL && (uintptr_t)room % 64 == 0 && bytes == 0);
  }
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_view_copy_to_host(view, NULL, 0, &error));
  if (!on.is_device) {
    bytes = 7;
    ANSWERS(OK, device_arena_view_read_begin(&guard, view, &data, &bytes, &error));
    CHECK(data != NULL && bytes == 0);
    ANSWERS(OK, device_arena_view_read_end(guard, &error));
  }
  CHECK(stats_of(arena).allocations == 0);
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void options_that_can_not_be(void) {
  device_arena_t arena = 7;
  device_arena_options_t options;
  memset(&options, 0, sizeof options);
  options.alignment = 48;
  ANSWERS(INVALID, device_arena_init_with_options(&arena, on.executor, &options, &error));
  CHECK(arena == 0);
  memset(&options, 0, sizeof options);
  options.placement = 99;
  ANSWERS(INVALID, device_arena_init_with_options(&arena, on.executor, &options, &error));
  options.placement = DEVICE_ARENA_PLACEMENT_DEVICE;
  ANSWERS(INVALID, device_arena_init_with_options(&arena, on.library, &options, &error));
  memset(&options, 0, sizeof options);
  options.has_scrub = 1;
  options.scrub = 256;
  ANSWERS(INVALID, device_arena_init_with_options(&arena, on.executor, &options, &error));
}

static void a_driver_that_is_missing(void) {
  device_arena_executor_t executor = 7;
  uint32_t devices = 0;
  ANSWERS(OK, device_arena_library_device_count(on.library, &devices, &error));
  ANSWERS(UNAVAILABLE, device_arena_executor_vram(&executor, on.library, devices, &error));
  SAYS("there is no GPU");
  CHECK(executor == 0);
  ANSWERS(UNAVAILABLE, device_arena_executor_vram(&executor, on.library, UINT32_MAX, &error));
  ANSWERS(INVALID, device_arena_executor_of_vendor(&executor, on.library, 77, 0, &error));
  ANSWERS(INVALID, device_arena_executor_of_vendor(&executor, on.library, -1, 0, &error));
  // There are never more than one vendor's drivers here: the other's is missing.
  const int32_t other = on.vendor == DEVICE_ARENA_VENDOR_CUDA ? DEVICE_ARENA_VENDOR_ROCM : DEVICE_ARENA_VENDOR_CUDA;
  if (!on.is_device && devices != 0) return;
  ANSWERS(UNAVAILABLE, device_arena_executor_of_vendor(&executor, on.library, other, 0, &error));
  CHECK(strlen(error.message) > 20);
}

void test_bad_input(void) {
  RUN(no_handle_at_all);
  RUN(numbers_that_nobody_gave_out);
  RUN(a_handle_of_another_kind);
  RUN(a_dead_handle_stays_dead_when_its_place_is_used_again);
  RUN(places_that_are_null);
  RUN(sizes_that_can_not_be);
  RUN(sizes_of_nothing);
  RUN(options_that_can_not_be);
  RUN(a_driver_that_is_missing);
}
