// The kernels of the crate: many copies in one launch, ranges that are listed or rows that are alike; and the rewind of a
// room with the scrubbing of what was written. They are right for any grid along x, that of rows along y as well, and for
// any block along x from 32 threads to as many as a kernel's bound says.
//
// A range is cut into tiles, and a tile is one block's work at a time, or that of 32 threads where ranges are short. The
// host counts the tiles (mod.rs beside this file does), so that a launch knows them all: range r has those from
// first_tile[r] up to first_tile[r + 1]. Where all ranges have as many, that says enough.
#ifndef DEVICE_ARENA_H
#include "../../include/device_arena.h"
#endif
#ifndef DEVICE_ARENA_PRELUDE
#include "prelude.h"
#endif

// Bytes. Tiles end at multiples of 16 in the destination: the first is shorter by what the destination is past one.
#define DEVICE_ARENA_TILE 32768ull
#define DEVICE_ARENA_SHORT_TILE 4096ull
#define DEVICE_ARENA_COPY_FEW 128
#define DEVICE_ARENA_FILL_FEW 16
// Words that a thread loads before it stores any: as many for a block's tile, and half as many for one of 32 threads and
// for a row. A word that has to be cut out of two takes two loads.
#define DEVICE_ARENA_BATCH 8
#define DEVICE_ARENA_SHORT_BATCH 4
#define DEVICE_ARENA_HELD(batch, aligned) ((aligned) ? (batch) : (batch) / 2)

struct device_arena_copy_range {
  u64 destination, source, bytes;
};
// Lists that travel with a launch, whose arguments are 4 KiB at most.
struct device_arena_copy_list {
  device_arena_copy_range range[DEVICE_ARENA_COPY_FEW];
  u32 first_tile[DEVICE_ARENA_COPY_FEW];
};
// `value` is a byte.
struct device_arena_fill_range {
  u64 address, bytes, value;
};
struct device_arena_fill_list {
  device_arena_fill_range range[DEVICE_ARENA_FILL_FEW];
  u64 first_tile[DEVICE_ARENA_FILL_FEW];
};
// Where rows are: the first of them, and how far it is from one to the next, in bytes. Which rows are moved is said by
// numbers in memory, of `width` bytes each, 4 or 8; where there are none (0), they are moved in order.
struct device_arena_row_side {
  u64 address, stride, rows, width;
};
// Rows that are alike. `tiles` are those of each row: enough wherever its destination begins. A short row is moved by
// 2^lanes threads, which are neighbours; where that is above 5, a whole block moves a tile.
struct device_arena_rows {
  device_arena_row_side side[2];  // where they go, where they come from
  u64 bytes, count, tiles, lanes;
};

static_assert(sizeof(device_arena_copy_list) == 3584, "a list of copies is 3.5 KiB");
static_assert(sizeof(device_arena_fill_list) == 512, "a list of fills is 512 bytes");
static_assert(sizeof(device_arena_rows) == 96, "what says which rows is 96 bytes");

// ------------------------------------------------------------------------------------------------------------- accesses

static inline __device__ u8 device_arena_load_byte(u64 address) { return *(const DEVICE_ARENA_GLOBAL u8*)address; }

static inline __device__ void device_arena_store_byte(u64 address, u8 value) {
  *(DEVICE_ARENA_GLOBAL u8*)address = value;
}

static inline __device__ void device_arena_store(u64 address, device_arena_words words) {
  *(DEVICE_ARENA_GLOBAL device_arena_words*)address = words;
}

// Sixteen bytes from an address that is `shift` past a multiple of 16. Unless it is 0, they are cut out of the two
// aligned words that hold them.
template <bool Aligned>
static inline __device__ device_arena_words device_arena_load(u64 address, u32 shift) {
  const DEVICE_ARENA_GLOBAL device_arena_words* from =
      (const DEVICE_ARENA_GLOBAL device_arena_words*)(address - (Aligned ? 0 : shift));
  const device_arena_words low = from[0];
  if (Aligned) return low;
  const device_arena_words high = from[1];
  const u64 a = shift < 8 ? low.x : low.y;
  const u64 b = shift < 8 ? low.y : high.x;
  const u64 c = shift < 8 ? high.x : high.y;
  const u32 bits = (shift & 7) * 8;
  device_arena_words words;
  // In two steps, because a shift by 64 is no shift.
  words.x = (a >> bits) | ((b << 1) << (63 - bits));
  words.y = (b >> bits) | ((c << 1) << (63 - bits));
  return words;
}

