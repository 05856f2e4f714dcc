// Runs the kernels on host threads and compares with memmove and memset: one thread of the host for each thread of a
// block, block after block. Buffers are of exactly the size that is used, so that AddressSanitizer sees an access past
// their end; what lies before the source is poisoned as far as its map of eight bytes reaches.
//
//     c++ -std=c++17 -DDEVICE_ARENA_SIMULATED -fsanitize=address,undefined -pthread check.cpp -o check && ./check
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "arena.cu"

#if defined(__SANITIZE_ADDRESS__)
#define CHECK_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECK_POISONS 1
#endif
#endif
#ifdef CHECK_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

// Races don't hang on each alignment, and looking for them takes long: every fifth then.
#if defined(__SANITIZE_THREAD__)
#define CHECK_EVERY 5
#else
#define CHECK_EVERY 1
#endif

// ------------------------------------------------------------------------------------------------------------- executor

thread_local device_arena_dim3 device_arena_thread;
thread_local device_arena_dim3 device_arena_block;
thread_local device_arena_dim3 device_arena_block_dim;
thread_local device_arena_dim3 device_arena_grid_dim;

namespace {

[[noreturn]] void fail(const char* what, unsigned long long a = 0, unsigned long long b = 0, unsigned long long c = 0) {
  std::fprintf(stderr, "FAILED: %s (%llu, %llu, %llu)\n", what, a, b, c);
  std::_Exit(1);  // other threads may wait at the barrier
}

// The barrier of the block that runs. A thread that ends while others wait, or that waits while others have ended, is a
// fault: on a device it hangs.
struct Barrier {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned threads = 0, waiting = 0, ended = 0;
  unsigned long long turn = 0;

