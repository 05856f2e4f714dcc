// Walks the whole interface, on the host or with --vram N on the GPU of that number. It prints what it ran on, and
// `N passed, N failed`.
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

struct backend on;
_Thread_local device_arena_error_t error;

static int passed, failed;
// Threads check as well.
static atomic_int wrong;

bool check(const char *file, int line, const char *what, bool holds) {
  if (!holds) {
    atomic_fetch_add(&wrong, 1);
    printf("%s:%d: not so: %s\n", file, line, what);
  }
  return holds;
}

bool answers(const char *file, int line, const char *what, device_arena_status_t status, device_arena_status_t expected) {
  bool right = status == expected;
  if (error.status != (device_arena_status_t)-1) {
    right = right && error.status == status && (error.message[0] == '\0') == (status == OK);
  }
  if (!right) {
    atomic_fetch_add(&wrong, 1);
    printf("%s:%d: %s instead of %s: %s\n  %s\n", file, line, device_arena_status_name(status),
           device_arena_status_name(expected), what, error.message);
  }
  return right;
}

void run_test(const char *name, void (*test)(void)) {
  const int before = atomic_load(&wrong);
  test();
  const bool is_right = atomic_load(&wrong) == before;
  printf("%s %s\n", is_right ? "ok    " : "FAILED", name);
  if (is_right) {
    passed++;
  } else {
    failed++;
  }
}

device_arena_t new_arena(void) {
  device_arena_t arena = 0;
  ANSWERS(OK, device_arena_init(&arena, on.executor, &error));
  return arena;
}

static void count_up(unsigned char *bytes, size_t count, unsigned first) {
  for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(i + first);
}

device_arena_view_t published(device_arena_t arena, size_t bytes, unsigned first) {
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_view_t view = 0;
  unsigned char *values = malloc(bytes + 1);
  if (!CHECK(values != NULL)) return 0;
  count_up(values, bytes, first);
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_output(&output, call, bytes, &error));
  ANSWERS(OK, device_arena_output_write(output, values, bytes, &error));
  ANSWERS(OK, device_arena_output_publish(&view, output, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  free(values);
  return view;
}

bool holds(device_arena_view_t view, size_t bytes, unsigned first) {
  unsigned char *values = calloc(2, bytes + 1);
  if (!CHECK(values != NULL)) return false;
  unsigned char *expected = values + bytes + 1;
  count_up(expected, bytes, first);
  const bool is_right = ANSWERS(OK, device_arena_view_copy_to_host(view, values, bytes, &error)) &&
                        memcmp(values, expected, bytes) == 0;
  free(values);
  return is_right;
}

device_arena_stats_t stats_of(device_arena_t arena) {
  device_arena_stats_t stats;
  memset(&stats, 0, sizeof stats);
  ANSWERS(OK, device_arena_stats(arena, &stats, &error));
  return stats;
}

int main(int argc, char **argv) {
  const char *number = NULL;
  if (argc == 3 && strcmp(argv[1], "--vram") == 0) {
    number = argv[2];
  } else if (argc != 1) {
    fprintf(stderr, "usage: %s [--vram N]\n", argv[0]);
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (device_arena_abi_version() != DEVICE_ARENA_ABI_VERSION) {
    fprintf(stderr, "the library is of another version than the header\n");
    return 1;
  }
  device_arena_status_t status = device_arena_library_load(&on.library, &error);
  if (status == OK) {
    status = number == NULL ? device_arena_executor_host(&on.executor, on.library, &error)
                            : device_arena_executor_vram(&on.executor, on.library, (uint32_t)atoi(number), &error);
  }
  device_arena_device_t device;
  if (status == OK) status = device_arena_executor_describe(on.executor, &device, &error);
  if (status != OK) {
    fprintf(stderr, "%s: %s\n", device_arena_status_name(status), error.message);
    return 1;
  }
  on.is_device = number != NULL;
  on.vendor = device.vendor;
  on.ordinal = on.is_device ? (int32_t)device.ordinal : -1;
  const char *vendors[] = {"host", "cuda", "rocm"};
  printf("on %s, ordinal %u: %s (%s)\n", vendors[device.vendor], device.ordinal, device.name, device.architecture);

  test_bad_input();
  test_arenas();
  test_calls();
  test_tapes();
  test_deferred();
  test_threads();
  test_planned();
  test_dlpack();

  ANSWERS(OK, device_arena_executor_free(on.executor, &error));
  ANSWERS(OK, device_arena_library_free(on.library, &error));
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || atomic_load(&wrong) != 0;
}
