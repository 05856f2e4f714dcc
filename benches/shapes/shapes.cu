// Which shape of a copy kernel is fastest where: how many threads share a piece of work, how large that is, how many words
// a thread holds, what its accesses say to the caches, and Hopper's bulk copies. The crate's kernel takes its shape from
// what this prints, and its pieces come from the crate's own source.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 shapes.cu -o shapes && ./shapes [direct|bulk|lists]
//
// A row is a shape, a column a work: microseconds of the device, and their share of what cudaMemcpyAsync reaches at 4 GiB
// in the same run. A shape that copies wrongly ends the program.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "../../backends/kernels/arena.cu"

// A range, and the tiles before it.
struct Range {
  u64 destination, source, bytes, first_tile;
};
using Words = device_arena_words;

static void check(cudaError_t code, const char* what, int line) {
  if (code == cudaSuccess) return;
  printf("line %d: %s: %s\n", line, what, cudaGetErrorString(code));
  exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

// ------------------------------------------------------------------------------------------------------ direct copies

enum class Hint { None, ReadOnce, Streaming };

template <Hint H>
__device__ __forceinline__ Words load_words(u64 address) {
  Words words;
  if (H == Hint::None) {
    words = *reinterpret_cast<const Words*>(address);
  } else if (H == Hint::ReadOnce) {
    asm volatile("ld.global.nc.L1::no_allocate.v2.u64 {%0,%1},[%2];" : "=l"(words.x), "=l"(words.y) : "l"(address));
  } else {
    asm volatile("ld.global.cs.v2.u64 {%0,%1},[%2];" : "=l"(words.x), "=l"(words.y) : "l"(address));
  }
  return words;
}

template <Hint H>
__device__ __forceinline__ void store_words(u64 address, Words words) {
  if (H == Hint::Streaming) {
    asm volatile("st.global.cs.v2.u64 [%0],{%1,%2};" ::"l"(address), "l"(words.x), "l"(words.y) : "memory");
  } else {
    *reinterpret_cast<Words*>(address) = words;
  }
}

template <bool Aligned, int Held, Hint H>
__device__ __forceinline__ void copy_words(u64 to, u64 from, u64 first, u64 last, u32 shift, u32 thread, u32 threads) {
  const u64 stretch = Held * 512;
  for (u64 at = first + thread / 32 * stretch + thread % 32 * 16; at < last; at += threads / 32 * stretch) {
    Words words[Held];
#pragma unroll
    for (int k = 0; k < Held; k++) {
      words[k].x = words[k].y = 0;
      const u64 word = at + k * 512;
      if (word < last) words[k] = Aligned ? load_words<H>(from + word) : device_arena_load<false>(from + word, shift);
    }
#pragma unroll
    for (int k = 0; k < Held; k++) {
      if (at + k * 512 < last) store_words<H>(to + at + k * 512, words[k]);
    }
  }
}

// Where all ranges have as many tiles (`each`), nothing is looked for.
__device__ __forceinline__ Range range_of(const Range* ranges, u64 count, u64 tiles, u64 tile, u32 each) {
  if (each != 0) return ranges[each == 1 ? tile : (u32)tile / each];
  u64 low = 0;
  for (u64 high = count; high - low > 1;) {
    const u64 look = low + (high - low) / 2;
    (ranges[look].first_tile <= tile ? low : high) = look;
  }
  return ranges[low];
}

// A tile is moved by a block, or by each 32 of its threads.
template <int Held, Hint H, bool ByWarp>
__global__ void __launch_bounds__(256) direct(const Range* ranges, u64 count, u64 tiles, u32 tile_bytes, u32 each) {
  const u32 threads = ByWarp ? 32 : blockDim.x;
  const u32 thread = threadIdx.x % threads;
  const u64 step = (u64)gridDim.x * (blockDim.x / threads);
  for (u64 tile = (u64)blockIdx.x * (blockDim.x / threads) + threadIdx.x / threads; tile < tiles; tile += step) {
    const Range range = range_of(ranges, count, tiles, tile, each);
    const u64 to = range.destination, from = range.source, past = to & 15, index = tile - range.first_tile;
    const u32 shift = (u32)(from - to) & 15;
    const u64 begin = index == 0 ? 0 : index * tile_bytes - past;
    const device_arena_part part = device_arena_within(
        device_arena_cut(to, range.bytes, begin, (index + 1) * tile_bytes - past), range.bytes, shift);
    if (shift == 0) {
      copy_words<true, Held, H>(to, from, part.first, part.last, shift, thread, threads);
    } else {
      copy_words<false, (Held + 1) / 2, H>(to, from, part.first, part.last, shift, thread, threads);
    }
    const u32 head = (u32)(part.first - part.begin);
    for (u32 byte = thread; byte < head + (u32)(part.end - part.last); byte += threads) {
      const u64 at = byte < head ? part.begin + byte : part.last + (byte - head);
      device_arena_store_byte(to + at, device_arena_load_byte(from + at));
    }
  }
}

// -------------------------------------------------------------------------------------------------------- bulk copies

__device__ __forceinline__ u32 shared(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// One thread keeps `Stages` buffers of a tile going; a tile is stored `Ahead` turns after its load was begun. Ends are at
// multiples of 16.
template <int Stages, int Ahead>
__global__ void __launch_bounds__(32) bulk(const Range* ranges, u64 count, u64 tiles, u32 tile_bytes, u32 each) {
  extern __shared__ __align__(128) unsigned char buffers[];
  __shared__ __align__(8) u64 barriers[Stages];
  if (threadIdx.x != 0) return;
  for (int stage = 0; stage < Stages; stage++) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0],1;" ::"r"(shared(&barriers[stage])));
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  const u64 turns = blockIdx.x < tiles ? (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  u64 to[Stages];
  u32 bytes[Stages];
  for (u64 round = 0; round < turns + Ahead; round += Stages) {
#pragma unroll
    for (int stage = 0; stage < Stages; stage++) {
      const u64 turn = round + stage;
      if (turn < turns) {
        asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Stages - Ahead - 1) : "memory");
        const u64 tile = blockIdx.x + turn * gridDim.x;
        const Range range = range_of(ranges, count, tiles, tile, each);
        const u64 at = (tile - range.first_tile) * tile_bytes;
        to[stage] = range.destination + at;
        bytes[stage] = (u32)(range.bytes - at < tile_bytes ? range.bytes - at : tile_bytes);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(shared(&barriers[stage])),
                     "r"(bytes[stage])
                     : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
                shared(buffers + (u64)stage * tile_bytes)),
            "l"(range.source + at), "r"(bytes[stage]), "r"(shared(&barriers[stage]))
            : "memory");
      }
      if (turn >= Ahead && turn - Ahead < turns) {
        const int loaded = (stage + Stages - Ahead) % Stages;
        const u32 parity = (u32)((turn - Ahead) / Stages) & 1;
        u32 done = 0;
        while (!done) {
          asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.u32 %0,1,0,p;}"
                       : "=r"(done)
                       : "r"(shared(&barriers[loaded])), "r"(parity)
                       : "memory");
        }
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;" ::"l"(to[loaded]),
                     "r"(shared(buffers + (u64)loaded * tile_bytes)), "r"(bytes[loaded])
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// ---------------------------------------------------------------------------------------------------- lists by value