// ---------------------------------------------------------------------------------------------------------------- tiles

// The range that has this tile: the last one that doesn't begin after it. Ranges without bytes have none, and stand before
// the one that begins where they do. `from` is a range that doesn't begin after it.
//
// Each look is a trip to memory. Ranges of one call are often much alike, so the search begins where the range would be if
// all had as many tiles (`scale` ranges each), and widens from there.
template <typename Number>
static inline __device__ u64 device_arena_find(const Number* first_tile, u64 count, u64 tile, u64 from, float scale) {
  u64 low = from;
  u64 high = count;
  u64 look = (u64)((float)tile * scale + 0.5f);
  DEVICE_ARENA_ROLLED
  for (u64 step = 1; high - low > 1; step *= 2) {
    if (look <= low || look >= high) look = low + (high - low) / 2;
    if (first_tile[look] <= tile) {
      low = look;
      look = low + step;
    } else {
      high = look;
      look = high - step;
    }
  }
  return low;
}

// Offsets into a range: [begin, end) is to be written, [first, last) of it in words of 16 bytes.
struct device_arena_part {
  u64 begin, end, first, last;
};

static inline __device__ device_arena_part device_arena_cut(u64 destination, u64 bytes, u64 begin, u64 end) {
  device_arena_part part;
  part.begin = begin;
  part.end = end < bytes ? end : bytes;
  part.first = begin + ((0 - (destination + begin)) & 15);
  part.last = part.end - ((destination + part.end) & 15);
  // Too short for a word: all of it are single bytes.
  if (part.first >= part.last || part.last > part.end) part.first = part.last = part.end;
  return part;
}

// Tile `index`, of `tile` bytes, of a range that is not moved at once.
static inline __device__ device_arena_part device_arena_tile(u64 destination, u64 bytes, u64 index, u64 tile) {
  const u64 past = destination & 15;
  const u64 begin = index == 0 ? 0 : index * tile - past;
  return device_arena_cut(destination, bytes, begin, (index + 1) * tile - past);
}

// Leaves the words to single bytes whose aligned words would reach out of the source: nothing else is read.
static inline __device__ device_arena_part device_arena_within(device_arena_part part, u64 bytes, u32 shift) {
  if (shift != 0 && part.first < part.last) {
    if (part.first < shift) part.first += 16;
    if (part.last + 16 - shift > bytes) part.last -= 16;
    if (part.first >= part.last) part.first = part.last = part.end;
  }
  return part;
}

// ----------------------------------------------------------------------------------------------------------------- copy

// A range that overlaps itself goes from the end that it moves towards, as much at a time as the block can hold: all of
// it is loaded before any of it is stored. All threads come to each barrier. None is needed behind a store: it lands where
// the turns before have read, and the next turn's loads, with the whole words that they touch, are beyond it.
enum device_arena_order { DEVICE_ARENA_ANY, DEVICE_ARENA_FORWARDS, DEVICE_ARENA_BACKWARDS };

static inline __device__ void device_arena_in_step(device_arena_order order) {
  if (order != DEVICE_ARENA_ANY) __syncthreads();
}

// The threads that move a tile together, and which of them this one is.
struct device_arena_team {
  u32 thread, threads;
};

