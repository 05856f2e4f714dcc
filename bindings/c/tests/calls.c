// What a running call offers: outputs, scratch, results that it collects before its end.
#include <stdlib.h>

#include "check.h"

static void a_call_that_is_abandoned_leaves_nothing(void) {
  device_arena_t arena = new_arena();
  device_arena_call_t call = 0;
  device_arena_output_t output = 0, late = 0;
  device_arena_view_t view = 0;
  unsigned char bytes[4] = {1, 2, 3, 4};
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, 4, &error));
  ANSWERS(OK, device_arena_call_output(&late, call, 4, &error));
  ANSWERS(OK, device_arena_output_write(output, bytes, 4, &error));
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  ANSWERS(PENDING, device_arena_view_copy_to_host(view, bytes, 4, &error));
  ANSWERS(OK, device_arena_call_abandon(call, &error));
  ANSWERS(INVALID, device_arena_view_copy_to_host(view, bytes, 4, &error));
  // An output outlives its call, and keeps the next away.
  ANSWERS(CONTENDED, device_arena_call_begin(&call, arena, 0, &error));
  SAYS("output");
  ANSWERS(OK, device_arena_output_free(late, &error));
  ANSWERS(INVALID, device_arena_output_free(late, &error));
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void outputs_are_apart_and_aligned(void) {
  enum { COUNT = 64 };
  device_arena_t arena = 0;
  device_arena_call_t call = 0;
  device_arena_output_t outputs[COUNT];
  unsigned char *rooms[COUNT];
  ANSWERS(OK, device_arena_init(&arena, on.library, &error));
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  for (size_t i = 0; i < COUNT; i++) {
    void *room = NULL;
    uint64_t bytes = 0;
    ANSWERS(OK, device_arena_call_output(&outputs[i], call, 1 + i * 97, &error));
    ANSWERS(OK, device_arena_output_data(outputs[i], &room, &bytes, &error));
    if (!CHECK(room != NULL && bytes == 1 + i * 97 && (uintptr_t)room % 64 == 0)) return;
    rooms[i] = room;
    memset(room, (int)i, bytes);
  }
  for (size_t i = 0; i < COUNT; i++) {
    CHECK(rooms[i][0] == i && rooms[i][i * 97] == i);
    device_arena_view_t view = 0;
    ANSWERS(OK, device_arena_output_publish(&view, outputs[i], &error));
    ANSWERS(OK, device_arena_view_free(view, &error));
  }
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static device_arena_status_t take(device_arena_call_t call, device_arena_scratch_t scratch, uint64_t bytes, void **room) {
  *room = NULL;
  return on.is_device ? device_arena_call_scratch_take_on_device(call, scratch, bytes, room, &error)
                      : device_arena_call_scratch_take(call, scratch, bytes, room, &error);
}

static void scratch_scopes_nest(void) {
  device_arena_t arena = new_arena();
  device_arena_call_t call = 0;
  device_arena_scratch_t outer = 0, inner = 0, again = 0;
  void *first = NULL, *second = NULL, *third = NULL;
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_scratch_begin(&outer, call, &error));
  ANSWERS(OK, take(call, outer, 1000, &first));
  const uint64_t used = stats_of(arena).bytes_used;
  ANSWERS(OK, device_arena_call_scratch_begin(&inner, call, &error));
  ANSWERS(OK, take(call, inner, 1000, &second));
  CHECK(first != NULL && second != NULL && first != second);
  CHECK(stats_of(arena).bytes_used > used);
  if (!on.is_device) {
    memset(first, 1, 1000);
    memset(second, 2, 1000);
    CHECK(((unsigned char *)first)[0] == 1 && ((unsigned char *)first)[999] == 1);
  }
  // The outer scope neither takes nor ends while the inner one is open.
  ANSWERS(INVALID, take(call, outer, 1, &third));
  SAYS("open within");
  ANSWERS(INVALID, device_arena_call_scratch_end(call, outer, &error));
  ANSWERS(OK, device_arena_call_scratch_end(call, inner, &error));
  ANSWERS(INVALID, device_arena_call_scratch_end(call, inner, &error));
  ANSWERS(INVALID, take(call, inner, 1, &third));
  CHECK(stats_of(arena).bytes_used == used);
  ANSWERS(OK, device_arena_call_scratch_begin(&again, call, &error));
  CHECK(again != inner);
  ANSWERS(OK, take(call, again, 1000, &third));
  CHECK(third == second);
  ANSWERS(OK, device_arena_call_scratch_end(call, again, &error));
  ANSWERS(OK, device_arena_call_scratch_end(call, outer, &error));
  CHECK(stats_of(arena).bytes_used == 0);
  ANSWERS(INVALID, device_arena_call_scratch_end(call, outer, &error));

  // One that is left open goes with its call, and is none of the next.
  ANSWERS(OK, device_arena_call_scratch_begin(&outer, call, &error));
  ANSWERS(OK, take(call, outer, 10, &first));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_scratch_begin(&inner, call, &error));
  ANSWERS(INVALID, take(call, outer, 10, &first));
  ANSWERS(INVALID, device_arena_call_scratch_end(call, outer, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  CHECK(stats_of(arena).allocations == 1);
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_running_call_collects_its_results(void) {
  device_arena_t arena = new_arena(), other = new_arena();
  device_arena_view_t foreign = published(other, 8, 0), view = 0;
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  const uint32_t count = 12345;
  uint32_t collected = 0;
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, sizeof count, &error));
  ANSWERS(OK, device_arena_output_write(output, &count, sizeof count, &error));
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  ANSWERS(PENDING, device_arena_view_copy_to_host(view, &collected, sizeof collected, &error));
  ANSWERS(OK, device_arena_call_collect(call, view, &collected, sizeof collected, &error));
  CHECK(collected == count);
  ANSWERS(INVALID, device_arena_call_collect(call, view, &collected, 3, &error));
  ANSWERS(INVALID, device_arena_call_collect(call, view, NULL, sizeof collected, &error));
  ANSWERS(INVALID, device_arena_call_collect(call, foreign, &collected, 8, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(INVALID, device_arena_call_collect(call, view, &collected, sizeof collected, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_view_free(foreign, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(OK, device_arena_free(other, &error));
}

static int released;

static void count_release(void *user_data) {
  released += *(int *)user_data;
}

static void a_stream_is_adopted_and_given_back(void) {
  device_arena_executor_t adopted = 0;
  device_arena_t arena = 0;
  void *stream = NULL, *same = NULL;
  int one = 1;
  released = 0;
  ANSWERS(OK, device_arena_executor_stream(on.executor, &stream, &error));
  ANSWERS(INVALID,
          device_arena_executor_adopt(&adopted, on.library, on.vendor, NULL, &one, count_release, &error));
  ANSWERS(INVALID, device_arena_executor_adopt(&adopted, on.library, 55, stream, &one, count_release, &error));
  CHECK(adopted == 0 && released == 0);
  ANSWERS(OK, device_arena_executor_adopt(&adopted, on.library, on.vendor, stream, &one, count_release, &error));
  ANSWERS(OK, device_arena_executor_stream(adopted, &same, &error));
  CHECK(same == stream);
  ANSWERS(OK, device_arena_init(&arena, adopted, &error));
  ANSWERS(OK, device_arena_executor_free(adopted, &error));
  device_arena_view_t view = published(arena, 100, 9);
  CHECK(holds(view, 100, 9));
  ANSWERS(OK, device_arena_view_free(view, &error));
  if (on.is_device) CHECK(released == 0);
  ANSWERS(OK, device_arena_free(arena, &error));
  CHECK(released == 1);
  ANSWERS(OK, device_arena_executor_synchronize(on.executor, &error));
}

void test_calls(void) {
  RUN(a_call_that_is_abandoned_leaves_nothing);
  RUN(outputs_are_apart_and_aligned);
  RUN(scratch_scopes_nest);
  RUN(a_running_call_collects_its_results);
  RUN(a_stream_is_adopted_and_given_back);
}
