// Keeps the items of a tape that are not empty. How many bytes that takes only the kernel knows: it takes room for each.
// `ci/kernels --write` makes compact.ptx of this file.
#ifndef DEVICE_ARENA_H
#include "../include/device_arena.h"
#endif
#ifndef DEVICE_ARENA_PRELUDE
#include "../backends/kernels/prelude.h"
#endif

// In front of each item that is kept. Items land in any order, so that each says which one it is.
struct compact_header {
  u64 item, bytes;
};

extern "C" __global__ void compact(const u8* bytes, const u64* offsets, u64 items, device_arena_room* room) {
  const u64 item = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const u64 begin = offsets[item], length = offsets[item + 1] - begin;
  if (length == 0) return;
  u8* piece = device_arena_take(room, sizeof(compact_header) + length);
  // The room is full. It has been told what this item needs, and the host will see that.
  if (piece == nullptr) return;
  compact_header* header = (compact_header*)piece;
  header->item = item;
  header->bytes = length;
  for (u64 at = 0; at < length; at++) piece[sizeof(compact_header) + at] = bytes[begin + at];
}