template <int Length>
struct List {
  Range ranges[Length];
};

template <int Length>
__global__ void __launch_bounds__(256) by_value(const __grid_constant__ List<Length> list, u64 count) {
  const u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (at >= count) return;
  const Range& range = list.ranges[at];
  const device_arena_part part = device_arena_cut(range.destination, range.bytes, 0, range.bytes);
  copy_words<true, 4, Hint::None>(range.destination, range.source, part.first, part.last, 0, threadIdx.x % 32, 32);
}

// -------------------------------------------------------------------------------------------------------------- works

struct Work {
  std::string name;
  std::vector<Range> ranges;
  u64 bytes = 0;
  bool aligned = true;
};

struct Layout {
  std::vector<Range> ranges;
  u64 tiles = 0;
  u32 each = 0;
};

static Layout lay_out(const Work& work, u32 tile_bytes) {
  Layout layout;
  layout.ranges = work.ranges;
  bool alike = true;
  u64 first = 0;
  for (Range& range : layout.ranges) {
    const u64 tiles = (range.bytes + range.destination % 16 + tile_bytes - 1) / tile_bytes;
    if (first == 0) first = tiles;
    alike = alike && tiles == first;
    range.first_tile = layout.tiles;
    layout.tiles += tiles;
  }
  layout.each = alike ? (u32)first : 0;
  return layout;
}

