// Planned arenas: a plan by hand, runs that keep their bytes, copies between slots.
#include "check.h"

static device_arena_slot_t slot(uint64_t node, uint64_t offset, uint64_t size) {
  device_arena_slot_t made;
  memset(&made, 0, sizeof made);
  made.node = node;
  made.offset = offset;
  made.size = size;
  return made;
}

static device_arena_plan_t new_plan(void) {
  const device_arena_slot_t slots[] = {slot(1, 0, 64), slot(2, 64, 64), slot(7, 256, 26)};
  device_arena_plan_t plan = 0;
  ANSWERS(OK, device_arena_plan_init(&plan, on.library, slots, LENGTH(slots), 64, 512, &error));
  return plan;
}

static device_arena_planned_t new_planned(void) {
  device_arena_plan_t plan = new_plan();
  device_arena_planned_t planned = 0;
  ANSWERS(OK, device_arena_planned_init(&planned, on.executor, plan, 0, &error));
  ANSWERS(OK, device_arena_plan_free(plan, &error));
  return planned;
}

static void a_plan_is_checked(void) {
  device_arena_plan_t plan = 0, twin = 0;
  device_arena_plan_description_t description, other;
  device_arena_slot_t seen;
  plan = new_plan();
  ANSWERS(OK, device_arena_plan_describe(plan, &description, &error));
  CHECK(description.nodes == 3 && description.total == 512 && description.alignment == 64);
  twin = new_plan();
  ANSWERS(OK, device_arena_plan_describe(twin, &other, &error));
  CHECK(memcmp(description.fingerprint, other.fingerprint, sizeof other.fingerprint) == 0);
  CHECK(description.fingerprint[0] != 0 && description.fingerprint[1] != 0);
  ANSWERS(OK, device_arena_plan_slot(plan, 7, &seen, &error));
  CHECK(seen.node == 7 && seen.offset == 256 && seen.size == 26 && seen.has_lifetime == 0 && seen.is_alias == 0);
  ANSWERS(INVALID, device_arena_plan_slot(plan, 8, &seen, &error));
  ANSWERS(INVALID, device_arena_plan_slot(plan, 7, NULL, &error));
  ANSWERS(INVALID, device_arena_plan_describe(plan, NULL, &error));
  ANSWERS(OK, device_arena_plan_free(plan, &error));
  ANSWERS(INVALID, device_arena_plan_free(plan, &error));
  ANSWERS(OK, device_arena_plan_free(twin, &error));

  device_arena_slot_t two[] = {slot(1, 0, 64), slot(2, 32, 64)};
  ANSWERS(INVALID, device_arena_plan_init(&plan, on.library, two, 2, 0, 0, &error));
  SAYS("plan");
  CHECK(plan == 0);
  // Apart in time, or an alias by name.
  for (size_t i = 0; i < 2; i++) {
    two[i].has_lifetime = 1;
    two[i].live_start = i;
    two[i].live_end = i + 1;
  }
  ANSWERS(OK, device_arena_plan_init(&plan, on.library, two, 2, 0, 0, &error));
  ANSWERS(OK, device_arena_plan_slot(plan, 2, &seen, &error));
  CHECK(seen.has_lifetime == 1 && seen.live_start == 1 && seen.live_end == 2);
  ANSWERS(OK, device_arena_plan_free(plan, &error));
  const device_arena_slot_t base = slot(1, 0, 64);
  device_arena_slot_t aliases[] = {base, slot(2, 32, 32)};
  aliases[1].is_alias = 1;
  aliases[1].alias_of = 1;
  ANSWERS(OK, device_arena_plan_init(&plan, on.library, aliases, 2, 0, 0, &error));
  ANSWERS(OK, device_arena_plan_free(plan, &error));
  aliases[1].alias_of = 3;
  ANSWERS(INVALID, device_arena_plan_init(&plan, on.library, aliases, 2, 0, 0, &error));
  aliases[1] = base;
  ANSWERS(INVALID, device_arena_plan_init(&plan, on.library, aliases, 2, 0, 0, &error));
  aliases[1] = slot(2, 65, 1);
  ANSWERS(INVALID, device_arena_plan_init(&plan, on.library, aliases, 2, 64, 0, &error));
  aliases[1] = slot(2, UINT64_MAX, 2);
  ANSWERS(INVALID, device_arena_plan_init(&plan, on.library, aliases, 2, 0, 0, &error));
  ANSWERS(INVALID, device_arena_plan_init(&plan, on.library, &base, 1, 3, 0, &error));
  ANSWERS(INVALID, device_arena_plan_init(&plan, on.library, &base, 1, 0, 32, &error));
  // A plan without a node is one, and one beyond the address space is none that an arena can have.
  ANSWERS(OK, device_arena_plan_init(&plan, on.library, NULL, 0, 0, 0, &error));
  ANSWERS(OK, device_arena_plan_free(plan, &error));
  ANSWERS(OK, device_arena_plan_init(&plan, on.library, &base, 1, 0, UINT64_MAX, &error));
  device_arena_planned_t planned = 7;
  ANSWERS(INVALID, device_arena_planned_init(&planned, on.executor, plan, 0, &error));
  CHECK(planned == 0);
  ANSWERS(OK, device_arena_plan_free(plan, &error));
}