// The words of [first, last). 32 threads share a stretch, so that a thread's words are at fixed distances; what is left of
// a block that is no multiple of 32 has no words to move.
template <u32 Batch, bool Aligned>
static inline __device__ void device_arena_copy_words(device_arena_team team, u64 destination, u64 source, u64 first,
                                                      u64 last, u32 shift, device_arena_order order) {
  const u32 batch = DEVICE_ARENA_HELD(Batch, Aligned);
  const u32 chunk = team.threads / 32 * (batch * 512);
  const bool takes_part = team.thread < team.threads / 32 * 32;
  const u32 offset = team.thread / 32 * (batch * 512) + team.thread % 32 * 16;
  DEVICE_ARENA_ROLLED
  for (u64 left = last - first; left != 0;) {
    const u32 size = left < chunk ? (u32)left : chunk;
    const u64 at = (order == DEVICE_ARENA_BACKWARDS ? first + left - size : last - left) + offset;
    left -= size;
    const u32 end = takes_part ? size : 0;
    device_arena_words words[batch];
    for (u32 k = 0; k < batch; k++) {
      // Without a value in either case, the registers would be kept for it from one turn to the next.
      words[k].x = words[k].y = 0;
      if (offset + k * 512 < end) words[k] = device_arena_load<Aligned>(source + at + k * 512, shift);
    }
    device_arena_in_step(order);
    for (u32 k = 0; k < batch; k++) {
      if (offset + k * 512 < end) device_arena_store(destination + at + k * 512, words[k]);
    }
  }
}

// Single bytes: `bytes` of them from `begin`.
static inline __device__ void device_arena_copy_bytes(device_arena_team team, u64 destination, u64 source, u64 begin,
                                                      u64 bytes, device_arena_order order) {
  DEVICE_ARENA_ROLLED
  for (u64 done = 0; done < bytes; done += team.threads) {
    const u64 index = done + team.thread;
    const bool mine = index < bytes;
    const u64 at = begin + (order == DEVICE_ARENA_BACKWARDS ? bytes - 1 - index : index);
    const u8 byte = mine ? device_arena_load_byte(source + at) : (u8)0;
    device_arena_in_step(order);
    if (mine) device_arena_store_byte(destination + at, byte);
  }
}

// What a block has to do for one tile.
template <u32 Batch>
static inline __device__ void device_arena_copy_tile(const device_arena_copy_range& range, u64 index) {
  const device_arena_team block = {threadIdx.x, blockDim.x};
  const u64 destination = range.destination;
  const u64 source = range.source;
  const u64 bytes = range.bytes;
  const u64 distance = destination - source;
  if (distance == 0) return;
  // What the source is past a multiple of 16 where the destination is at one.
  const u32 shift = (u32)(0 - distance) & 15;
  // As unsigned numbers, both are large unless that side is the higher one.
  const device_arena_order order = distance < bytes       ? DEVICE_ARENA_BACKWARDS
                                   : 0 - distance < bytes ? DEVICE_ARENA_FORWARDS
                                                          : DEVICE_ARENA_ANY;
  const device_arena_part part = device_arena_within(
      order == DEVICE_ARENA_ANY ? device_arena_tile(destination, bytes, index, DEVICE_ARENA_TILE)
                                : device_arena_cut(destination, bytes, 0, bytes),
      bytes, shift);
  const bool backwards = order == DEVICE_ARENA_BACKWARDS;
  DEVICE_ARENA_ROLLED
  for (u32 side = 0; side < 2; side++) {
    if (side == 1) {
      if (shift == 0) {
        device_arena_copy_words<Batch, true>(block, destination, source, part.first, part.last, shift, order);
      } else {
        device_arena_copy_words<Batch, false>(block, destination, source, part.first, part.last, shift, order);
      }
    }
    const bool tail = backwards == (side == 0);
    const u64 begin = tail ? part.last : part.begin;
    device_arena_copy_bytes(block, destination, source, begin, (tail ? part.end : part.first) - begin, order);
  }
}

