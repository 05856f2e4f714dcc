// Tapes and pointers: offsets that keep the rules, memory whose class the drivers say.
#include "check.h"

static const char TEXT[] = "onetwothree";

static void a_tape_of_every_width(void) {
  const uint32_t u32[] = {0, 3, 6, 11};
  const uint64_t u64[] = {0, 3, 6, 11};
  const int32_t i32[] = {0, 3, 6, 11};
  const int64_t i64[] = {0, 3, 6, 11};
  const void *offsets[] = {u32, u64, i32, i64};
  for (int32_t type = 0; type < 4; type++) {
    for (int by_pointer = 0; by_pointer < 2; by_pointer++) {
      device_arena_tape_t tape = 0;
      device_arena_tape_description_t description;
      const void *data = NULL;
      uint64_t bytes = 0;
      ANSWERS(OK, by_pointer ? device_arena_tape_of_pointer(&tape, on.library, TEXT, 11, offsets[type], 4, type, &error)
                             : device_arena_tape_of_span(&tape, on.library, TEXT, 11, offsets[type], 4, type, &error));
      ANSWERS(OK, device_arena_tape_describe(tape, &description, &error));
      CHECK(description.items == 3 && description.bytes == 11 && description.device == -1);
      CHECK(description.memory == DEVICE_ARENA_MEMORY_UNREGISTERED);
      ANSWERS(OK, device_arena_tape_item(tape, 2, &data, &bytes, &error));
      CHECK(bytes == 5 && memcmp(data, "three", 5) == 0 && data == TEXT + 6);
      ANSWERS(INVALID, device_arena_tape_item(tape, 3, &data, &bytes, &error));
      ANSWERS(INVALID, device_arena_tape_item(tape, UINT64_MAX, &data, &bytes, &error));
      ANSWERS(INVALID, device_arena_tape_item(tape, 0, NULL, &bytes, &error));
      ANSWERS(INVALID, device_arena_tape_describe(tape, NULL, &error));
      ANSWERS(OK, device_arena_tape_free(tape, &error));
      ANSWERS(INVALID, device_arena_tape_free(tape, &error));
    }
  }
}

