// Kernels of the suite beside this file: small enough that their answers are known. `ci/kernels --write` makes
// kernels.ptx of this file.
#ifndef DEVICE_ARENA_H
#include "../../include/device_arena.h"
#endif
#ifndef DEVICE_ARENA_PRELUDE
#include "../../backends/kernels/prelude.h"
#endif

// As in lab.rs.
#define SUITE_THREADS 32

static inline __device__ u64 suite_index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// The sum of the bytes of each item of a tape.
extern "C" __global__ void __launch_bounds__(SUITE_THREADS)
    suite_sums(const u8* bytes, const u64* offsets, u64 items, u64* sums) {
  const u64 item = suite_index();
  if (item >= items) return;
  u64 sum = 0;
  for (u64 at = offsets[item]; at < offsets[item + 1]; at++) sum += bytes[at];
  sums[item] = sum;
}

extern "C" __global__ void __launch_bounds__(SUITE_THREADS) suite_fill(u32* values, u64 len, u32 first) {
  const u64 at = suite_index();
  if (at < len) values[at] = first + (u32)at;
}

// In place too.
extern "C" __global__ void __launch_bounds__(SUITE_THREADS)
    suite_add(const u32* from, u32* to, u64 len, u32 addend) {
  const u64 at = suite_index();
  if (at < len) to[at] = from[at] + addend;
}

// Each taker takes so many words and writes its number to all of them.
extern "C" __global__ void __launch_bounds__(SUITE_THREADS)
    suite_take(device_arena_room* room, u64 takers, u64 words) {
  const u64 taker = suite_index();
  if (taker >= takers) return;
  u32* part = device_arena_take_array<u32>(room, words);
  if (part == nullptr) return;
  for (u64 at = 0; at < words; at++) part[at] = (u32)taker;
}

// Writes where it is told to: for an address that nobody may write.
extern "C" __global__ void __launch_bounds__(SUITE_THREADS) suite_poke(u32* place) { *place = 1; }