// What 32 threads have to do for one tile of a range that does not overlap itself. They wait for nobody.
static inline __device__ void device_arena_copy_short_tile(device_arena_team team, const device_arena_copy_range& range,
                                                           u64 index) {
  const u64 destination = range.destination;
  const u64 source = range.source;
  const u32 shift = (u32)(source - destination) & 15;
  const device_arena_part part = device_arena_within(
      device_arena_tile(destination, range.bytes, index, DEVICE_ARENA_SHORT_TILE), range.bytes, shift);
  if (shift == 0) {
    device_arena_copy_words<DEVICE_ARENA_SHORT_BATCH, true>(team, destination, source, part.first, part.last, shift,
                                                            DEVICE_ARENA_ANY);
  } else {
    device_arena_copy_words<DEVICE_ARENA_SHORT_BATCH, false>(team, destination, source, part.first, part.last, shift,
                                                             DEVICE_ARENA_ANY);
  }
  // The single bytes before the words, and those behind them.
  const u32 before = (u32)(part.first - part.begin);
  const u32 all = before + (u32)(part.end - part.last);
  DEVICE_ARENA_ROLLED
  for (u32 done = team.thread; done < all; done += team.threads) {
    const u64 at = done < before ? part.begin + done : part.last + (done - before);
    device_arena_store_byte(destination + at, device_arena_load_byte(source + at));
  }
}

// Where all ranges have as many tiles (`each`, below 2^32, as are those of all), none is looked for; `each` is 0 otherwise.
// `found` is the range, and what is answered says which of its tiles this is.
template <typename Number>
static inline __device__ u64 device_arena_tile_of(const Number* first_tile, u64 count, u64 tiles, u64 each, u64 tile,
                                                  u64& found) {
  if (each != 0) {
    found = each == 1 ? tile : (u32)tile / (u32)each;
    return tile - found * each;
  }
  found = device_arena_find(first_tile, count, tile, 0, DEVICE_ARENA_RATIO((float)count, (float)tiles));
  return tile - first_tile[found];
}

template <typename Number>
static inline __device__ void device_arena_copy_all(const device_arena_copy_range* ranges, const Number* first_tile,
                                                    u64 count, u64 tiles, u64 each) {
  DEVICE_ARENA_ROLLED
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    u64 found;
    const u64 index = device_arena_tile_of(first_tile, count, tiles, each, tile, found);
    const device_arena_copy_range range = ranges[found];
    device_arena_copy_tile<DEVICE_ARENA_BATCH>(range, index);
  }
}

template <typename Number>
static inline __device__ void device_arena_copy_all_short(const device_arena_copy_range* ranges, const Number* first_tile,
                                                          u64 count, u64 tiles, u64 each) {
  const device_arena_team team = {threadIdx.x & 31, 32};
  const u32 teams = blockDim.x / 32;
  // What is left of a block that is no multiple of 32.
  if (threadIdx.x / 32 >= teams) return;
  DEVICE_ARENA_ROLLED
  for (u64 tile = (u64)blockIdx.x * teams + threadIdx.x / 32; tile < tiles; tile += (u64)gridDim.x * teams) {
    u64 found;
    const u64 index = device_arena_tile_of(first_tile, count, tiles, each, tile, found);
    const device_arena_copy_range range = ranges[found];
    device_arena_copy_short_tile(team, range, index);
  }
}

// Copies every range. Ranges that clash with each other are the caller's mistake; one that overlaps itself is not, and
// has one tile. A range whose source is its destination has one tile, too, and stays as it is; one without bytes has none
// or one. Behind the ranges there is first_tile for each, unless all have as many tiles.
extern "C" __global__ void __launch_bounds__(512, 1)
    device_arena_copy(const device_arena_copy_range* ranges, u64 count, u64 tiles, u64 each) {
  device_arena_copy_all(ranges, (const u64*)(ranges + count), count, tiles, each);
}

// The same for a list that travels with the launch.
extern "C" __global__ void __launch_bounds__(512, 1)
    device_arena_copy_few(device_arena_copy_list list, u64 count, u64 tiles, u64 each) {
  device_arena_copy_all(list.range, list.first_tile, count, tiles, each);
}

