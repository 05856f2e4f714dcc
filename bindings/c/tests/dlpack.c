// Views as tensors of DLPack: without copying, read-only, and held until the consumer is done.
#include "check.h"

// As dlpack.h has them.
typedef struct {
  uint32_t major, minor;
} DLPackVersion;

typedef struct {
  int32_t device_type, device_id;
} DLDevice;

typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
};

enum { CODE_UINT = 1, CODE_FLOAT = 2, TYPE_CPU = 1, TYPE_CUDA = 2, TYPE_ROCM = 10, READ_ONLY = 1 };

static void a_tensor_is_the_view_itself(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 24, 1);
  device_arena_call_t call = 0;
  device_arena_guard_t guard = 0;
  struct DLManagedTensorVersioned *tensor = NULL, *other = NULL;
  const int64_t shape[] = {2, 3};
  const void *data = NULL;
  if (on.is_device) {
    ANSWERS(OK, device_arena_view_device_pointer(&guard, view, 0, &data, &error));
  } else {
    ANSWERS(OK, device_arena_view_read_begin(&guard, view, &data, NULL, &error));
  }
  ANSWERS(OK, device_arena_view_read_end(guard, &error));
  ANSWERS(OK, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 1, 2, shape, &error));
  if (!CHECK(tensor != NULL)) return;
  CHECK(tensor->version.major == 1 && tensor->flags == READ_ONLY && tensor->deleter != NULL);
  const DLTensor *it = &tensor->dl_tensor;
  CHECK(it->data == data && it->byte_offset == 0 && it->ndim == 2);
  CHECK(it->shape[0] == 2 && it->shape[1] == 3 && it->strides[0] == 3 && it->strides[1] == 1);
  CHECK(it->dtype.code == CODE_FLOAT && it->dtype.bits == 32 && it->dtype.lanes == 1);
  CHECK(it->device.device_type ==
        (!on.is_device ? TYPE_CPU : on.vendor == DEVICE_ARENA_VENDOR_ROCM ? TYPE_ROCM : TYPE_CUDA));
  CHECK(it->device.device_id == (on.is_device ? on.ordinal : 0));
  if (!on.is_device) CHECK(((const unsigned char *)it->data)[23] == 24);

  // Each consumer counts, and the arena is free again when the last is done.
  ANSWERS(OK, device_arena_view_dlpack(&other, view, on.is_device ? on.executor : 0, CODE_UINT, 8, 1, 1, NULL, &error));
  CHECK(other->dl_tensor.shape[0] == 24);
  ANSWERS(CONTENDED, device_arena_call_begin(&call, arena, 0, &error));
  SAYS("2 readers");
  tensor->deleter(tensor);
  ANSWERS(CONTENDED, device_arena_call_begin(&call, arena, 0, &error));
  other->deleter(other);
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 1, 2, shape, &error));
  SAYS("stale");
  CHECK(tensor == NULL);
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

static void a_tensor_outlives_its_view_and_its_arena(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 8, 0);
  struct DLManagedTensorVersioned *tensor = NULL;
  ANSWERS(OK, device_arena_view_dlpack(&tensor, view, 0, CODE_UINT, 8, 1, 1, NULL, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
  if (!on.is_device) CHECK(((const unsigned char *)tensor->dl_tensor.data)[7] == 7);
  tensor->deleter(tensor);
}

static void shapes_that_are_not_the_views(void) {
  device_arena_t arena = new_arena();
  device_arena_view_t view = published(arena, 24, 0), odd = 0, empty = 0;
  struct DLManagedTensorVersioned *tensor = NULL;
  device_arena_call_t call = 0;
  const int64_t wrong[] = {2, 4}, negative[] = {-2, -3}, huge[] = {INT64_MAX, INT64_MAX}, none[] = {0, 5}, right[] = {6};
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 1, 2, wrong, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 1, 2, negative, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 1, 2, huge, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 1, 2, NULL, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 1, -1, right, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 0, 1, 1, right, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 4, 1, 1, right, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 0, CODE_FLOAT, 32, 0, 1, right, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, view, 12345, CODE_FLOAT, 32, 1, 1, wrong, &error));
  ANSWERS(OK, device_arena_view_slice(&odd, view, 1, 4, &error));
  ANSWERS(INVALID, device_arena_view_dlpack(&tensor, odd, 0, CODE_FLOAT, 32, 1, 1, NULL, &error));
  CHECK(tensor == NULL);
  ANSWERS(OK, device_arena_view_dlpack(&tensor, odd, 0, CODE_UINT, 8, 4, 1, NULL, &error));
  CHECK(tensor->dl_tensor.shape[0] == 1);
  tensor->deleter(tensor);
  ANSWERS(OK, device_arena_view_slice(&empty, view, 8, 0, &error));
  ANSWERS(OK, device_arena_view_dlpack(&tensor, empty, 0, CODE_FLOAT, 32, 1, 2, none, &error));
  CHECK(tensor->dl_tensor.data == NULL && tensor->dl_tensor.shape[1] == 5);
  tensor->deleter(tensor);
  // What was refused holds nothing.
  ANSWERS(OK, device_arena_call_begin(&call, arena, 0, &error));
  ANSWERS(OK, device_arena_call_finish(call, &error));
  ANSWERS(OK, device_arena_view_free(empty, &error));
  ANSWERS(OK, device_arena_view_free(odd, &error));
  ANSWERS(OK, device_arena_view_free(view, &error));
  ANSWERS(OK, device_arena_free(arena, &error));
}

void test_dlpack(void) {
  RUN(a_tensor_is_the_view_itself);
  RUN(a_tensor_outlives_its_view_and_its_arena);
  RUN(shapes_that_are_not_the_views);
}
