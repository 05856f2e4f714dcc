// The verbs of verbs.rs for a GPU. device.rs launches them, in this order: embed_count, embed_sum and embed_write take
// texts apart, embed_rows embeds them. `ci/kernels --write` makes kernels.ptx of this file.
#ifndef DEVICE_ARENA_H
#include "../../include/device_arena.h"
#endif
#ifndef DEVICE_ARENA_PRELUDE
#include "../../backends/kernels/prelude.h"
#endif

// As in device.rs: threads of a block, bytes of text that a thread takes, numbers of a row. A line of text is not long:
// one warp embeds it. embed_sum has more threads, at most as many as this.
#define EMBED_THREADS 32
#define EMBED_SUM_THREADS 256
#define EMBED_RUN 128
#define EMBED_DIM 256

#if defined(DEVICE_ARENA_SIMULATED)
#define EMBED_SHARED static
#else
#define EMBED_SHARED __shared__
#endif

struct embed_sums {
  u64 tokens, bytes;
};

static inline __device__ bool embed_is_space(u8 byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r';
}

static inline __device__ u8 embed_lower(u8 byte) { return byte >= 'A' && byte <= 'Z' ? (u8)(byte + 32) : byte; }

static inline __device__ bool embed_is_letter(u8 byte) {
  const u8 lower = embed_lower(byte);
  return (byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z') || byte >= 128;
}

// ----------------------------------------------------------------------------------------------------------- tokenize

// The first text that begins at `at` or behind it.
static inline __device__ u64 embed_text_from(const u64* offsets, u64 texts, u64 at) {
  u64 low = 0, high = texts;
  while (low < high) {
    const u64 middle = low + (high - low) / 2;
    if (offsets[middle] < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A thread's run of the texts' bytes, wherever texts begin in it: long texts and short ones take the same time. What is
// to be written goes where the runs before end. `tokens` is null where there is no room for them.
template <bool Write>
static inline __device__ embed_sums embed_run(const u8* bytes, const u64* offsets, u64 texts, u64 run, embed_sums here,
                                              u8* strings, u64* tokens, u64* first) {
  // A tape without items may have no offsets.
  const u64 stop = texts == 0 ? 0 : offsets[texts];
  u64 at = texts == 0 ? 0 : offsets[0] + run * EMBED_RUN;
  const u64 end = at + EMBED_RUN < stop ? at + EMBED_RUN : stop;
  u64 text = embed_text_from(offsets, texts, at);
  for (; at < end; at++) {
    bool follows = true;
    // Texts without bytes begin where the next one does.
    for (; text < texts && offsets[text] == at; text++) {
      follows = false;
      if (Write) first[text] = here.tokens;
    }
    const u8 byte = bytes[at];
    if (embed_is_space(byte)) continue;
    if (!follows || !embed_is_letter(byte) || !embed_is_letter(bytes[at - 1])) {
      if (Write && tokens != nullptr) tokens[here.tokens] = here.bytes;
      here.tokens++;
    }
    if (Write) strings[here.bytes] = byte;
    here.bytes++;
  }
  return here;
}

// How many tokens begin in each run, and how many bytes of tokens are in it.
extern "C" __global__ void __launch_bounds__(EMBED_THREADS)
    embed_count(const u8* bytes, const u64* offsets, u64 texts, embed_sums* sums, u64 runs) {
  const u64 run = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (run >= runs) return;
  const embed_sums none = {0, 0};
  sums[run] = embed_run<false>(bytes, offsets, texts, run, none, nullptr, nullptr, nullptr);
}

// Makes of each run's sums those of all runs before it, and behind the last one those of all. One block.
extern "C" __global__ void __launch_bounds__(EMBED_SUM_THREADS) embed_sum(embed_sums* sums, u64 runs) {
  EMBED_SHARED embed_sums parts[EMBED_SUM_THREADS];
  const u64 each = (runs + blockDim.x - 1) / blockDim.x;
  const u64 begin = threadIdx.x * each < runs ? threadIdx.x * each : runs;
  const u64 end = begin + each < runs ? begin + each : runs;
  embed_sums own = {0, 0};
  for (u64 run = begin; run < end; run++) {
    own.tokens += sums[run].tokens;
    own.bytes += sums[run].bytes;
  }
  parts[threadIdx.x] = own;
  __syncthreads();
  embed_sums before = {0, 0};
  for (u32 thread = 0; thread < threadIdx.x; thread++) {
    before.tokens += parts[thread].tokens;
    before.bytes += parts[thread].bytes;
  }
  for (u64 run = begin; run < end; run++) {
    own = sums[run];
    sums[run] = before;
    before.tokens += own.tokens;
    before.bytes += own.bytes;
  }
  if (threadIdx.x == blockDim.x - 1) sums[runs] = before;
}

// Writes what embed_count counted: the bytes of all tokens, where each begins in them and the last one ends (into the room,
// if they fit), and the first token of each text. It may run again with a larger room.
extern "C" __global__ void __launch_bounds__(EMBED_THREADS)
    embed_write(const u8* bytes, const u64* offsets, u64 texts, const embed_sums* sums, u64 runs, u8* strings,
                device_arena_room* room, u64* first) {
  const u64 run = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (run >= runs) return;
  const embed_sums all = sums[runs];
  const u64 needed = (all.tokens + 1) * sizeof(u64);
  // One thread takes the room for all of them, since their order matters. The host sees it there, fit or not.
  if (run == 0) device_arena_take(room, needed);
  u64* tokens = needed <= room->capacity ? (u64*)room->base : nullptr;
  embed_run<true>(bytes, offsets, texts, run, sums[run], strings, tokens, first);
  if (run != runs - 1) return;
  if (tokens != nullptr) tokens[all.tokens] = all.bytes;
  // The end, and texts without bytes before it.
  for (u64 text = texts == 0 ? 0 : embed_text_from(offsets, texts, offsets[texts]); text <= texts; text++) {
    first[text] = all.tokens;
  }
}

// -------------------------------------------------------------------------------------------------------------- embed

static inline __device__ void embed_add(int* sum, int value) {
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
  atomicAdd(sum, value);
#else
  __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
#endif
}

static inline __device__ float embed_root(float value) {
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
  return sqrtf(value);
#else
  return __builtin_sqrtf(value);
#endif
}

// The token of [low, high) that has the byte at `at`.
static inline __device__ u64 embed_token_at(const u64* tokens, u64 low, u64 high, u64 at) {
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    if (tokens[middle] <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// `add_grams` of verbs.rs: those of the token [begin, end) that begin at `start`.
static inline __device__ void embed_grams(const u8* strings, u64 begin, u64 end, u64 start, int* sums) {
  u64 hash = 0xcbf29ce484222325ull;
  for (u64 length = 1; length <= 5 && start + length <= end; length++) {
    hash = (hash ^ embed_lower(strings[start + length - 1])) * 0x100000001b3ull;
    if (length >= 3 || (start == begin && start + length == end)) {
      const u64 mixed = hash * 0x9e3779b97f4a7c15ull;
      embed_add(&sums[(mixed >> 32) % EMBED_DIM], mixed >> 63 == 0 ? 1 : -1);
    }
  }
}

// One block a text, which adds up whole numbers: their sum is the same in any order.
extern "C" __global__ void __launch_bounds__(EMBED_THREADS)
    embed_rows(const u8* strings, const u64* tokens, const u64* first, u64 texts, float* rows) {
  EMBED_SHARED int sums[EMBED_DIM];
  const u64 text = blockIdx.x;
  if (text >= texts) return;
  for (u32 place = threadIdx.x; place < EMBED_DIM; place += blockDim.x) sums[place] = 0;
  __syncthreads();
  const u64 low = first[text], high = first[text + 1];
  // The bytes of a text's tokens are in one piece.
  for (u64 at = tokens[low] + threadIdx.x; at < tokens[high]; at += blockDim.x) {
    const u64 token = embed_token_at(tokens, low, high, at);
    embed_grams(strings, tokens[token], tokens[token + 1], at, sums);
  }
  __syncthreads();
  // Each thread needs the length: it has it sooner than it would have shared it.
  float squares = 0;
  for (u32 place = 0; place < EMBED_DIM; place++) squares += (float)sums[place] * (float)sums[place];
  const float length = embed_root(squares);
  for (u32 place = threadIdx.x; place < EMBED_DIM; place += blockDim.x) {
    rows[text * EMBED_DIM + place] = length > 0 ? (float)sums[place] / length : 0;
  }
}
