// Room that a kernel takes for itself, for outputs whose length only the kernel knows.
//
// The host gives a kernel a pointer to a device_arena_room. Each taker gets its own part of [base, base + capacity) by
// one atomic addition. When the room is too small, takers get null and go on taking: the cursor then stands past the
// capacity and says how many bytes all of them need. The host reads it, makes the room larger, resets it and runs the
// kernel again.
//
//     __global__ void matches(device_arena_room* room, ...) {
//       float* row = device_arena_take_array<float>(room, length);
//       if (row == nullptr) return;  // the host sees it in the cursor and runs the kernel again
//       ...
//     }
//
// C++11, without any header of a vendor: nvcc, hipcc, NVRTC, hiprtc and clang take it, and so does a host compiler.
#ifndef DEVICE_ARENA_H
#define DEVICE_ARENA_H

#if defined(__clang__) && (defined(__CUDA__) || defined(__HIP__))
// The attribute that vendors' headers call __device__: it is known without them.
#define DEVICE_ARENA_DEVICE __attribute__((device))
#elif defined(__NVCC__) || defined(__CUDACC_RTC__)
#define DEVICE_ARENA_DEVICE __device__
#else
#define DEVICE_ARENA_DEVICE
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif
#endif

// No taker gets more bytes than this, and a request above it counts as this much: without it, one wrong length would
// wrap the cursor.
#define DEVICE_ARENA_LARGEST (1ull << 48)

// 64 bytes in device memory. All counts are bytes.
struct device_arena_room {
  // What has been taken, each request rounded up to the alignment. Past the capacity it is the capacity needed.
  // It is exact as long as the requests of one run sum up to less than 2^64.
  unsigned long long cursor;
  unsigned long long capacity;
  // Aligned to `alignment`.
  unsigned char* base;
  // A power of two: 16 unless the host asked for another. Every part begins at a multiple of it.
  unsigned long long alignment;
  // The call that the room belongs to. Kernels leave it alone.
  unsigned long long generation;
  unsigned long long reserved[3];
};

static_assert(sizeof(device_arena_room) == 64, "a device_arena_room is 64 bytes");

// Device scope and no ordering: who reads the parts or the cursor does so in stream order, after the kernel.
inline DEVICE_ARENA_DEVICE unsigned long long device_arena_add(unsigned long long* cursor,
                                                                     unsigned long long bytes) {
#if defined(__clang__) && defined(__HIP__)
  return __hip_atomic_fetch_add(cursor, bytes, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#elif defined(__NVCC__) || defined(__CUDACC_RTC__)
  return atomicAdd(cursor, bytes);
#elif defined(_MSC_VER) && !defined(__clang__)
  return static_cast<unsigned long long>(
      _InterlockedExchangeAdd64(reinterpret_cast<long long*>(cursor), static_cast<long long>(bytes)));
#else
  return __atomic_fetch_add(cursor, bytes, __ATOMIC_RELAXED);
#endif
}

// Takes `bytes` bytes, or returns null where the room doesn't have them. Any thread may take, as often as it likes. Which
// taker gets which part differs from run to run. What the part held before is unspecified.
//
// A taker that gets null has to take everything else that it needs all the same: only then is the cursor the whole need.
// A part of zero bytes has a pointer, and nothing to read or write behind it.
inline DEVICE_ARENA_DEVICE unsigned char* device_arena_take(device_arena_room* room,
                                                                  unsigned long long bytes) {
  const unsigned long long mask = room->alignment - 1;
  const bool fits = bytes <= DEVICE_ARENA_LARGEST;
  const unsigned long long rounded = ((fits ? bytes : DEVICE_ARENA_LARGEST) + mask) & ~mask;
  const unsigned long long start = device_arena_add(&room->cursor, rounded);
  if (!fits || start > room->capacity || rounded > room->capacity - start) return nullptr;
  return room->base + start;
}

// Takes room for `count` values of T, or returns null as device_arena_take does. T's alignment has to be no more than
// the room's. Nothing is constructed.
template <typename T>
inline DEVICE_ARENA_DEVICE T* device_arena_take_array(device_arena_room* room, unsigned long long count) {
  // A product that would wrap counts as too much.
  const unsigned long long bytes =
      count > DEVICE_ARENA_LARGEST / sizeof(T) ? DEVICE_ARENA_LARGEST + 1 : count * sizeof(T);
  return reinterpret_cast<T*>(device_arena_take(room, bytes));
}

// Where a part begins, in bytes from the room's base: what the host can use, on whatever address the room lies.
inline DEVICE_ARENA_DEVICE unsigned long long device_arena_offset(const device_arena_room* room,
                                                                        const void* part) {
  return static_cast<unsigned long long>(static_cast<const unsigned char*>(part) - room->base);
}

#endif