// Copies every range, none of which overlaps itself, in short tiles.
extern "C" __global__ void __launch_bounds__(256, 3)
    device_arena_copy_short(const device_arena_copy_range* ranges, u64 count, u64 tiles, u64 each) {
  device_arena_copy_all_short(ranges, (const u64*)(ranges + count), count, tiles, each);
}

// The same for a list that travels with the launch.
extern "C" __global__ void __launch_bounds__(256, 3)
    device_arena_copy_few_short(device_arena_copy_list list, u64 count, u64 tiles, u64 each) {
  device_arena_copy_all_short(list.range, list.first_tile, count, tiles, each);
}

// ----------------------------------------------------------------------------------------------------------------- rows

// Where the row is that is moved in this turn.
static inline __device__ u64 device_arena_row(const device_arena_row_side& side, u64 turn) {
  u64 row = turn;
  if (side.rows != 0) {
    row = side.width == 8 ? ((const DEVICE_ARENA_GLOBAL u64*)side.rows)[turn]
                          : ((const DEVICE_ARENA_GLOBAL u32*)side.rows)[turn];
  }
  return side.address + row * side.stride;
}

static inline __device__ bool device_arena_overlaps(u64 distance, u64 bytes) {
  return distance < bytes || 0 - distance < bytes;
}

// The words of a short row. Those of one thread are loaded before any of them is stored, as above.
template <bool Aligned>
static inline __device__ void device_arena_copy_row_words(u64 destination, u64 source, u32 first, u32 last, u32 shift,
                                                          u32 lane, u32 lanes) {
  const u32 batch = DEVICE_ARENA_HELD(DEVICE_ARENA_SHORT_BATCH, Aligned);
  DEVICE_ARENA_ROLLED
  for (u32 at = first + lane * 16; at < last; at += lanes * (batch * 16)) {
    device_arena_words words[batch];
    for (u32 k = 0; k < batch; k++) {
      words[k].x = words[k].y = 0;
      const u32 word = at + k * lanes * 16;
      if (word < last) words[k] = device_arena_load<Aligned>(source + word, shift);
    }
    for (u32 k = 0; k < batch; k++) {
      const u32 word = at + k * lanes * 16;
      if (word < last) device_arena_store(destination + word, words[k]);
    }
  }
}

// A short row, by some threads of a block that wait for nobody: one that overlaps itself is left to the first of them.
static inline __device__ void device_arena_copy_short_row(const device_arena_copy_range& row, u32 lane, u32 lanes) {
  const u64 destination = row.destination;
  const u64 source = row.source;
  const u64 bytes = row.bytes;
  const u64 distance = destination - source;
  if (distance == 0) return;
  if (device_arena_overlaps(distance, bytes)) {
    DEVICE_ARENA_ROLLED
    for (u64 done = 0; lane == 0 && done < bytes; done++) {
      const u64 at = distance < bytes ? bytes - 1 - done : done;
      device_arena_store_byte(destination + at, device_arena_load_byte(source + at));
    }
    return;
  }
  const u32 shift = (u32)(0 - distance) & 15;
  const device_arena_part part =
      device_arena_within(device_arena_cut(destination, bytes, 0, bytes), bytes, shift);
  const u32 first = (u32)part.first;
  const u32 last = (u32)part.last;
  if (shift == 0) {
    device_arena_copy_row_words<true>(destination, source, first, last, shift, lane, lanes);
  } else {
    device_arena_copy_row_words<false>(destination, source, first, last, shift, lane, lanes);
  }
  // The single bytes before the words, and those behind them.
  const u32 between = last - first;
  DEVICE_ARENA_ROLLED
  for (u32 done = lane; done < (u32)bytes - between; done += lanes) {
    const u32 at = done < first ? done : done + between;
    device_arena_store_byte(destination + at, device_arena_load_byte(source + at));
  }
}

// A tile of a row, by a block. Where a row has fewer than there could be, the last of them are beyond it.
static inline __device__ void device_arena_copy_row_tile(const device_arena_copy_range& row, u64 index) {
  if (index != 0) {
    if (device_arena_overlaps(row.destination - row.source, row.bytes)) return;
    if (index * DEVICE_ARENA_TILE - (row.destination & 15) >= row.bytes) return;
  }
  device_arena_copy_tile<DEVICE_ARENA_SHORT_BATCH>(row, index);
}

