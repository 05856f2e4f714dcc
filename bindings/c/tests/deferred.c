// Deferred calls: work on an executor's queue, and who waits for it.
#define _DEFAULT_SOURCE
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SECOND 1000000000ull

// What work is handed, and what it leaves.
struct job {
  atomic_int starts, runs, releases;
  sem_t go;
  bool waits;
  int32_t answer;
  device_arena_view_t view;
  device_arena_call_t call;
};

static void begin_job(struct job *job, bool waits, int32_t answer) {
  memset(job, 0, sizeof *job);
  job->waits = waits;
  job->answer = answer;
  CHECK(sem_init(&job->go, 0, 0) == 0);
}

static int32_t work(device_arena_call_t call, void *user_data) {
  struct job *job = user_data;
  device_arena_output_t output = 0;
  job->call = call;
  atomic_fetch_add(&job->starts, 1);
  if (job->waits) sem_wait(&job->go);
  // The call is the work's own, and ends with it.
  ANSWERS(INVALID, device_arena_call_finish(call, &error));
  ANSWERS(INVALID, device_arena_call_abandon(call, &error));
  SAYS("deferred work's");
  ANSWERS(OK, device_arena_call_output(&output, call, 3, &error));
  ANSWERS(OK, device_arena_output_write(output, "abc", 3, &error));
  ANSWERS(OK, device_arena_output_publish(&job->view, output, &error));
  atomic_fetch_add(&job->runs, 1);
  return job->answer;
}

static void release(void *user_data) {
  struct job *job = user_data;
  atomic_fetch_add(&job->releases, 1);
}

