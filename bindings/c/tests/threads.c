// Two threads: on one arena, and on one handle.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { ROUNDS = 400 };

static void both(void *(*one)(void *), void *(*other)(void *), void *argument) {
  pthread_t threads[2];
  CHECK(pthread_create(&threads[0], NULL, one, argument) == 0);
  CHECK(pthread_create(&threads[1], NULL, other, argument) == 0);
  CHECK(pthread_join(threads[0], NULL) == 0);
  CHECK(pthread_join(threads[1], NULL) == 0);
}

struct shared {
  device_arena_t arena;
  device_arena_call_t call;
  device_arena_deferred_t deferred;
  atomic_int done, refused;
  sem_t go;
};

// A call of its own where the other has none; every other refusal but "contended" is wrong.
static void *calls_in_turn(void *argument) {
  struct shared *shared = argument;
  for (int round = 0; round < ROUNDS; round++) {
    device_arena_call_t call = 0;
    device_arena_output_t output = 0;
    device_arena_view_t view = 0;
    unsigned char written[64], seen[64];
    memset(written, round, sizeof written);
    const device_arena_status_t status = device_arena_call_begin(&call, shared->arena, 0, &error);
    if (status == CONTENDED) {
      atomic_fetch_add(&shared->refused, 1);
      continue;
    }
    if (!ANSWERS(OK, status)) return NULL;
    ANSWERS(OK, device_arena_call_output(&output, call, sizeof written, &error));
    ANSWERS(OK, device_arena_output_write(output, written, sizeof written, &error));
    ANSWERS(OK, device_arena_output_publish(&view, output, &error));
    ANSWERS(OK, device_arena_call_collect(call, view, seen, sizeof seen, &error));
    CHECK(memcmp(written, seen, sizeof seen) == 0);
    ANSWERS(OK, device_arena_call_finish(call, &error));
    // Stale where the other thread was faster, and contended while it is about to begin: never its bytes.
    const device_arena_status_t read = device_arena_view_copy_to_host(view, seen, sizeof seen, &error);
    CHECK(read == OK || read == INVALID || read == CONTENDED);
    if (read == OK) CHECK(memcmp(written, seen, sizeof seen) == 0);
    ANSWERS(OK, device_arena_view_free(view, &error));
    atomic_fetch_add(&shared->done, 1);
  }
  return NULL;
}

static void two_threads_contend_for_one_arena(void) {
  struct shared shared;
  memset(&shared, 0, sizeof shared);
  shared.arena = new_arena();
  both(calls_in_turn, calls_in_turn, &shared);
  const device_arena_stats_t stats = stats_of(shared.arena);
  CHECK(atomic_load(&shared.done) + atomic_load(&shared.refused) == 2 * ROUNDS);
  CHECK(stats.rewinds == (uint64_t)atomic_load(&shared.done) && stats.allocations == 1);
  CHECK(stats.refused_begins == (uint64_t)atomic_load(&shared.refused));
  ANSWERS(OK, device_arena_free(shared.arena, &error));
}

static void *waits_its_turn(void *argument) {
  struct shared *shared = argument;
  for (int round = 0; round < 50; round++) {
    device_arena_call_t call = 0;
    ANSWERS(OK, device_arena_call_begin_timeout(&call, shared->arena, 0, 60000000000ull, &error));
    ANSWERS(OK, device_arena_call_finish(call, &error));
  }
  return NULL;
}

static void who_wants_to_wait_is_not_refused(void) {
  struct shared shared;
  memset(&shared, 0, sizeof shared);
  shared.arena = new_arena();
  both(waits_its_turn, waits_its_turn, &shared);
  CHECK(stats_of(shared.arena).rewinds == 100 && stats_of(shared.arena).refused_begins == 0);
  ANSWERS(OK, device_arena_free(shared.arena, &error));
}

// Outputs out of one call, by two threads: each use is done or refused.
static void *outputs_of_one_call(void *argument) {
  struct shared *shared = argument;
  for (int round = 0; round < ROUNDS; round++) {
    device_arena_output_t output = 0;
    device_arena_view_t view = 0;
    unsigned char bytes[16];
    memset(bytes, round, sizeof bytes);
    const device_arena_status_t status = device_arena_call_output(&output, shared->call, sizeof bytes, &error);
    if (status == CONTENDED) {
      CHECK(output == 0);
      continue;
    }
    if (!ANSWERS(OK, status)) return NULL;
    ANSWERS(OK, device_arena_output_write(output, bytes, sizeof bytes, &error));
    ANSWERS(OK, device_arena_output_publish(&view, output, &error));
    ANSWERS(OK, device_arena_view_free(view, &error));
    atomic_fetch_add(&shared->done, 1);
  }
  return NULL;
}

static void two_threads_use_one_call(void) {
  struct shared shared;
  memset(&shared, 0, sizeof shared);
  shared.arena = new_arena();
  ANSWERS(OK, device_arena_call_begin(&shared.call, shared.arena, 0, &error));
  both(outputs_of_one_call, outputs_of_one_call, &shared);
  const uint64_t alignment = on.is_device ? 256 : 64;
  CHECK(atomic_load(&shared.done) >= ROUNDS / 2);
  CHECK(stats_of(shared.arena).bytes_used == (uint64_t)atomic_load(&shared.done) * alignment);
  ANSWERS(OK, device_arena_call_finish(shared.call, &error));
  ANSWERS(OK, device_arena_free(shared.arena, &error));
}