// In a loop, so that what says where both sides are is read here each time: kept, it would take registers from the copy.
static inline __device__ device_arena_copy_range device_arena_row_range(const device_arena_rows& rows, u64 turn) {
  device_arena_copy_range row;
  row.destination = row.source = 0;
  DEVICE_ARENA_ROLLED
  for (u32 side = 0; side < 2; side++) {
    row.destination = row.source;
    row.source = device_arena_row(rows.side[side], turn);
  }
  row.bytes = rows.bytes;
  return row;
}

// Copies every row. Rows that clash with each other are the caller's mistake; one that overlaps itself is not, nor is one
// whose source is its destination.
extern "C" __global__ void __launch_bounds__(256, 3) device_arena_copy_rows(device_arena_rows rows) {
  if (rows.lanes > 5) {
    DEVICE_ARENA_ROLLED
    for (u64 turn = blockIdx.y; turn < rows.count; turn += gridDim.y) {
      DEVICE_ARENA_ROLLED
      for (u64 tile = blockIdx.x; tile < rows.tiles; tile += gridDim.x) {
        device_arena_copy_row_tile(device_arena_row_range(rows, turn), tile);
      }
    }
    return;
  }
  const u32 lanes = 1u << rows.lanes;
  const u32 groups = blockDim.x >> rows.lanes;
  const u32 group = threadIdx.x >> rows.lanes;
  // Blocks for further tiles, and what is left of a block.
  if (blockIdx.x != 0 || group >= groups) return;
  DEVICE_ARENA_ROLLED
  for (u64 turn = (u64)blockIdx.y * groups + group; turn < rows.count; turn += (u64)gridDim.y * groups) {
    device_arena_copy_short_row(device_arena_row_range(rows, turn), threadIdx.x & (lanes - 1), lanes);
  }
}

// --------------------------------------------------------------------------------------------------------------- rewind

static inline __device__ void device_arena_fill_tile(const device_arena_fill_range& range, u64 index) {
  const device_arena_part part = device_arena_tile(range.address, range.bytes, index, DEVICE_ARENA_TILE);
  const u8 byte = (u8)range.value;
  DEVICE_ARENA_ROLLED
  for (u64 at = part.begin + threadIdx.x; at < part.first; at += blockDim.x) {
    device_arena_store_byte(range.address + at, byte);
  }
  DEVICE_ARENA_ROLLED
  for (u64 at = part.last + threadIdx.x; at < part.end; at += blockDim.x) {
    device_arena_store_byte(range.address + at, byte);
  }
  device_arena_words words;
  words.x = words.y = byte * 0x0101010101010101ull;
  DEVICE_ARENA_ROLLED
  for (u64 at = part.first + (u64)threadIdx.x * 16; at < part.last; at += (u64)blockDim.x * 16) {
    device_arena_store(range.address + at, words);
  }
}

// Resets the room, unless there is none, and fills every range of the list with its byte.
extern "C" __global__ void __launch_bounds__(1024, 1)
    device_arena_rewind(device_arena_room* room, u64 base, u64 capacity, u64 alignment, u64 generation,
                        device_arena_fill_list list, u64 count, u64 tiles) {
  if (room != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    room->cursor = 0;
    room->capacity = capacity;
    room->base = (unsigned char*)base;
    room->alignment = alignment;
    room->generation = generation;
    room->reserved[0] = room->reserved[1] = room->reserved[2] = 0;
  }
  const float scale = DEVICE_ARENA_RATIO((float)count, (float)tiles);
  u64 found = 0;
  DEVICE_ARENA_ROLLED
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    found = device_arena_find(list.first_tile, count, tile, found, scale);
    const device_arena_fill_range range = list.range[found];
    device_arena_fill_tile(range, tile - list.first_tile[found]);
  }
}