__global__ void nothing() {}

__global__ void fill(u64* words, u64 count) {
  for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < count; at += (u64)gridDim.x * blockDim.x) {
    words[at] = (at + 1) * 0x9E3779B97F4A7C15ull;
  }
}

// Every 61st byte of each range, and both ends.
__global__ void compare(const Range* ranges, u64 count, u64 stride, u64* wrong) {
  for (u64 at = blockIdx.x; at < count; at += gridDim.x) {
    const Range range = ranges[at];
    for (u64 byte = threadIdx.x * stride; byte < range.bytes + stride; byte += blockDim.x * stride) {
      const u64 place = byte < range.bytes ? byte : range.bytes - 1;
      if (device_arena_load_byte(range.source + place) != device_arena_load_byte(range.destination + place)) {
        atomicAdd(reinterpret_cast<unsigned long long*>(wrong), 1ull);
      }
    }
  }
}

struct Lab {
  static constexpr u64 pool = 5ull << 30;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  u32 multiprocessors = 0;
  char *from = nullptr, *to = nullptr;
  Range *listed = nullptr, *pinned = nullptr;
  device_arena_copy_range* plain = nullptr;
  u64* wrong = nullptr;
  double ceiling = 0;  // bytes read and written in a microsecond
  std::vector<Work> works;

  template <class F>
  double on_device(F work, int times) {
    std::vector<double> seen;
    for (int round = 0; round < 6; round++) {
      CHECK(cudaEventRecord(begin, stream));
      for (int turn = 0; turn < times; turn++) work();
      CHECK(cudaEventRecord(end, stream));
      CHECK(cudaEventSynchronize(end));
      float milliseconds = 0;
      CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
      if (round != 0) seen.push_back(milliseconds * 1e3 / times);
    }
    std::sort(seen.begin(), seen.end());
    return seen[seen.size() / 2];
  }

  template <class F>
  double end_to_end(F work, int times) {
    std::vector<double> seen;
    for (int turn = -5; turn < times; turn++) {
      const auto start = std::chrono::steady_clock::now();
      work();
      CHECK(cudaStreamSynchronize(stream));
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
      if (turn >= 0) seen.push_back(took.count());
    }
    std::sort(seen.begin(), seen.end());
    return seen[seen.size() / 2];
  }

  void add(const char* name, int count, const std::function<u64()>& bytes, u64 align, u64 skew) {
    static std::mt19937_64 random(7);
    Work work;
    work.name = name;
    work.aligned = skew == 0;
    u64 at = 0;
    for (int range = 0; range < count; range++) {
      const u64 size = bytes();
      work.ranges.push_back({(u64)to + at + skew * 3 % 16, (u64)from + at + skew, size, 0});
      at += (size + align - 1) / align * align + (skew ? align : 0);
      work.bytes += size;
    }
    if (at + 64 > pool) {
      printf("%s is too large\n", name);
      exit(1);
    }
    std::shuffle(work.ranges.begin(), work.ranges.end(), random);
    works.push_back(work);
  }