  void wait(bool at_end) {
    std::unique_lock<std::mutex> lock(mutex);
    ended += at_end ? 1 : 0;
    waiting += 1;
    if (ended != 0 && waiting != ended) fail("a barrier that not all threads came to", waiting, ended, threads);
    if (waiting == threads) {
      waiting = ended = 0;
      turn += 1;
      changed.notify_all();
      return;
    }
    const unsigned long long mine = turn;
    changed.wait(lock, [&] { return turn != mine; });
  }
} barrier;

void launch(unsigned grid, unsigned block, const std::function<void()>& kernel, unsigned along_y = 1) {
  barrier.threads = block;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < block; thread++) {
    threads.emplace_back([=, &kernel] {
      device_arena_thread = {thread, 0, 0};
      device_arena_block_dim = {block, 1, 1};
      device_arena_grid_dim = {grid, along_y, 1};
      for (unsigned at = 0; at < grid * along_y; at++) {
        device_arena_block = {at % grid, at / grid, 0};
        kernel();
        barrier.wait(true);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

u64 tiles_of(u64 address, u64 bytes, u64 tile = DEVICE_ARENA_TILE) {
  return bytes == 0 ? 0 : (bytes + (address & 15) + tile - 1) / tile;
}

bool overlaps_itself(const device_arena_copy_range& range) {
  return range.destination - range.source < range.bytes || range.source - range.destination < range.bytes;
}

// Writes where the tiles of each range begin.
struct Tiling {
  u64 tiles = 0, each = 0;

  template <typename Number>
  Tiling(const device_arena_copy_range* ranges, Number* first_tile, u64 count, u64 tile) {
    bool alike = true;
    for (u64 at = 0; at < count; at++) {
      const bool at_once = ranges[at].bytes != 0 && overlaps_itself(ranges[at]);
      const u64 own = at_once ? 1 : tiles_of(ranges[at].destination, ranges[at].bytes, tile);
      alike = alike && (at == 0 || own == each);
      each = own;
      first_tile[at] = (Number)tiles;
      tiles += own;
    }
    if (!alike) each = 0;
  }
};

u8 pattern(u64 at) { return (u8)((at * 2654435761u) >> 13 ^ at); }

u8* bytes_of(u64 bytes) {
  // malloc(0) may be null.
  u8* memory = static_cast<u8*>(std::malloc(bytes == 0 ? 1 : bytes));
  if (memory == nullptr) fail("out of memory", bytes);
  return memory;
}

// --------------------------------------------------------------------------------------------------------------- copies

// A buffer as it is and as it should be. Source and destination of a range are in one, or in two of them.
struct Buffer {
  u8* memory;
  std::vector<u8> expected;

  explicit Buffer(u64 bytes, u64 seed) : memory(bytes_of(bytes)), expected() {
    expected.reserve(bytes + 1);  // never null
    expected.resize(bytes);
    for (u64 at = 0; at < bytes; at++) memory[at] = expected[at] = pattern(at + seed);
  }
  ~Buffer() { std::free(memory); }
  Buffer(const Buffer&) = delete;
  void compare(const char* what, u64 a, u64 b, u64 c) const {
    for (u64 at = 0; at < expected.size(); at++) {
      if (memory[at] != expected[at]) {
        std::fprintf(stderr, "byte %llu of %zu differs\n", at, expected.size());
        fail(what, a, b, c);
      }
    }
  }
};

struct Copies {
  struct Entry {
    std::shared_ptr<Buffer> to, from;
    u64 a, b, c;
    u64 hidden;
  };
  std::vector<device_arena_copy_range> ranges;
  std::vector<Entry> entries;

  void add(u64 destination, u64 source, u64 bytes) { ranges.push_back({destination, source, bytes}); }

  // Two buffers that end where the range ends.
  void apart(u64 to, u64 from, u64 bytes) {
    auto destination = std::make_shared<Buffer>(to + bytes, 1);
    auto source = std::make_shared<Buffer>(from + bytes, 77);
    std::memcpy(destination->expected.data() + to, source->expected.data() + from, bytes);
    ASAN_POISON_MEMORY_REGION(source->memory, from & ~7ull);
    add((u64)(destination->memory + to), (u64)(source->memory + from), bytes);
    entries.push_back({destination, source, to, from, bytes, from & ~7ull});
  }

  void within(u64 to, u64 from, u64 bytes) {
    auto both = std::make_shared<Buffer>((to > from ? to : from) + bytes, 5);
    std::memmove(both->expected.data() + to, both->expected.data() + from, bytes);
    const u64 hidden = (to < from ? to : from) & ~7ull;
    ASAN_POISON_MEMORY_REGION(both->memory, hidden);
    add((u64)(both->memory + to), (u64)(both->memory + from), bytes);
    entries.push_back({both, both, to, from, bytes, hidden});
  }

  // As one launch, or in lists that travel with it. What lists hold past their count is garbage.
  void run(unsigned grid, unsigned block, bool few, bool in_short_tiles = false) {
    const u64 tile = in_short_tiles ? DEVICE_ARENA_SHORT_TILE : DEVICE_ARENA_TILE;
    if (few) {
      for (u64 at = 0; at < ranges.size(); at += DEVICE_ARENA_COPY_FEW) {
        device_arena_copy_list list;
        std::memset(&list, 0xa5, sizeof list);
        u64 count = 0;
        for (; count < DEVICE_ARENA_COPY_FEW && at + count < ranges.size(); count++) list.range[count] = ranges[at + count];
        const Tiling tiling(list.range, list.first_tile, count, tile);
        launch(grid, block, [&] {
          (in_short_tiles ? device_arena_copy_few_short : device_arena_copy_few)(list, count, tiling.tiles, tiling.each);
        });
      }
    } else {
      // Of exactly the size as well.
      const u64 count = ranges.size();
      std::vector<u64> first_tile(count);
      const Tiling tiling(ranges.data(), first_tile.data(), count, tile);
      // Where all have as many tiles, there is nothing behind the ranges.
      const u64 bytes = count * sizeof ranges[0], behind = tiling.each != 0 ? 0 : count * sizeof(u64);
      u8* exact = bytes_of(bytes + behind);
      std::memcpy(exact, ranges.data(), bytes);
      std::memcpy(exact + bytes, first_tile.data(), behind);
      const auto* list = reinterpret_cast<const device_arena_copy_range*>(exact);
      launch(grid, block, [&] {
        (in_short_tiles ? device_arena_copy_short : device_arena_copy)(list, count, tiling.tiles, tiling.each);
      });
      std::free(exact);
    }
    for (const Entry& entry : entries) {
      ASAN_UNPOISON_MEMORY_REGION(entry.from->memory, entry.hidden);
      entry.to->compare("copy: destination offset, source offset, bytes", entry.a, entry.b, entry.c);
      entry.from->compare("copy: the source changed", entry.a, entry.b, entry.c);
    }
    ranges.clear();
    entries.clear();
  }
};

const u64 TILE = DEVICE_ARENA_TILE;

void short_copies() {
  for (u64 to = 0; to < 32; to += CHECK_EVERY) {
    Copies copies;
    for (u64 from = 0; from < 32; from++) {
      for (u64 bytes = 0; bytes <= 100; bytes++) copies.apart(to, from, bytes);
    }
    const unsigned blocks[] = {32, 64, 47};
    copies.run(1 + to % 3, blocks[to % 3], to % 8 > 5, to % 2 == 1);
  }
}

void copies_around_tiles(unsigned grid, unsigned block, bool in_short_tiles) {
  const u64 tile = in_short_tiles ? DEVICE_ARENA_SHORT_TILE : TILE;
  Copies copies;
  for (u64 to = 0; to < 16; to += 3) {
    for (u64 from = 0; from < 16; from += 1) {
      for (u64 bytes : {tile - 33, tile - 16, tile - 1, tile, tile + 1, tile + 17, 2 * tile - to, 3 * tile + 5}) {
        copies.apart(to, from, bytes);
      }
    }
    copies.run(grid, block, false, in_short_tiles);
  }
}

// Where all have as many tiles, none is looked for.
void alike_copies(unsigned grid, unsigned block, bool in_short_tiles) {
  const u64 tile = in_short_tiles ? DEVICE_ARENA_SHORT_TILE : TILE;
  for (u64 each = 1; each <= 3; each++) {
    for (bool few : {false, true}) {
      Copies copies;
      for (u64 n = 0; n < 40; n++) copies.apart(n % 16, n / 3 % 16, each * tile - 15 - n);
      copies.run(grid, block, few, in_short_tiles);
    }
  }
}

// Both ways, by any distance: below a word, a word, and more than a block moves at once.
void overlaps(unsigned grid, unsigned block) {
  for (u64 distance : {0, 1, 2, 7, 8, 15, 16, 17, 31, 48, 333, 4096, 20000}) {
    Copies copies;
    for (u64 bytes : {1ull, 15ull, 16ull, 32ull, 47ull, 62ull, 63ull, 100ull, 1000ull, 4128ull, TILE + 3}) {
      for (u64 at : {0, 1, 5, 8, 15, 29}) {
        if (bytes > 5000 && at % 8 != 5) continue;  // long ones take many barriers
        copies.within(at, at + distance, bytes);
        copies.within(at + distance, at, bytes);
      }
    }
    copies.run(grid, block, distance % 2 == 1);
  }
}

// Thousands of ranges, some without bytes at either end and in between, some of many tiles.
void many_ranges(bool in_short_tiles) {
  Copies copies;
  u64 state = 12345;
  for (u64 n = 0; n < 3000; n++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const u64 random = state >> 33;
    u64 bytes = n < 3 || n > 2996 || random % 5 == 0 ? 0 : random % 300;
    if (n % 500 == 250) bytes = 3 * TILE + random % 100;
    copies.apart(random / 7 % 16, random / 113 % 16, bytes);
  }
  copies.run(3, 64, false, in_short_tiles);
}

// ----------------------------------------------------------------------------------------------------------------- rows

// The numbers of rows, in an array of exactly their size.
struct Numbers {
  u8* memory = nullptr;
  u64 width = 0;

  // Mode 0: none, so that rows are in order. Otherwise `of(turn)`, in 4 or 8 bytes.
  Numbers(int mode, u64 count, const std::function<u64(u64)>& of) {
    if (mode == 0) return;
    width = mode == 1 ? 4 : 8;
    memory = bytes_of(count * width);
    for (u64 turn = 0; turn < count; turn++) {
      const u64 number = of(turn);
      std::memcpy(memory + turn * width, &number, width);
    }
  }
  ~Numbers() { std::free(memory); }
  Numbers(const Numbers&) = delete;
};

struct RowShape {
  u64 to, from, to_stride, from_stride, bytes, count;
};

// Destinations in order or from the last to the first; sources in order or some of them again and again.
void move_rows(const RowShape& shape, int to_mode, int from_mode, u64 lanes, unsigned grid, unsigned along_y,
               unsigned block) {
  const auto to_row = [&](u64 turn) { return to_mode == 0 ? turn : shape.count - 1 - turn; };
  const auto from_row = [&](u64 turn) { return from_mode == 0 ? turn : turn * 5 % 3 % shape.count; };
  Numbers to_numbers(to_mode, shape.count, to_row);
  Numbers from_numbers(from_mode, shape.count, from_row);
  const u64 last = shape.count - 1;
  u64 last_from = 0;
  for (u64 turn = 0; turn < shape.count; turn++) last_from = from_row(turn) > last_from ? from_row(turn) : last_from;
  Buffer destination(shape.to + last * shape.to_stride + shape.bytes, 1);
  Buffer source(shape.from + last_from * shape.from_stride + shape.bytes, 77);
  for (u64 turn = 0; turn < shape.count; turn++) {
    std::memcpy(destination.expected.data() + shape.to + to_row(turn) * shape.to_stride,
                source.expected.data() + shape.from + from_row(turn) * shape.from_stride, shape.bytes);
  }
  device_arena_rows rows;
  rows.side[0] = {(u64)(destination.memory + shape.to), shape.to_stride, (u64)to_numbers.memory, to_numbers.width};
  rows.side[1] = {(u64)(source.memory + shape.from), shape.from_stride, (u64)from_numbers.memory, from_numbers.width};
  rows.bytes = shape.bytes;
  rows.count = shape.count;
  rows.tiles = tiles_of(15, shape.bytes);
  rows.lanes = lanes;
  ASAN_POISON_MEMORY_REGION(source.memory, shape.from & ~7ull);
  launch(grid, block, [&] { device_arena_copy_rows(rows); }, along_y);
  ASAN_UNPOISON_MEMORY_REGION(source.memory, shape.from & ~7ull);
  destination.compare("rows: bytes, count, lanes", shape.bytes, shape.count, lanes);
  source.compare("rows: the source changed", shape.bytes, shape.count, lanes);
}

void rows() {
  unsigned turn = 0;
  const auto shape_next = [&](const RowShape& shape, u64 lanes) {
    const unsigned n = turn++;
    const unsigned blocks[] = {32, 47, 64};
    move_rows(shape, n % 3, n / 3 % 3, lanes, 1 + n % 2, 1 + n / 2 % 3, blocks[n % 3]);
  };
  for (u64 bytes : {1ull, 4ull, 15ull, 16ull, 17ull, 48ull, 61ull, 256ull, 300ull, 1024ull, 1999ull, 2048ull}) {
    for (u64 lanes = 0; lanes <= 6; lanes += CHECK_EVERY) {
      // Rows that touch each other, at any alignment, and rows with gaps. Sources that are one, or overlap each other.
      shape_next({0, 0, bytes, bytes, bytes, 9}, lanes);
      shape_next({turn % 16, turn / 3 % 16, bytes + 7, bytes, bytes, 7}, lanes);
      shape_next({16, 32, bytes + 16, 0, bytes, 5}, lanes);
      shape_next({turn % 16, 3, bytes, bytes / 2 + 1, bytes, 70 % (bytes + 1) + 1}, lanes);
    }
  }
  for (u64 bytes : {2 * TILE - 31, TILE - 15, TILE - 1, TILE, TILE + 1, 3 * TILE + 5}) {
    shape_next({0, 0, bytes, bytes, bytes, 3}, 6);
    shape_next({turn % 16, turn / 2 % 16, bytes + 9, bytes - 5, bytes, 4}, 6);
  }
}

// Each row within a place of its own: both ways, by any distance, and not at all.
void overlapping_rows() {
  unsigned turn = 0;
  for (u64 distance : {0ull, 1ull, 15ull, 16ull, 40ull, 333ull, 5000ull}) {
    for (u64 bytes : {1ull, 16ull, 100ull, 1000ull, 2048ull, TILE + 77}) {
      for (u64 lanes : {0ull, 3ull, 5ull, 6ull}) {
        if (bytes > 2048 && lanes < 6) continue;
        const u64 stride = bytes + distance + turn % 20, count = 4;
        const u64 up = turn / 2 % 2 == 0 ? distance : 0, down = distance - up, at = turn % 7;
        Buffer both(at + count * stride, 5);
        for (u64 row = 0; row < count; row++) {
          u8* place = both.expected.data() + at + row * stride;
          std::memmove(place + up, place + down, bytes);
        }
        device_arena_rows rows;
        rows.side[0] = {(u64)(both.memory + at + up), stride, 0, 0};
        rows.side[1] = {(u64)(both.memory + at + down), stride, 0, 0};
        rows.bytes = bytes;
        rows.count = count;
        rows.tiles = tiles_of(15, bytes);
        rows.lanes = lanes;
        launch(1 + turn % 3, turn % 2 ? 64 : 32, [&] { device_arena_copy_rows(rows); }, 1 + turn % 2);
        both.compare("rows that overlap themselves: distance, bytes, lanes", distance, bytes, lanes);
        turn += 1;
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------------- fills and rooms

void fills(unsigned grid, unsigned block) {
  for (u64 at = 0; at < 32; at += CHECK_EVERY) {
    device_arena_fill_list list;
    std::memset(&list, 0x5a, sizeof list);
    std::vector<std::shared_ptr<Buffer>> buffers;
    u64 tiles = 0, count = 0;
    for (u64 bytes : {0ull, 1ull, 15ull, 16ull, 17ull, 31ull, 33ull, 100ull, TILE - 1, TILE, TILE + 1, 2 * TILE + 31, 0ull}) {
      auto buffer = std::make_shared<Buffer>(at + bytes, 9);
      std::memset(buffer->expected.data() + at, (int)(bytes & 255), bytes);
      // Only the low byte counts.
      list.first_tile[count] = tiles;
      list.range[count++] = {(u64)(buffer->memory + at), bytes, bytes | 0x700};
      tiles += tiles_of((u64)(buffer->memory + at), bytes);
      buffers.push_back(buffer);
    }
    device_arena_room room;
    std::memset(&room, 0xff, sizeof room);
    launch(grid, block, [&] { device_arena_rewind(&room, 4096, 1000, 64, 7, list, count, tiles); });
    for (auto& buffer : buffers) buffer->compare("fill: offset, bytes", at, buffer->expected.size() - at, 0);
    if (room.cursor != 0 || room.capacity != 1000 || room.base != (u8*)4096 || room.alignment != 64 ||
        room.generation != 7 || room.reserved[0] != 0 || room.reserved[2] != 0) {
      fail("the room is not reset");
    }
    launch(grid, block, [&] { device_arena_rewind(nullptr, 0, 0, 0, 0, list, 0, 0); });
  }
}

// All threads take: what they got doesn't overlap, and the cursor is the need, met or not.
void rooms() {
  for (u64 capacity : {64 * 48ull, 1000ull, 0ull}) {
    std::unique_ptr<u8[]> memory(new u8[capacity + 64]());
    u8* base = memory.get() + (64 - (u64)memory.get() % 64) % 64;
    device_arena_room room = {0, capacity, base, 16, 1, {0, 0, 0}};
    std::vector<u32*> taken(64);
    launch(1, 64, [&] {
      taken[threadIdx.x] = device_arena_take_array<u32>(&room, 9);
      for (u32 at = 0; taken[threadIdx.x] != nullptr && at < 9; at++) taken[threadIdx.x][at] = threadIdx.x;
    });
    u64 got = 0;
    for (u32 thread = 0; thread < 64; thread++) {
      if (taken[thread] == nullptr) continue;
      got += 1;
      const u64 offset = device_arena_offset(&room, taken[thread]);
      if (offset % 16 != 0 || offset + 48 > capacity) fail("a part outside of its room", thread, offset);
      for (u32 at = 0; at < 9; at++) {
        if (taken[thread][at] != thread) fail("parts that overlap", thread);
      }
    }
    if (room.cursor != 64 * 48) fail("the cursor is not the need", room.cursor);
    if (got != capacity / 48) fail("room that nobody got", got);
  }
  device_arena_room room = {0, 1ull << 40, nullptr, 16, 1, {0, 0, 0}};
  for (u64 bytes : {~0ull, ~0ull - 15, 1ull << 63, DEVICE_ARENA_LARGEST + 1}) {
    room.cursor = 0;
    if (device_arena_take(&room, bytes) != nullptr || room.cursor != DEVICE_ARENA_LARGEST) fail("a take of too much");
  }
  room.cursor = 0;
  if (device_arena_take_array<u64>(&room, ~0ull / 4) != nullptr) fail("a product that wrapped");
}

}  // namespace

extern "C" void device_arena_barrier(void) { barrier.wait(false); }

int main() {
  short_copies();
  for (unsigned block : {32u, 47u, 64u}) {
    copies_around_tiles(2, block, false);
    copies_around_tiles(2, block, true);
    alike_copies(3, block, block == 47);
    overlaps(block == 64 ? 3 : 1, block);
    fills(2, block);
  }
  many_ranges(false);
  many_ranges(true);
  rows();
  overlapping_rows();
  rooms();
  std::puts("the kernels move, fill and take as memmove, memset and one counter would");
}
