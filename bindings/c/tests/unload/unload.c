// Closes the library, whose path is the argument, while it is in use: by a worker that nobody waits for, and by a tensor.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "device_arena.h"

// What begins a `DLManagedTensorVersioned`.
struct tensor {
  uint32_t version[2];
  void *manager;
  void (*deleter)(struct tensor *tensor);
};

static void *library;
static struct tensor *lent;
static sem_t go, done;

#define DECLARE(name) __typeof__(&device_arena_##name) name = (__typeof__(name))dlsym(library, "device_arena_" #name)

static int32_t work(device_arena_call_t call, void *user_data) {
  (void)call;
  (void)user_data;
  sem_wait(&go);
  sem_post(&done);
  return 0;
}

// A thread of its own, since the library stays anyway as long as one that has used it does.
static void *user(void *argument) {
  int *failed = argument;
  DECLARE(library_load);
  DECLARE(library_free);
  DECLARE(executor_host);
  DECLARE(executor_free);
  DECLARE(init);
  DECLARE(free);
  DECLARE(call_begin);
  DECLARE(call_output);
  DECLARE(output_publish);
  DECLARE(call_finish);
  DECLARE(view_dlpack);
  DECLARE(view_free);
  DECLARE(call_defer_work);
  DECLARE(deferred_free);
  device_arena_library_t loaded = 0;
  device_arena_executor_t executor = 0;
  device_arena_t arena = 0, other = 0;
  device_arena_call_t call = 0;
  device_arena_output_t output = 0;
  device_arena_view_t view = 0;
  device_arena_deferred_t deferred = 0;
  *failed |= library_load(&loaded, NULL) | executor_host(&executor, loaded, NULL) | init(&arena, executor, NULL);
  *failed |= call_begin(&call, arena, 0, NULL) | call_output(&output, call, 8, NULL);
  *failed |= output_publish(&view, output, NULL) | call_finish(call, NULL);
  *failed |= view_dlpack((struct DLManagedTensorVersioned **)&lent, view, 0, 1, 8, 1, 1, NULL, NULL);
  *failed |= init(&other, executor, NULL) | call_defer_work(&deferred, other, 0, work, NULL, NULL, NULL);
  // Every handle is freed: the worker and the tensor are left.
  *failed |= deferred_free(deferred, NULL) | view_free(view, NULL) | free(arena, NULL) | free(other, NULL);
  *failed |= executor_free(executor, NULL) | library_free(loaded, NULL);
  return NULL;
}

int main(int argc, char **argv) {
  int failed = 0;
  pthread_t thread;
  if (argc != 2 || (library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) {
    fprintf(stderr, "usage: %s libdevice_arena.so\n", argv[0]);
    return 2;
  }
  sem_init(&go, 0, 0);
  sem_init(&done, 0, 0);
  if (pthread_create(&thread, NULL, user, &failed) != 0 || pthread_join(thread, NULL) != 0 || failed != 0) return 1;
  if (dlclose(library) != 0) return 1;
  sem_post(&go);
  sem_wait(&done);
  lent->deleter(lent);
  puts("a library that is closed while it is in use stays");
  return 0;
}