  u32 blocks(u64 wanted, u32 each_multiprocessor) const {
    const u64 most = each_multiprocessor == 0 ? 0x7fffffff : (u64)multiprocessors * each_multiprocessor;
    return (u32)std::max<u64>(1, std::min(wanted, most));
  }

  void row(const std::string& name, u32 tile_bytes, bool aligned_alone, u64 least,
           const std::function<void(const Layout&)>& run) {
    printf("%-34s", name.c_str());
    for (const Work& work : works) {
      // Bulk copies take multiples of 16 bytes.
      auto is_whole = [](const Range& range) { return range.bytes % 16 == 0; };
      const bool whole = std::all_of(work.ranges.begin(), work.ranges.end(), is_whole);
      if ((aligned_alone && !(work.aligned && whole)) || work.bytes / work.ranges.size() < least) {
        printf(" %11s", "-");
        continue;
      }
      const Layout layout = lay_out(work, tile_bytes);
      const u64 count = layout.ranges.size();
      CHECK(cudaMemcpy(listed, layout.ranges.data(), count * sizeof(Range), cudaMemcpyHostToDevice));
      // As the crate's kernels take them: the tiles before each are behind all.
      CHECK(cudaMemcpy2D(plain, sizeof *plain, layout.ranges.data(), sizeof(Range), sizeof *plain, count,
                         cudaMemcpyHostToDevice));
      CHECK(cudaMemcpy2D(plain + count, sizeof(u64), &layout.ranges.data()->first_tile, sizeof(Range), sizeof(u64), count,
                         cudaMemcpyHostToDevice));
      CHECK(cudaMemsetAsync(to, 1, pool, stream));
      CHECK(cudaMemsetAsync(wrong, 0, sizeof(u64), stream));
      run(layout);
      CHECK(cudaGetLastError());
      compare<<<4096, 256, 0, stream>>>(listed, count, work.bytes > (64 << 20) ? 4093 : 61, wrong);
      u64 found = 0;
      CHECK(cudaMemcpyAsync(&found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      if (found != 0) {
        printf("\n%s: wrong bytes in %s\n", name.c_str(), work.name.c_str());
        exit(1);
      }
      const int times = work.bytes > (100 << 20) ? 2 : work.bytes > (20 << 20) ? 10 : 40;
      const double took = on_device([&] { run(layout); }, times);
      printf(" %6.1f %3.0f%%", took, 200.0 * work.bytes / took / ceiling);
    }
    printf("\n");
    fflush(stdout);
  }

  template <int Held, Hint H, bool ByWarp>
  void direct_row(u32 tile_bytes, u32 threads, u32 each_multiprocessor) {
    char name[64];
    snprintf(name, sizeof name, "%s, %d words, hint %d, %u K, %u x %u", ByWarp ? "warp" : "block", Held, (int)H,
             tile_bytes >> 10, threads, each_multiprocessor);
    row(name, tile_bytes, false, 0, [&](const Layout& layout) {
      const u64 at_once = ByWarp ? threads / 32 : 1;
      const u32 grid = blocks((layout.tiles + at_once - 1) / at_once, each_multiprocessor);
      direct<Held, H, ByWarp>
          <<<grid, threads, 0, stream>>>(listed, layout.ranges.size(), layout.tiles, tile_bytes, layout.each);
    });
  }

  template <int Stages, int Ahead>
  void bulk_row(u32 tile_bytes, u32 each_multiprocessor) {
    char name[64];
    snprintf(name, sizeof name, "bulk, %d stages, %d ahead, %u K, x %u", Stages, Ahead, tile_bytes >> 10,
             each_multiprocessor);
    const int room = Stages * (int)tile_bytes;
    CHECK(cudaFuncSetAttribute(bulk<Stages, Ahead>, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
    row(name, tile_bytes, true, 1000, [&](const Layout& layout) {
      const u32 grid = blocks(layout.tiles, each_multiprocessor);
      bulk<Stages, Ahead>
          <<<grid, 32, room, stream>>>(listed, layout.ranges.size(), layout.tiles, tile_bytes, layout.each);
    });
  }

  template <int Length>
  void by_value_column(const Layout& layout, int times) {
    static List<Length> list;
    const double took = end_to_end(
        [&] {
          for (u64 at = 0; at < layout.ranges.size(); at += Length) {
            const u64 count = std::min<u64>(Length, layout.ranges.size() - at);
            memcpy(list.ranges, layout.ranges.data() + at, count * sizeof(Range));
            by_value<Length><<<(u32)(count + 7) / 8, 256, 0, stream>>>(list, count);
          }
        },
        times);
    printf("  %d by value %.1f", Length, took);
  }

  // How a list gets to the device, end to end.
  void lists() {
    printf("an empty launch, end to end %.2f us\n", end_to_end([&] { nothing<<<1, 32, 0, stream>>>(); }, 500));
    for (const Work& work : works) {
      if (!work.aligned || work.ranges.size() == 1 || work.bytes > (512ull << 20)) continue;
      const bool short_ones = work.bytes / work.ranges.size() < 8192;
      const Layout layout = lay_out(work, short_ones ? 4096 : 32768);
      const u64 count = layout.ranges.size(), bytes = count * sizeof(Range);
      CHECK(cudaMemcpy(listed, layout.ranges.data(), bytes, cudaMemcpyHostToDevice));
      const int times = count > 10000 ? 31 : 201;
      auto launch = [&](const Range* list, u32 each) {
        if (short_ones) {
          const u32 grid = blocks((layout.tiles + 7) / 8, 0);
          direct<4, Hint::None, true><<<grid, 256, 0, stream>>>(list, count, layout.tiles, 4096, each);
        } else {
          direct<4, Hint::None, false><<<blocks(layout.tiles, 0), 256, 0, stream>>>(list, count, layout.tiles, 32768, each);
        }
      };
      auto upload = [&](const Range* source) {
        CHECK(cudaMemcpyAsync(listed, source, bytes, cudaMemcpyHostToDevice, stream));
      };
      auto write = [&] { memcpy(pinned, layout.ranges.data(), bytes); };
      auto take = [&] {
        device_arena_copy_list one = {};
        one.range[0] = {(u64)listed, (u64)pinned, bytes};
        const u64 tiles = (bytes + DEVICE_ARENA_SHORT_TILE - 1) / DEVICE_ARENA_SHORT_TILE;
        device_arena_copy_few_short<<<(u32)tiles, 32, 0, stream>>>(one, 1, tiles, tiles);
      };
      printf("%-12s prepared %.1f, searched %.1f; mapped %.1f, searched %.1f; pinned upload %.1f; pageable upload %.1f; "
             "taken by a kernel %.1f",
             work.name.c_str(), end_to_end([&] { launch(listed, layout.each); }, times),
             end_to_end([&] { launch(listed, 0); }, times),
             end_to_end([&] { write(), launch(pinned, layout.each); }, times),
             end_to_end([&] { write(), launch(pinned, 0); }, times),
             end_to_end([&] { write(), upload(pinned), launch(listed, layout.each); }, times),
             end_to_end([&] { upload(layout.ranges.data()), launch(listed, layout.each); }, times),
             end_to_end([&] { write(), take(), launch(listed, layout.each); }, times));
      if (short_ones) {
        by_value_column<64>(layout, times);
        by_value_column<120>(layout, times);
        by_value_column<512>(layout, times);
        by_value_column<1000>(layout, times);
      }
      printf("\n");
      fflush(stdout);
    }
  }

  Lab() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    multiprocessors = (u32)device.multiProcessorCount;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaMalloc(&from, pool));
    CHECK(cudaMalloc(&to, pool));
    CHECK(cudaMalloc(&listed, 70000 * sizeof(Range)));
    CHECK(cudaMalloc(&plain, 70000 * (sizeof *plain + sizeof(u64))));
    CHECK(cudaMallocHost(&pinned, 70000 * sizeof(Range)));
    CHECK(cudaMalloc(&wrong, sizeof(u64)));
    fill<<<1024, 256, 0, stream>>>(reinterpret_cast<u64*>(from), pool / 8);
    const u64 four = 4ull << 30;
    const double took = on_device([&] { cudaMemcpyAsync(to, from, four, cudaMemcpyDeviceToDevice, stream); }, 2);
    ceiling = 2.0 * four / took;
    printf("%s, %u multiprocessors, ceiling %.0f GB/s\n", device.name, multiprocessors, ceiling / 1e3);
    auto fixed = [](u64 bytes) { return [bytes] { return bytes; }; };
    auto mixed = [] {
      static std::mt19937_64 random(11);
      return (u64)std::exp2(std::uniform_real_distribution<double>(4, 20)(random));
    };
    add("1 x 1G", 1, fixed(1 << 30), 256, 0);
    add("4096 x 512K", 4096, fixed(512 << 10), 256, 0);
    add("1024 x 64K", 1024, fixed(64 << 10), 256, 0);
    add("65536x1536", 65536, fixed(1536), 256, 0);
    add("mixed", 4096, mixed, 256, 0);
    add("16384 x 256", 16384, fixed(256), 256, 0);
    add("1024 x 1K", 1024, fixed(1024), 256, 0);
    add("128 x 2K", 128, fixed(2048), 256, 0);
    add("u 1 x 1G", 1, fixed(1 << 30), 16, 5);
    add("u 4096x512K", 4096, fixed(512 << 10), 16, 5);
    add("u 1024x64K", 1024, fixed(64 << 10), 16, 5);
    add("u mixed", 4096, mixed, 16, 5);
    add("u 16384x255", 16384, fixed(255), 256, 3);
  }
};

int main(int count, char** arguments) {
  const std::string part = count > 1 ? arguments[1] : "";
  Lab lab;
  printf("%-34s", "shape");
  for (const Work& work : lab.works) printf(" %11s", work.name.c_str());
  printf("\n");
  if (part.empty() || part == "direct") {
    lab.row("the crate's, 128", DEVICE_ARENA_TILE, false, 0, [&](const Layout& layout) {
      device_arena_copy<<<lab.blocks(layout.tiles, 0), 128, 0, lab.stream>>>(
          lab.plain, layout.ranges.size(), layout.tiles, layout.each);
    });
    lab.row("the crate's for short ranges", DEVICE_ARENA_SHORT_TILE, false, 0, [&](const Layout& layout) {
      device_arena_copy_short<<<lab.blocks((layout.tiles + 7) / 8, 0), 256, 0, lab.stream>>>(
          lab.plain, layout.ranges.size(), layout.tiles, layout.each);
    });
    lab.direct_row<4, Hint::None, false>(32768, 256, 0);
    lab.direct_row<8, Hint::None, false>(32768, 128, 0);
    lab.direct_row<8, Hint::None, false>(65536, 256, 0);
    lab.direct_row<8, Hint::Streaming, false>(65536, 256, 0);
    lab.direct_row<4, Hint::Streaming, false>(16384, 128, 0);
    lab.direct_row<8, Hint::ReadOnce, false>(65536, 256, 0);
    lab.direct_row<2, Hint::None, true>(4096, 256, 0);
    lab.direct_row<4, Hint::None, true>(4096, 256, 0);
    lab.direct_row<4, Hint::None, true>(8192, 128, 0);
  }
  if (part.empty() || part == "bulk") {
    lab.bulk_row<4, 2>(8192, 6);
    lab.bulk_row<4, 2>(16384, 3);
    lab.bulk_row<8, 4>(8192, 3);
    lab.bulk_row<8, 4>(4096, 6);
    lab.bulk_row<4, 2>(4096, 12);
    lab.bulk_row<6, 3>(32768, 1);
    lab.bulk_row<2, 1>(32768, 3);
  }
  if (part.empty() || part == "lists") lab.lists();
  return 0;
}
