// What the tests of the C ABI share: a backend to run on, statuses that are held against what was expected, and a count.
#ifndef DEVICE_ARENA_TESTS_CHECK_H
#define DEVICE_ARENA_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "device_arena.h"

#define OK DEVICE_ARENA_STATUS_OK
#define INVALID DEVICE_ARENA_STATUS_INVALID_ARGUMENT
#define DEVICE DEVICE_ARENA_STATUS_DEVICE
#define CONTENDED DEVICE_ARENA_STATUS_CONTENDED
#define OVER_LIMIT DEVICE_ARENA_STATUS_OVER_LIMIT
#define UNAVAILABLE DEVICE_ARENA_STATUS_UNAVAILABLE
#define PENDING DEVICE_ARENA_STATUS_PENDING

// What the tests run on: the host, or one device.
struct backend {
  device_arena_library_t library;
  device_arena_executor_t executor;
  bool is_device;
  device_arena_vendor_t vendor;
  int32_t ordinal;
};

extern struct backend on;

// The record of the thread's last function. ANSWERS holds it against the status.
extern _Thread_local device_arena_error_t error;

bool check(const char *file, int line, const char *what, bool holds);
bool answers(const char *file, int line, const char *what, device_arena_status_t status, device_arena_status_t expected);

#define CHECK(condition) check(__FILE__, __LINE__, #condition, (condition))
// Evaluates a call whose record is `&error` or null.
#define ANSWERS(expected, call) (forget_error(), answers(__FILE__, __LINE__, #call, (call), (expected)))
#define SAYS(part) check(__FILE__, __LINE__, error.message, strstr(error.message, (part)) != NULL)

static inline void forget_error(void) {
  error.status = (device_arena_status_t)-1;
}

#define RUN(test) run_test(#test, test)
// Of what there is on a device alone.
#define RUN_ON_DEVICE(test) (on.is_device ? run_test(#test, test) : (void)printf("skipped %s: it needs a device\n", #test))
void run_test(const char *name, void (*test)(void));

// An arena where the tests run.
device_arena_t new_arena(void);
// A view of so many bytes, each of them its index plus `first`, by a call of its own.
device_arena_view_t published(device_arena_t arena, size_t bytes, unsigned first);
// Whether a view is so many bytes, each of them its index plus `first`.
bool holds(device_arena_view_t view, size_t bytes, unsigned first);
device_arena_stats_t stats_of(device_arena_t arena);

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

void test_bad_input(void);
void test_arenas(void);
void test_calls(void);
void test_tapes(void);
void test_deferred(void);
void test_threads(void);
void test_planned(void);
void test_dlpack(void);

#endif