static void work_runs_and_its_view_can_be_read(void) {
  device_arena_t arena = new_arena();
  device_arena_deferred_t deferred = 0;
  device_arena_output_t output = 0;
  uint32_t is_done = 7;
  char bytes[3];
  struct job job;
  begin_job(&job, false, 0);
  ANSWERS(OK, device_arena_call_defer_work(&deferred, arena, 0, work, &job, release, &error));
  ANSWERS(OK, device_arena_call_wait(deferred, UINT64_MAX, &error));
  ANSWERS(OK, device_arena_call_wait(deferred, 0, &error));
  ANSWERS(OK, device_arena_deferred_is_done(deferred, &is_done, &error));
  CHECK(is_done == 1 && atomic_load(&job.runs) == 1 && atomic_load(&job.releases) == 1);
  ANSWERS(INVALID, device_arena_call_output(&output, job.call, 1, &error));
  ANSWERS(OK, device_arena_view_copy_to_host(job.view, bytes, 3, &error));
  CHECK(memcmp(bytes, "abc", 3) == 0);
  ANSWERS(OK, device_arena_executor_order_after(on.executor, deferred, &error));
  ANSWERS(INVALID, device_arena_executor_order_after(on.executor, 0, &error));
  ANSWERS(INVALID, device_arena_deferred_is_done(deferred, NULL, &error));
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  ANSWERS(INVALID, device_arena_call_wait(deferred, 0, &error));
  ANSWERS(OK, device_arena_view_free(job.view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void what_work_answers_is_what_waiting_answers(void) {
  device_arena_t arena = new_arena();
  device_arena_deferred_t deferred = 0;
  char bytes[3];
  struct job job;
  begin_job(&job, false, OVER_LIMIT);
  ANSWERS(OK, device_arena_call_defer_work(&deferred, arena, on.executor, work, &job, release, &error));
  ANSWERS(OVER_LIMIT, device_arena_call_wait(deferred, UINT64_MAX, &error));
  SAYS("OVER_LIMIT");
  ANSWERS(OVER_LIMIT, device_arena_call_wait(deferred, UINT64_MAX, &error));
  CHECK(atomic_load(&job.runs) == 1 && atomic_load(&job.releases) == 1);
  // Its call was abandoned.
  ANSWERS(INVALID, device_arena_view_copy_to_host(job.view, bytes, 3, &error));
  ANSWERS(OK, device_arena_view_free(job.view, &error));
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  // PENDING would say that it has not passed.
  begin_job(&job, false, PENDING);
  ANSWERS(OK, device_arena_call_defer_work(&deferred, arena, on.executor, work, &job, NULL, &error));
  ANSWERS(DEVICE_ARENA_STATUS_DRIVER, device_arena_call_wait(deferred, UINT64_MAX, &error));
  SAYS("PENDING");
  ANSWERS(OK, device_arena_view_free(job.view, &error));
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  begin_job(&job, false, 4711);
  ANSWERS(OK, device_arena_call_defer_work(&deferred, arena, on.executor, work, &job, NULL, &error));
  ANSWERS(DEVICE_ARENA_STATUS_DRIVER, device_arena_call_wait(deferred, UINT64_MAX, &error));
  SAYS("4711");
  ANSWERS(OK, device_arena_view_free(job.view, &error));
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void work_that_is_refused_is_the_callers_still(void) {
  device_arena_t arena = new_arena(), of_library = 0;
  device_arena_call_t call = 0;
  device_arena_deferred_t deferred = 7;
  struct job job;
  begin_job(&job, false, 0);
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(CONTENDED, device_arena_call_defer_work(&deferred, arena, 0, work, &job, release, &error));
  CHECK(deferred == 0);
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_init(&of_library, on.library, &error));
  ANSWERS(INVALID, device_arena_call_defer_work(&deferred, of_library, 0, work, &job, release, &error));
  CHECK(atomic_load(&job.runs) == 0 && atomic_load(&job.releases) == 0);
  ANSWERS(OK, device_arena_free(of_library, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void the_hosts_worker_holds_the_arena_meanwhile(void) {
  device_arena_executor_t host = 0;
  device_arena_t arena = 0;
  device_arena_deferred_t deferred = 0;
  device_arena_call_t call = 0;
  uint32_t is_done = 7;
  struct job job;
  begin_job(&job, true, 0);
  ANSWERS(OK, device_arena_executor_host(&host, on.library, &error));
  ANSWERS(OK, device_arena_init(&arena, host, &error));
  ANSWERS(OK, device_arena_call_defer_work(&deferred, arena, 0, work, &job, release, &error));
  ANSWERS(PENDING, device_arena_call_wait(deferred, 0, &error));
  ANSWERS(PENDING, device_arena_call_wait(deferred, 1000000, &error));
  ANSWERS(OK, device_arena_deferred_is_done(deferred, &is_done, &error));
  CHECK(is_done == 0);
  ANSWERS(CONTENDED, device_arena_call_begin(&call, arena, 0, &error));
  SAYS("deferred work");
  // Neither handle is needed for the work to go on.
  ANSWERS(OK, device_arena_executor_free(host, &error));
  sem_post(&job.go);
  ANSWERS(OK, device_arena_call_wait(deferred, 60 * SECOND, &error));
  CHECK(atomic_load(&job.runs) == 1 && atomic_load(&job.releases) == 1);
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_view_free(job.view, &error));
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_call_is_left_to_what_is_queued(void) {
  device_arena_t arena = new_arena(), of_library = 0;
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_view_t view = 0;
  device_arena_deferred_t deferred = 0;
  char bytes[3];
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, 3, &error));
  ANSWERS(OK, device_arena_output_write(output, "xyz", 3, &error));
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  ANSWERS(INVALID, device_arena_call_defer(&deferred, call, on.library, &error));
  ANSWERS(OK, device_arena_call_defer(&deferred, call, 0, &error));
  ANSWERS(INVALID, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_call_wait(deferred, 60 * SECOND, &error));
  ANSWERS(OK, device_arena_view_copy_to_host(view, bytes, 3, &error));
  CHECK(memcmp(bytes, "xyz", 3) == 0);
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));

  // One that is refused goes on.
  ANSWERS(OK, device_arena_init(&of_library, on.library, &error));
  ANSWERS(OK, device_arena_call_begin(&call, of_library, 0, &error));
  ANSWERS(INVALID, device_arena_call_defer(&deferred, call, 0, &error));
  ANSWERS(INVALID, device_arena_call_defer(&deferred, call, arena, &error));
  if (on.is_device) ANSWERS(INVALID, device_arena_call_defer(&deferred, call, on.executor, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_free(of_library, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

struct two {
  device_arena_executor_t host;
  device_arena_t own, other;
  device_arena_deferred_t behind;
};

static int32_t answers_0(device_arena_call_t call, void *user_data) {
  (void)call;
  (void)user_data;
  return 0;
}

static int32_t begins_what_it_holds(device_arena_call_t call, void *user_data) {
  struct two *two = user_data;
  (void)call;
  device_arena_call_t begun = 7;
  ANSWERS(OK, device_arena_call_defer_work(&two->behind, two->other, 0, answers_0, NULL, NULL, &error));
  ANSWERS(INVALID, device_arena_call_wait(two->behind, UINT64_MAX, &error));
  ANSWERS(CONTENDED, device_arena_call_begin(&begun, two->other, 0, &error));
  ANSWERS(INVALID, device_arena_call_begin_timeout(&begun, two->other, 0, UINT64_MAX, &error));
  SAYS("wait for itself");
  ANSWERS(INVALID, device_arena_call_begin_timeout(&begun, two->own, two->host, UINT64_MAX, &error));
  CHECK(begun == 0);
  return 0;
}

static void the_worker_does_not_wait_for_itself(void) {
  struct two two;
  device_arena_deferred_t deferred = 0;
  memset(&two, 0, sizeof two);
  ANSWERS(OK, device_arena_executor_host(&two.host, on.library, &error));
  ANSWERS(OK, device_arena_init(&two.own, two.host, &error));
  ANSWERS(OK, device_arena_init(&two.other, two.host, &error));
  ANSWERS(OK, device_arena_call_defer_work(&deferred, two.own, 0, begins_what_it_holds, &two, NULL, &error));
  ANSWERS(OK, device_arena_call_wait(deferred, 60 * SECOND, &error));
  ANSWERS(OK, device_arena_call_wait(two.behind, 60 * SECOND, &error));
  ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  ANSWERS(OK, device_arena_deferred_free(two.behind, &error));
  ANSWERS(OK, device_arena_free(two.own, &error));
  ANSWERS(OK, device_arena_free(two.other, &error));
  ANSWERS(OK, device_arena_executor_free(two.host, &error));
}

// What the child of a fork is told of a queue whose worker has stayed with its parent.
static bool is_told_in_the_child(device_arena_executor_t host, device_arena_executor_t idle, device_arena_t arena,
                                 device_arena_deferred_t pending) {
  device_arena_call_t call = 0;
  device_arena_deferred_t deferred = 0;
  device_arena_executor_t fresh = 0;
  bool is_right = ANSWERS(UNAVAILABLE, device_arena_call_wait(pending, UINT64_MAX, &error)) && SAYS("forked");
  is_right &= ANSWERS(UNAVAILABLE, device_arena_executor_synchronize(host, &error));
  is_right &= ANSWERS(UNAVAILABLE, device_arena_call_defer_work(&deferred, arena, 0, answers_0, NULL, NULL, &error));
  // Its pages are the child's own, and so is a queue that it starts.
  is_right &= ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  is_right &= ANSWERS(OK, device_arena_call_finish(call, &error));
  is_right &= ANSWERS(OK, device_arena_executor_host(&fresh, on.library, &error));
  is_right &= ANSWERS(OK, device_arena_call_defer_work(&deferred, arena, fresh, answers_0, NULL, NULL, &error));
  is_right &= ANSWERS(OK, device_arena_call_wait(deferred, 20 * SECOND, &error));
  is_right &= ANSWERS(OK, device_arena_deferred_free(deferred, &error));
  is_right &= ANSWERS(OK, device_arena_deferred_free(pending, &error));
  is_right &= ANSWERS(OK, device_arena_executor_free(fresh, &error));
  is_right &= ANSWERS(OK, device_arena_free(arena, &error));
  // The last of it ends no worker.
  is_right &= ANSWERS(OK, device_arena_executor_free(idle, &error));
  return is_right & ANSWERS(OK, device_arena_executor_free(host, &error));
}

static void the_child_of_a_fork_waits_for_no_worker(void) {
  device_arena_executor_t host = 0, idle = 0;
  device_arena_t held = 0, arena = 0;
  device_arena_deferred_t pending = 0;
  struct job job;
  int status = -1;
  begin_job(&job, true, 0);
  ANSWERS(OK, device_arena_executor_host(&host, on.library, &error));
  ANSWERS(OK, device_arena_executor_host(&idle, on.library, &error));
  ANSWERS(OK, device_arena_init(&held, host, &error));
  ANSWERS(OK, device_arena_init(&arena, host, &error));
  ANSWERS(OK, device_arena_call_defer_work(&pending, held, 0, work, &job, release, &error));
  device_arena_deferred_t passed = 0;
  ANSWERS(OK, device_arena_call_defer_work(&passed, arena, idle, answers_0, NULL, NULL, &error));
  ANSWERS(OK, device_arena_call_wait(passed, 60 * SECOND, &error));
  ANSWERS(OK, device_arena_deferred_free(passed, &error));
  // Once it is at work, it holds no lock that the child would find held.
  while (atomic_load(&job.starts) == 0) usleep(100);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(is_told_in_the_child(host, idle, arena, pending) ? 0 : 1);
  }
  sem_post(&job.go);
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  ANSWERS(OK, device_arena_call_wait(pending, 60 * SECOND, &error));
  ANSWERS(OK, device_arena_deferred_free(pending, &error));
  ANSWERS(OK, device_arena_view_free(job.view, &error));
  ANSWERS(OK, device_arena_free(held, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  ANSWERS(OK, device_arena_executor_free(idle, &error));
  ANSWERS(OK, device_arena_executor_free(host, &error));
}

void test_deferred(void) {
  RUN(work_runs_and_its_view_can_be_read);
  RUN(what_work_answers_is_what_waiting_answers);
  RUN(work_that_is_refused_is_the_callers_still);
  RUN(the_hosts_worker_holds_the_arena_meanwhile);
  RUN(a_call_is_left_to_what_is_queued);
  RUN(the_worker_does_not_wait_for_itself);
  RUN(the_child_of_a_fork_waits_for_no_worker);
}