static void *finishes(void *argument) {
  struct shared *shared = argument;
  device_arena_status_t status;
  do {
    status = device_arena_call_finish(shared->call, &error);
  } while (status == CONTENDED);
  CHECK(status == OK || status == INVALID);
  if (status == OK) atomic_fetch_add(&shared->done, 1);
  return NULL;
}

static void one_of_two_threads_finishes_a_call(void) {
  struct shared shared;
  memset(&shared, 0, sizeof shared);
  shared.arena = new_arena();
  for (int round = 0; round < 100; round++) {
    ANSWERS(OK, device_arena_call_begin(&shared.call, shared.arena, 0, &error));
    both(finishes, finishes, &shared);
    CHECK(atomic_load(&shared.done) == round + 1);
  }
  ANSWERS(OK, device_arena_free(shared.arena, &error));
}

static int32_t waits_for_go(device_arena_call_t call, void *user_data) {
  struct shared *shared = user_data;
  (void)call;
  sem_wait(&shared->go);
  return 0;
}

static void *waits_for_work(void *argument) {
  struct shared *shared = argument;
  ANSWERS(OK, device_arena_call_wait(shared->deferred, 60000000000ull, &error));
  return NULL;
}

static void *meets_the_one_who_waits(void *argument) {
  struct shared *shared = argument;
  const struct timespec pause = {0, 1000000};
  // Sooner or later the other one is inside.
  for (int tries = 0; tries < 30000 && atomic_load(&shared->refused) == 0; tries++) {
    uint32_t is_done = 0;
    const device_arena_status_t status = device_arena_deferred_is_done(shared->deferred, &is_done, &error);
    if (status == CONTENDED) {
      SAYS("in use by another thread");
      atomic_fetch_add(&shared->refused, 1);
    } else {
      ANSWERS(OK, status);
      nanosleep(&pause, NULL);
    }
  }
  sem_post(&shared->go);
  return NULL;
}

static void a_handle_that_another_thread_uses_is_contended(void) {
  struct shared shared;
  device_arena_executor_t host = 0;
  memset(&shared, 0, sizeof shared);
  CHECK(sem_init(&shared.go, 0, 0) == 0);
  ANSWERS(OK, device_arena_executor_host(&host, on.library, &error));
  ANSWERS(OK, device_arena_init(&shared.arena, host, &error));
  ANSWERS(OK, device_arena_call_defer_work(&shared.deferred, shared.arena, 0, waits_for_go, &shared, NULL, &error));
  both(waits_for_work, meets_the_one_who_waits, &shared);
  CHECK(atomic_load(&shared.refused) == 1);
  ANSWERS(OK, device_arena_deferred_free(shared.deferred, &error));
  ANSWERS(OK, device_arena_free(shared.arena, &error));
  ANSWERS(OK, device_arena_executor_free(host, &error));
}

static void *goes_on_with_the_works_call(void *argument) {
  struct shared *shared = argument;
  device_arena_status_t status;
  sem_post(&shared->go);
  do {
    device_arena_scratch_t scratch = 0;
    status = device_arena_call_scratch_begin(&scratch, shared->call, &error);
    if (status == OK) {
      atomic_fetch_add(&shared->done, 1);
      status = device_arena_call_scratch_end(shared->call, scratch, &error);
    }
    // The work takes its call back: it is refused to others then, and dead afterwards.
  } while (status == OK || status == CONTENDED);
  answers(__FILE__, __LINE__, "scratch of a call that has ended", status, INVALID);
  return NULL;
}

static pthread_t other;

static int32_t leaves_its_call_to_a_thread(device_arena_call_t call, void *user_data) {
  struct shared *shared = user_data;
  shared->call = call;
  CHECK(pthread_create(&other, NULL, goes_on_with_the_works_call, shared) == 0);
  sem_wait(&shared->go);
  const struct timespec pause = {0, 200000};
  nanosleep(&pause, NULL);
  return 0;
}

static void deferred_work_ends_while_a_thread_uses_its_call(void) {
  struct shared shared;
  memset(&shared, 0, sizeof shared);
  CHECK(sem_init(&shared.go, 0, 0) == 0);
  shared.arena = new_arena();
  for (int round = 0; round < 50; round++) {
    ANSWERS(OK, device_arena_call_defer_work(&shared.deferred, shared.arena, on.executor, leaves_its_call_to_a_thread,
                                             &shared, NULL, &error));
    ANSWERS(OK, device_arena_call_wait(shared.deferred, 60000000000ull, &error));
    ANSWERS(OK, device_arena_deferred_free(shared.deferred, &error));
    CHECK(pthread_join(other, NULL) == 0);
  }
  CHECK(stats_of(shared.arena).rewinds == 50);
  ANSWERS(OK, device_arena_free(shared.arena, &error));
}

void test_threads(void) {
  RUN(two_threads_contend_for_one_arena);
  RUN(who_wants_to_wait_is_not_refused);
  RUN(two_threads_use_one_call);
  RUN(one_of_two_threads_finishes_a_call);
  RUN(a_handle_that_another_thread_uses_is_contended);
  RUN(deferred_work_ends_while_a_thread_uses_its_call);
}
