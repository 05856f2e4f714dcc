// The promises of an arena: one allocation, stale views, one call at a time, memory that is out of the host's reach.
#include <stdlib.h>

#include "check.h"

static void an_arena_says_where_it_is(void) {
  device_arena_t arena = new_arena(), of_host = 0;
  device_arena_description_t description;
  device_arena_vendor_t vendor;
  ANSWERS(OK, device_arena_describe(arena, &description, &error));
  CHECK(description.residency == (on.is_device ? DEVICE_ARENA_RESIDENCY_VRAM : DEVICE_ARENA_RESIDENCY_RAM));
  CHECK(description.device == on.ordinal);
  ANSWERS(OK, device_arena_executor_vendor(on.executor, &vendor, &error));
  CHECK(vendor == on.vendor);
  ANSWERS(OK, device_arena_init(&of_host, on.library, &error));
  ANSWERS(OK, device_arena_describe(of_host, &description, &error));
  CHECK(description.residency == DEVICE_ARENA_RESIDENCY_RAM && description.device == -1);
  CHECK(stats_of(arena).allocations == 0 && stats_of(arena).bytes_reserved == 0);
  ANSWERS(OK, device_arena_free(of_host, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_steady_loop_allocates_once(void) {
  device_arena_t arena = new_arena();
  for (unsigned round = 0; round < 100; round++) {
    device_arena_view_t view = published(arena, 1000, round);
    CHECK(holds(view, 1000, round));
    ANSWERS(OK, device_arena_view_free(view, &error));
  }
  device_arena_stats_t stats = stats_of(arena);
  CHECK(stats.allocations == 1 && stats.frees == 0 && stats.rewinds == 100);
  CHECK(stats.bytes_used >= 1000 && stats.bytes_high_water == stats.bytes_used);
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_chain_is_replaced_by_one_block(void) {
  device_arena_t arena = new_arena();
  device_arena_call_t call = 0;
  device_arena_output_t outputs[3];
  device_arena_view_t views[3];
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  for (size_t i = 0; i < 3; i++) {
    unsigned char byte[100000];
    memset(byte, (int)i, sizeof byte);
    ANSWERS(OK, device_arena_call_output(&outputs[i], call, sizeof byte, &error));
    ANSWERS(OK, device_arena_output_write(outputs[i], byte, sizeof byte, &error));
  }
  CHECK(stats_of(arena).allocations > 1);
  for (size_t i = 0; i < 3; i++) ANSWERS(OK, device_arena_output_publish(&views[i], outputs[i], &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  for (size_t i = 0; i < 3; i++) {
    static unsigned char seen[100000];
    ANSWERS(OK, device_arena_view_copy_to_host(views[i], seen, sizeof seen, &error));
    CHECK(seen[0] == i && seen[99999] == i);
    ANSWERS(OK, device_arena_view_free(views[i], &error));
  }
  uint64_t allocations = 0;
  for (unsigned round = 0; round < 3; round++) {
    ANSWERS(OK, device_arena_view_free(published(arena, 290000, 1), &error));
    if (round == 0) allocations = stats_of(arena).allocations;
  }
  CHECK(stats_of(arena).allocations == allocations);
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_begin_makes_earlier_views_stale(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t old = published(arena, 64, 1), slice = 0, now = 0;
  device_arena_guard_t guard = 0;
  device_arena_view_description_t description;
  const void *data;
  unsigned char bytes[64];
  ANSWERS(OK, device_arena_view_slice(&slice, old, 8, 8, &error));
  CHECK(holds(slice, 8, 9));
  ANSWERS(OK, device_arena_view_describe(old, &description, &error));
  CHECK(description.is_current == 1 && description.bytes == 64 && description.generation == stats_of(arena).generation);
  now = published(arena, 64, 2);
  ANSWERS(OK, device_arena_view_describe(old, &description, &error));
  CHECK(description.is_current == 0 && description.arena.device == on.ordinal);
  // Stale comes before anything else that is wrong with a use.
  ANSWERS(INVALID, device_arena_view_copy_to_host(old, bytes, sizeof bytes, &error));
  SAYS("stale");
  ANSWERS(INVALID, device_arena_view_copy_to_host(old, bytes, 3, &error));
  SAYS("stale");
  ANSWERS(INVALID, device_arena_view_read_begin(&guard, old, &data, NULL, &error));
  SAYS("stale");
  ANSWERS(INVALID, device_arena_view_device_pointer(&guard, old, 0, &data, &error));
  if (on.is_device) SAYS("stale");
  ANSWERS(INVALID, device_arena_view_slice(&slice, old, 99, 99, &error));
  SAYS("stale");
  CHECK(guard == 0 && slice == 0);
  CHECK(holds(now, 64, 2));
  CHECK(stats_of(arena).refused_stale_reads >= 4);
  ANSWERS(OK, device_arena_view_free(now, &error));
  ANSWERS(OK, device_arena_view_free(old, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_second_begin_is_contended(void) {
  device_arena_t arena = new_arena();
  device_arena_call_t call = 0, second = 7;
  uint64_t freed = 0;
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(CONTENDED, device_arena_call_begin(&second, arena, on.executor, &error));
  SAYS("a running call");
  CHECK(second == 0);
  ANSWERS(CONTENDED, device_arena_call_begin_timeout(&second, arena, 0, 1000000, &error));
  ANSWERS(CONTENDED, device_arena_trim(arena, NULL, &error));
  ANSWERS(CONTENDED, device_arena_reserve(arena, 1, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(INVALID, device_arena_call_finish(call, &error));
  ANSWERS(INVALID, device_arena_call_abandon(call, &error));
  ANSWERS(OK, device_arena_call_begin_timeout(&second, arena, on.executor, 1000000, &error));
  ANSWERS(OK, device_arena_call_abandon(second, &error));
  CHECK(stats_of(arena).refused_begins == 4);
  ANSWERS(OK, device_arena_view_free(published(arena, 10, 0), &error));
  ANSWERS(OK, device_arena_trim(arena, &freed, &error));
  CHECK(freed > 0 && stats_of(arena).bytes_reserved == 0);
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_reader_keeps_the_next_call_away(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 4096, 5);
  device_arena_guard_t guard = 0;
  device_arena_call_t call = 0;
  const void *data = NULL;
  uint64_t bytes = 0;
  if (on.is_device) {
    ANSWERS(OK, device_arena_view_device_pointer(&guard, view, on.executor, &data, &error));
    CHECK((uintptr_t)data % 256 == 0);
  } else {
    ANSWERS(OK, device_arena_view_read_begin(&guard, view, &data, &bytes, &error));
    CHECK(bytes == 4096 && (uintptr_t)data % 64 == 0 && ((const unsigned char *)data)[4095] == (unsigned char)(4095 + 5));
  }
  ANSWERS(CONTENDED, device_arena_call_begin(&call, arena, 0, &error));
  SAYS("reader");
  // The guard goes on without its view and its arena.
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  if (!on.is_device) CHECK(((const unsigned char *)data)[1] == 6);
  ANSWERS(OK, device_arena_view_read_end(guard, &error));
}

static void a_device_is_out_of_the_hosts_reach(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 64, 0);
  device_arena_guard_t guard = 7;
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_scratch_t scratch = 0;
  void *room = NULL;
  const void *data = NULL;
  const device_arena_status_t by_host = on.is_device ? DEVICE : OK, by_device = on.is_device ? OK : INVALID;
  ANSWERS(by_host, device_arena_view_read_begin(&guard, view, &data, NULL, &error));
  CHECK((guard == 0) == on.is_device);
  if (!on.is_device) ANSWERS(OK, device_arena_view_read_end(guard, &error));
  ANSWERS(by_device, device_arena_view_device_pointer(&guard, view, 0, &data, &error));
  if (on.is_device) ANSWERS(OK, device_arena_view_read_end(guard, &error));
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, 64, &error));
  ANSWERS(by_host, device_arena_output_data(output, &room, NULL, &error));
  ANSWERS(by_device, device_arena_output_device_pointer(output, &room, &error));
  ANSWERS(OK, device_arena_call_scratch_begin(&scratch, call, &error));
  ANSWERS(by_host, device_arena_call_scratch_take(call, scratch, 64, &room, &error));
  ANSWERS(by_device, device_arena_call_scratch_take_on_device(call, scratch, 64, &room, &error));
  ANSWERS(OK, device_arena_call_scratch_end(call, scratch, &error));
  ANSWERS(OK, device_arena_output_free(output, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_view_outlives_its_arena_harmlessly(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 64, 0);
  device_arena_guard_t guard = 0;
  device_arena_view_description_t description;
  unsigned char bytes[64];
  const void *data;
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(INVALID, device_arena_free(arena, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(view, bytes, sizeof bytes, &error));
  SAYS("its arena was dropped");
  ANSWERS(INVALID, device_arena_view_read_begin(&guard, view, &data, NULL, &error));
  ANSWERS(INVALID, device_arena_view_device_pointer(&guard, view, 0, &data, &error));
  ANSWERS(OK, device_arena_view_describe(view, &description, &error));
  CHECK(description.is_current == 0);
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(INVALID, device_arena_view_free(view, &error));
}

static void a_call_outlives_its_arena(void) {
  device_arena_t arena = new_arena();
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_view_t view = 0;
  unsigned char bytes[3] = {1, 2, 3};
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, 3, &error));
  ANSWERS(OK, device_arena_output_write(output, bytes, 3, &error));
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  ANSWERS(INVALID, device_arena_output_publish(&view, output, &error));
  CHECK(view == 0);
  ANSWERS(OK, device_arena_call_finish(call, &error));
}

static void an_executor_and_a_library_are_freed_while_arenas_live(void) {
  device_arena_library_t library = 0;
  device_arena_executor_t executor = 0;
  device_arena_t arena = 0, of_library = 0;
  ANSWERS(OK, device_arena_library_load(&library, &error));
  if (on.is_device) {
    ANSWERS(OK, device_arena_executor_of_vendor(&executor, library, on.vendor, (uint32_t)on.ordinal, &error));
  } else {
    ANSWERS(OK, device_arena_executor_host(&executor, library, &error));
  }
  ANSWERS(OK, device_arena_init(&arena, executor, &error));
  ANSWERS(OK, device_arena_init(&of_library, library, &error));
  ANSWERS(OK, device_arena_library_free(library, &error));
  ANSWERS(OK, device_arena_executor_free(executor, &error));
  ANSWERS(INVALID, device_arena_executor_free(executor, &error));
  ANSWERS(INVALID, device_arena_library_free(library, &error));
  ANSWERS(INVALID, device_arena_init(&executor, executor, &error));
  for (unsigned round = 0; round < 2; round++) {
    device_arena_view_t view = published(arena, 500, round), host = published(of_library, 500, round);
    CHECK(holds(view, 500, round) && holds(host, 500, round));
    ANSWERS(OK, device_arena_view_free(view, &error));
    ANSWERS(OK, device_arena_view_free(host, &error));
  }
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(OK, device_arena_free(of_library, &error));
}

static void an_arena_of_a_device_serves_its_executor_alone(void) {
  device_arena_t arena = new_arena();
  device_arena_executor_t other = 0;
  device_arena_call_t call = 0;
  ANSWERS(OK, device_arena_executor_host(&other, on.library, &error));
  ANSWERS(on.is_device ? INVALID : OK, device_arena_call_begin(&call, arena, other, &error));
  if (!on.is_device) ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_executor_free(other, &error));
  ANSWERS(INVALID, device_arena_call_begin(&call, arena, other, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void options_are_kept(void) {
  device_arena_options_t options;
  device_arena_t arena = 0;
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_view_t view = 0;
  unsigned char bytes[256];
  memset(&options, 0, sizeof options);
  options.first_capacity = 8192;
  options.byte_limit = 16384;
  options.has_scrub = 1;
  options.scrub = 0xA5;
  ANSWERS(OK, device_arena_init_with_options(&arena, on.executor, &options, &error));
  ANSWERS(OK, device_arena_view_free(published(arena, 256, 0), &error));
  CHECK(stats_of(arena).bytes_reserved == 8192);
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OVER_LIMIT, device_arena_call_output(&output, call, 1 << 20, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, sizeof bytes, &error));
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_view_copy_to_host(view, bytes, sizeof bytes, &error));
  CHECK(bytes[0] == 0xA5 && bytes[255] == 0xA5);
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(OK, device_arena_init_with_options(&arena, on.executor, NULL, &error));
  ANSWERS(OK, device_arena_free(arena, &error));

  // Pages that both reach: the host writes and reads them, the device has a pointer to them.
  memset(&options, 0, sizeof options);
  options.placement = DEVICE_ARENA_PLACEMENT_HOST_COHERENT;
  device_arena_description_t description;
  void *room = NULL;
  ANSWERS(OK, device_arena_init_with_options(&arena, on.executor, &options, &error));
  ANSWERS(OK, device_arena_describe(arena, &description, &error));
  CHECK(description.residency == DEVICE_ARENA_RESIDENCY_RAM && description.device == -1);
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, 4, &error));
  ANSWERS(OK, device_arena_output_data(output, &room, NULL, &error));
  memcpy(room, "host", 4);
  // With its address on the device, the host waits for what is queued.
  if (on.is_device) ANSWERS(OK, device_arena_output_device_pointer(output, &room, &error));
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  memset(bytes, 0, 4);
  ANSWERS(OK, device_arena_call_collect(call, view, bytes, 4, &error));
  CHECK(memcmp(bytes, "host", 4) == 0);
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_view_copy_to_host(view, bytes, 4, &error));
  CHECK(memcmp(bytes, "host", 4) == 0);
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void views_are_copied_from_arena_to_arena(void) {
  device_arena_t from = new_arena(), to = 0;
  device_arena_view_t view = published(from, 777, 3), copied = 0;
  device_arena_call_t call = 0;
  device_arena_output_t output = 0, small = 0;
  ANSWERS(OK, device_arena_init(&to, on.library, &error));
  ANSWERS(OK, device_arena_call_begin(&call, to, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, 777, &error));
  ANSWERS(OK, device_arena_call_output(&small, call, 7, &error));
  ANSWERS(OK, device_arena_output_copy_from_view(output, view, &error));
  ANSWERS(INVALID, device_arena_output_copy_from_view(small, view, &error));
  ANSWERS(OK, device_arena_output_free(small, &error));
  ANSWERS(OK, device_arena_output_publish(&copied, output, &error));
  unsigned char bytes[777];
  ANSWERS(PENDING, device_arena_view_copy_to_host(copied, bytes, sizeof bytes, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  CHECK(holds(copied, 777, 3));
  ANSWERS(OK, device_arena_view_free(copied, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(from, &error));
  ANSWERS(OK, device_arena_free(to, &error));
}

void test_arenas(void) {
  RUN(an_arena_says_where_it_is);
  RUN(a_steady_loop_allocates_once);
  RUN(a_chain_is_replaced_by_one_block);
  RUN(a_begin_makes_earlier_views_stale);
  RUN(a_second_begin_is_contended);
  RUN(a_reader_keeps_the_next_call_away);
  RUN(a_device_is_out_of_the_hosts_reach);
  RUN(a_view_outlives_its_arena_harmlessly);
  RUN(a_call_outlives_its_arena);
  RUN(an_executor_and_a_library_are_freed_while_arenas_live);
  RUN(an_arena_of_a_device_serves_its_executor_alone);
  RUN(options_are_kept);
  RUN(views_are_copied_from_arena_to_arena);
}