static void places_are_said_in_bytes_and_in_elements(void) {
  device_arena_planned_t planned = new_planned();
  device_arena_description_t description;
  device_arena_slot_t seen;
  uint64_t offset = 0;
  uint32_t elements = 0, has = 7;
  ANSWERS(OK, device_arena_planned_describe(planned, &description, &error));
  CHECK(description.device == on.ordinal);
  ANSWERS(OK, device_arena_planned_has(planned, 7, &has, &error));
  CHECK(has == 1);
  ANSWERS(OK, device_arena_planned_has(planned, 8, &has, &error));
  CHECK(has == 0);
  ANSWERS(OK, device_arena_planned_byte_offset(planned, 7, &offset, &error));
  CHECK(offset == 256);
  ANSWERS(OK, device_arena_planned_elem_offset(planned, 7, 4, &elements, &error));
  CHECK(elements == 64);
  ANSWERS(OK, device_arena_planned_elem_offset_64(planned, 2, 8, &offset, &error));
  CHECK(offset == 8);
  ANSWERS(INVALID, device_arena_planned_elem_offset(planned, 2, 3, &elements, &error));
  ANSWERS(INVALID, device_arena_planned_elem_offset(planned, 2, 0, &elements, &error));
  ANSWERS(INVALID, device_arena_planned_byte_offset(planned, 9, &offset, &error));
  ANSWERS(OK, device_arena_planned_slot(planned, 2, &seen, &error));
  CHECK(seen.offset == 64 && seen.size == 64);
  ANSWERS(OK, device_arena_planned_free(planned, &error));
  ANSWERS(INVALID, device_arena_planned_free(planned, &error));
}