static void offsets_that_break_a_rule(void) {
  const int64_t decreasing[] = {0, 3, 2, 11}, beyond[] = {0, 3, 12}, negative[] = {-1, 3};
  const char *odd = TEXT + 1;
  const void *unaligned = (const void *)((uintptr_t)decreasing + 1);
  device_arena_tape_t tape = 7;
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, decreasing, 4, 3, &error));
  SAYS("offset 2 is 2");
  CHECK(tape == 0);
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, beyond, 3, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, negative, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, decreasing, 4, 4, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, decreasing, 4, -1, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, unaligned, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, NULL, 11, beyond, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, NULL, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, UINT64_MAX, beyond, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_span(&tape, on.library, TEXT, 11, beyond, UINT64_MAX, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_pointer(&tape, on.library, NULL, 11, beyond, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_pointer(&tape, on.library, TEXT, 11, NULL, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_pointer(&tape, on.library, TEXT, 11, unaligned, 2, 3, &error));
  ANSWERS(INVALID, device_arena_tape_of_pointer(&tape, on.library, TEXT, 11, decreasing, 4, 3, &error));
  // No items at all, with and without an offset.
  ANSWERS(OK, device_arena_tape_of_span(&tape, on.library, NULL, 0, NULL, 0, 3, &error));
  ANSWERS(OK, device_arena_tape_free(tape, &error));
  ANSWERS(OK, device_arena_tape_of_span(&tape, on.library, odd, 0, decreasing, 1, 3, &error));
  ANSWERS(OK, device_arena_tape_free(tape, &error));
}

static void a_tape_is_staged_where_the_call_computes(void) {
  const uint32_t offsets[] = {0, 3, 6, 11};
  device_arena_t arena = new_arena();
  device_arena_tape_t tape = 0;
  device_arena_call_t call = 0;
  device_arena_staged_t staged;
  device_arena_pointer_info_t info;
  ANSWERS(OK, device_arena_tape_of_span(&tape, on.library, TEXT, 11, offsets, 4, DEVICE_ARENA_OFFSETS_U32, &error));
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(INVALID, device_arena_call_stage(call, tape, NULL, &error));
  ANSWERS(OK, device_arena_call_stage(call, tape, &staged, &error));
  CHECK(staged.byte_count == 11 && staged.items == 3);
  // Offsets of 32 bits are widened, by a copy; the bytes are copied where the host's are out of reach.
  CHECK(staged.copied_bytes == 4 * sizeof(uint64_t) + (on.is_device ? 11u : 0u));
  ANSWERS(OK, device_arena_pointer_classify(on.library, staged.bytes, &info, &error));
  if (on.is_device) {
    CHECK(info.memory == DEVICE_ARENA_MEMORY_DEVICE && info.device == on.ordinal && info.vendor == on.vendor);
    CHECK(info.is_host_accessible == 0 && info.is_device_accessible == 1 && info.allocation_bytes > 0);
    ANSWERS(OK, device_arena_pointer_classify_range(on.library, staged.bytes, 11, &info, &error));
    ANSWERS(INVALID, device_arena_pointer_classify_range(on.library, staged.bytes, INT64_MAX, &info, &error));
  } else {
    CHECK(staged.bytes == TEXT && staged.offsets[3] == 11);
    CHECK(info.memory == DEVICE_ARENA_MEMORY_UNREGISTERED && info.device == -1 && info.is_host_accessible == 1);
  }
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(INVALID, device_arena_call_stage(call, tape, &staged, &error));
  ANSWERS(OK, device_arena_tape_free(tape, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_tape_over_a_devices_memory(void) {
  const uint64_t offsets[] = {0, 10, 64};
  device_arena_t arena = new_arena(), second = new_arena();
  device_arena_view_t view = published(arena, 64, 0);
  device_arena_guard_t guard = 0;
  device_arena_tape_t tape = 0;
  device_arena_tape_description_t description;
  device_arena_call_t call = 0;
  device_arena_staged_t staged;
  const void *device = NULL, *data = NULL;
  uint64_t bytes = 0;
  ANSWERS(OK, device_arena_view_device_pointer(&guard, view, 0, &device, &error));
  ANSWERS(DEVICE, device_arena_tape_of_pointer(&tape, on.library, device, 64, device, 3, 1, &error));
  ANSWERS(OK, device_arena_tape_of_pointer(&tape, on.library, device, 64, offsets, 3, 1, &error));
  ANSWERS(OK, device_arena_tape_describe(tape, &description, &error));
  CHECK(description.memory == DEVICE_ARENA_MEMORY_DEVICE && description.device == on.ordinal);
  ANSWERS(DEVICE, device_arena_tape_item(tape, 0, &data, &bytes, &error));
  ANSWERS(OK, device_arena_call_begin(&call, second, 0, &error));
  ANSWERS(OK, device_arena_call_stage(call, tape, &staged, &error));
  CHECK(staged.bytes == device && staged.copied_bytes == sizeof offsets);
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_tape_free(tape, &error));
  ANSWERS(OK, device_arena_view_read_end(guard, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(OK, device_arena_free(second, &error));
}

static void pointers_are_what_the_drivers_say(void) {
  device_arena_pointer_info_t info;
  int local = 0;
  ANSWERS(OK, device_arena_pointer_classify(on.library, &local, &info, &error));
  CHECK(info.memory == DEVICE_ARENA_MEMORY_UNREGISTERED && info.is_host_accessible == 1 && info.has_buffer_id == 0);
  CHECK(info.vendor == DEVICE_ARENA_VENDOR_HOST && info.device == -1);
  ANSWERS(OK, device_arena_pointer_classify(on.library, NULL, &info, &error));
  CHECK(info.memory == DEVICE_ARENA_MEMORY_UNREGISTERED);
  ANSWERS(INVALID, device_arena_pointer_classify_range(on.library, NULL, 1, &info, &error));
  ANSWERS(INVALID, device_arena_pointer_classify_range(on.library, &local, UINT64_MAX, &info, &error));
  ANSWERS(OK, device_arena_pointer_classify_range(on.library, NULL, 0, &info, &error));
  ANSWERS(OK, device_arena_pointer_classify_range(on.library, &local, sizeof local, &info, &error));
}

void test_tapes(void) {
  RUN(a_tape_of_every_width);
  RUN(offsets_that_break_a_rule);
  RUN(a_tape_is_staged_where_the_call_computes);
  RUN_ON_DEVICE(a_tape_over_a_devices_memory);
  RUN(pointers_are_what_the_drivers_say);
}