static void a_run_keeps_the_bytes_and_makes_views_stale(void) {
  device_arena_planned_t planned = new_planned();
  device_arena_run_t run = 0, second = 7;
  device_arena_view_t view = 0, part = 0, last = 0;
  device_arena_stats_t stats;
  const float values[20] = {1, 2, 3};
  float seen[20] = {9, 9, 9, 9};
  uint64_t moved = 0;
  ANSWERS(PENDING, device_arena_planned_last(&last, planned, &error));
  ANSWERS(OK, device_arena_run_begin(&run, planned, &error));
  ANSWERS(CONTENDED, device_arena_run_begin(&second, planned, &error));
  ANSWERS(CONTENDED, device_arena_run_begin_timeout(&second, planned, 1000, &error));
  CHECK(second == 0);
  ANSWERS(OK, device_arena_run_write(run, 1, 0, 4, values, 3, &moved, &error));
  CHECK(moved == 3);
  // Amounts are clamped to what the slot holds.
  ANSWERS(OK, device_arena_run_write(run, 1, 14, 4, values, 20, &moved, &error));
  CHECK(moved == 2);
  ANSWERS(OK, device_arena_run_write(run, 7, 0, 4, values, 20, &moved, &error));
  CHECK(moved == 6);
  ANSWERS(OK, device_arena_run_write(run, 1, 16, 4, values, 20, &moved, &error));
  CHECK(moved == 0);
  ANSWERS(INVALID, device_arena_run_write(run, 1, 17, 4, values, 20, &moved, &error));
  SAYS("node 1");
  ANSWERS(INVALID, device_arena_run_write(run, 9, 0, 4, values, 20, &moved, &error));
  ANSWERS(INVALID, device_arena_run_write(run, 1, 0, 0, values, 20, &moved, &error));
  ANSWERS(INVALID, device_arena_run_write(run, 1, 0, 4, NULL, 20, &moved, &error));
  ANSWERS(INVALID, device_arena_run_write(run, 1, 0, 4, values, UINT64_MAX, &moved, &error));
  ANSWERS(OK, device_arena_run_write(run, 1, 0, 4, NULL, 0, NULL, &error));
  ANSWERS(OK, device_arena_run_finish(&view, run, &error));
  ANSWERS(INVALID, device_arena_run_finish(&last, run, &error));
  ANSWERS(INVALID, device_arena_run_abandon(run, &error));
  ANSWERS(OK, device_arena_view_slice(&part, view, 0, 12, &error));
  ANSWERS(OK, device_arena_view_copy_to_host(part, seen, 12, &error));
  CHECK(seen[0] == 1 && seen[2] == 3 && seen[3] == 9);
  ANSWERS(OK, device_arena_planned_last(&last, planned, &error));
  ANSWERS(OK, device_arena_view_free(last, &error));

  ANSWERS(OK, device_arena_run_begin(&run, planned, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(part, seen, 12, &error));
  SAYS("stale");
  ANSWERS(OK, device_arena_run_read(run, 1, 1, 4, seen, 20, &moved, &error));
  CHECK(moved == 15 && seen[0] == 2 && seen[1] == 3 && seen[2] == 0);
  ANSWERS(OK, device_arena_run_read_at(run, 64, 4, seen, 20, &moved, &error));
  CHECK(moved == 20 && seen[0] == 1 && seen[2] == 3);
  ANSWERS(OK, device_arena_run_read_at(run, 126, 4, seen, 20, &moved, &error));
  CHECK(moved == 2);
  ANSWERS(INVALID, device_arena_run_read_at(run, 129, 4, seen, 20, &moved, &error));
  ANSWERS(OK, device_arena_run_clear(run, 1, &error));
  ANSWERS(INVALID, device_arena_run_clear(run, 99, &error));
  ANSWERS(OK, device_arena_run_read(run, 1, 0, 4, seen, 20, &moved, &error));
  CHECK(moved == 16 && seen[0] == 0 && seen[15] == 0);
  ANSWERS(OK, device_arena_run_abandon(run, &error));
  ANSWERS(OK, device_arena_planned_stats(planned, &stats, &error));
  CHECK(stats.allocations == 1 && stats.rewinds == 2);
  ANSWERS(OK, device_arena_view_free(part, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_planned_free(planned, &error));
}

static void slots_are_copied(void) {
  device_arena_planned_t planned = new_planned(), twin = new_planned();
  device_arena_run_t run = 0, other = 0;
  device_arena_view_t view = 0, others = 0;
  const uint32_t values[] = {1, 2, 3, 4};
  uint32_t seen[16];
  uint64_t moved = 0;
  ANSWERS(OK, device_arena_run_begin(&run, planned, &error));
  ANSWERS(OK, device_arena_run_begin(&other, twin, &error));
  ANSWERS(OK, device_arena_run_write(run, 1, 0, 4, values, 4, NULL, &error));
  ANSWERS(OK, device_arena_run_copy_prefix(run, 2, 1, 4, 2, &moved, &error));
  CHECK(moved == 2);
  ANSWERS(OK, device_arena_run_copy_prefix(run, 7, 1, 4, 100, &moved, &error));
  CHECK(moved == 6);
  ANSWERS(OK, device_arena_run_copy_range(run, 2, 10, 1, 2, 4, 100, &moved, &error));
  CHECK(moved == 6);
  ANSWERS(INVALID, device_arena_run_copy_range(run, 2, 17, 1, 2, 4, 1, &moved, &error));
  ANSWERS(INVALID, device_arena_run_copy_prefix(run, 2, 5, 4, 1, &moved, &error));
  ANSWERS(INVALID, device_arena_run_copy_prefix(run, 2, 1, 0, 1, &moved, &error));
  ANSWERS(OK, device_arena_run_read(run, 2, 0, 4, seen, 16, &moved, &error));
  CHECK(moved == 16 && seen[0] == 1 && seen[1] == 2 && seen[2] == 0 && seen[10] == 3 && seen[11] == 4);

  // Many at once, none of which may meet another.
  const device_arena_copy_t copies[] = {{2, 4, 1, 0, 2}, {7, 5, 1, 3, 9}};
  ANSWERS(OK, device_arena_run_copies(run, copies, 2, 4, &moved, &error));
  CHECK(moved == 3);
  ANSWERS(OK, device_arena_run_read(run, 2, 4, 4, seen, 2, &moved, &error));
  CHECK(seen[0] == 1 && seen[1] == 2);
  const device_arena_copy_t clash[] = {{2, 0, 1, 0, 2}, {7, 0, 2, 1, 2}};
  ANSWERS(INVALID, device_arena_run_copies(run, clash, 2, 4, &moved, &error));
  SAYS("clash");
  ANSWERS(INVALID, device_arena_run_copies(run, NULL, 2, 4, &moved, &error));
  ANSWERS(OK, device_arena_run_copies(run, NULL, 0, 4, &moved, &error));
  CHECK(moved == 0);

  ANSWERS(OK, device_arena_run_copy_into(run, other, &error));
  ANSWERS(INVALID, device_arena_run_copy_into(run, run, &error));
  SAYS("itself");
  ANSWERS(INVALID, device_arena_run_copy_into(run, 0, &error));
  ANSWERS(OK, device_arena_run_read(other, 1, 0, 4, seen, 4, &moved, &error));
  CHECK(memcmp(seen, values, sizeof values) == 0);
  void *pointer = NULL;
  ANSWERS(on.is_device ? OK : INVALID, device_arena_run_device_pointer(run, 7, &pointer, &error));
  ANSWERS(on.is_device ? DEVICE : OK, device_arena_run_data(run, &pointer, &moved, &error));
  if (!on.is_device) CHECK(moved == 512 && ((const uint32_t *)pointer)[64] == 1);
  ANSWERS(INVALID, device_arena_run_data(run, NULL, NULL, &error));

  device_arena_deferred_t deferred = 0;
  ANSWERS(OK, device_arena_run_defer(&deferred, &view, run, 0, &error));
  ANSWERS(OK, device_arena_call_wait(deferred, 60000000000ull, &error));
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  ANSWERS(OK, device_arena_run_finish(&others, other, &error));
  unsigned char mine[512], theirs[512];
  ANSWERS(OK, device_arena_view_copy_to_host(view, mine, sizeof mine, &error));
  ANSWERS(OK, device_arena_view_copy_to_host(others, theirs, sizeof theirs, &error));
  CHECK(memcmp(mine, theirs, sizeof mine) == 0);
  ANSWERS(OK, device_arena_planned_free(planned, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(view, mine, sizeof mine, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_view_free(others, &error));
  ANSWERS(OK, device_arena_planned_free(twin, &error));
}

static void a_planned_arena_of_the_library_is_the_hosts(void) {
  device_arena_plan_t plan = new_plan();
  device_arena_planned_t planned = 0;
  device_arena_run_t run = 0;
  device_arena_deferred_t deferred = 7;
  device_arena_view_t view = 7;
  device_arena_description_t description;
  ANSWERS(INVALID, device_arena_planned_init(&planned, on.library, plan, DEVICE_ARENA_PLACEMENT_DEVICE, &error));
  ANSWERS(INVALID, device_arena_planned_init(&planned, on.library, plan, 77, &error));
  ANSWERS(OK, device_arena_planned_init(&planned, on.library, plan, DEVICE_ARENA_PLACEMENT_HOST, &error));
  ANSWERS(OK, device_arena_planned_describe(planned, &description, &error));
  CHECK(description.device == -1);
  ANSWERS(OK, device_arena_run_begin(&run, planned, &error));
  ANSWERS(INVALID, device_arena_run_defer(&deferred, &view, run, 0, &error));
  CHECK(deferred == 0 && view == 0);
  ANSWERS(OK, device_arena_run_abandon(run, &error));
  ANSWERS(OK, device_arena_planned_free(planned, &error));
  ANSWERS(OK, device_arena_plan_free(plan, &error));
}

static void a_run_that_is_not_deferred_is_the_callers_still(void) {
  device_arena_plan_t plan = new_plan();
  device_arena_planned_t planned = 0;
  device_arena_executor_t other = 0;
  device_arena_run_t run = 0;
  device_arena_deferred_t deferred = 7;
  device_arena_view_t view = 7;
  unsigned char bytes[4];
  ANSWERS(OK, device_arena_planned_init(&planned, on.executor, plan, DEVICE_ARENA_PLACEMENT_DEFAULT, &error));
  ANSWERS(OK, device_arena_executor_host(&other, on.library, &error));
  ANSWERS(OK, device_arena_run_begin(&run, planned, &error));
  ANSWERS(OK, device_arena_run_write(run, 1, 0, 1, "mine", 4, NULL, &error));
  ANSWERS(INVALID, device_arena_run_defer(&deferred, &view, run, on.library, &error));
  if (on.is_device) ANSWERS(INVALID, device_arena_run_defer(&deferred, &view, run, other, &error));
  CHECK(deferred == 0 && view == 0);
  ANSWERS(OK, device_arena_run_read(run, 1, 0, 1, bytes, 4, NULL, &error));
  ANSWERS(OK, device_arena_run_defer(&deferred, &view, run, 0, &error));
  ANSWERS(INVALID, device_arena_run_abandon(run, &error));
  ANSWERS(OK, device_arena_call_wait(deferred, 60000000000ull, &error));
  CHECK(memcmp(bytes, "mine", 4) == 0);
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_executor_free(other, &error));
  ANSWERS(OK, device_arena_planned_free(planned, &error));
  ANSWERS(OK, device_arena_plan_free(plan, &error));
}

static void a_library_pins_no_pages(void) {
  device_arena_plan_t plan = new_plan();
  device_arena_planned_t planned = 0;
  device_arena_t arena = 0;
  device_arena_options_t options;
  memset(&options, 0, sizeof options);
  options.placement = DEVICE_ARENA_PLACEMENT_HOST_COHERENT;
  ANSWERS(INVALID, device_arena_init_with_options(&arena, on.library, &options, &error));
  SAYS("host's pages");
  ANSWERS(INVALID, device_arena_planned_init(&planned, on.library, plan, options.placement, &error));
  options.placement = DEVICE_ARENA_PLACEMENT_HOST;
  ANSWERS(OK, device_arena_init_with_options(&arena, on.library, &options, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(OK, device_arena_plan_free(plan, &error));
}

void test_planned(void) {
  RUN(a_plan_is_checked);
  RUN(places_are_said_in_bytes_and_in_elements);
  RUN(a_run_keeps_the_bytes_and_makes_views_stale);
  RUN(slots_are_copied);
  RUN(a_planned_arena_of_the_library_is_the_hosts);
  RUN(a_run_that_is_not_deferred_is_the_callers_still);
  RUN(a_library_pins_no_pages);
}
