// Runs kernels on the host: a block's threads are threads of the system, with real barriers. To add a kernel, include
// its source and give it a line in `KERNELS`.

#include <atomic>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena.cu"

#include "../../../examples/compact.cu"
#include "../../../examples/embed/kernels.cu"

#include "../../gpu/kernels.cu"

#include "grid.h"

static const grid::Kernel KERNELS[] = {
    GRID_KERNEL(device_arena_copy),
    GRID_KERNEL(device_arena_copy_few),
    GRID_KERNEL(device_arena_copy_short),
    GRID_KERNEL(device_arena_copy_few_short),
    GRID_KERNEL(device_arena_copy_rows),
    GRID_KERNEL(device_arena_rewind),
    GRID_KERNEL(compact),
    GRID_KERNEL(embed_count),
    GRID_KERNEL_THAT_SHARES(embed_sum),
    GRID_KERNEL(embed_write),
    GRID_KERNEL_THAT_SHARES(embed_rows),
    GRID_KERNEL(suite_sums),
    GRID_KERNEL(suite_fill),
    GRID_KERNEL(suite_add),
    GRID_KERNEL(suite_take),
    GRID_KERNEL(suite_poke),
};

thread_local device_arena_dim3 device_arena_thread;
thread_local device_arena_dim3 device_arena_block;
thread_local device_arena_dim3 device_arena_block_dim;
thread_local device_arena_dim3 device_arena_grid_dim;

namespace {

// ----------------------------------------------------------------------------------------------- illegal addresses

// Where a thread goes on when what it runs touches memory that is not open to it.
thread_local sigjmp_buf *landing = nullptr;
struct sigaction earlier_segv, earlier_bus;

// The pages that were moved last. A thread that writes to them meanwhile tries again, until it is past any doubt that
// they are there.
std::atomic<uintptr_t> moved_start{0}, moved_end{0};
constexpr int PATIENCE = 10000;

bool is_being_moved(const void *address) {
  thread_local uintptr_t last = 0;
  thread_local int times = 0;
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  if (at < moved_start || at >= moved_end) return false;
  times = at == last ? times + 1 : 0;
  last = at;
  if (times > PATIENCE) return false;
  sched_yield();
  return true;
}

void on_fault(int signal, siginfo_t *info, void *machine) {
  if (is_being_moved(info->si_addr)) return;
  if (landing) siglongjmp(*landing, 1);
  const struct sigaction &earlier = signal == SIGBUS ? earlier_bus : earlier_segv;
  if (earlier.sa_flags & SA_SIGINFO) {
    earlier.sa_sigaction(signal, info, machine);
  } else if (earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN) {
    // The access is made again after the return, and ends the process as it should.
    std::signal(signal, SIG_DFL);
  } else {
    earlier.sa_handler(signal);
  }
}

void watch_faults() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours;
    std::memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &ours, &earlier_segv);
    sigaction(SIGBUS, &ours, &earlier_bus);
  });
}

// Whether `work` ran to its end. It must own nothing: a fault jumps out of it.
template <typename Work>
bool guarded(Work work) {
  sigjmp_buf here;
  sigjmp_buf *outer = landing;
  if (sigsetjmp(here, 1)) {
    landing = outer;
    return false;
  }
  landing = &here;
  work();
  landing = outer;
  return true;
}

// ------------------------------------------------------------------------------------------------------------ a grid

struct Launch {
  const grid::Kernel *kernel;
  void **parameters;
  device_arena_dim3 blocks;
  device_arena_dim3 threads;
};

// One block's threads: how many have not left it, and how many of them are at its barrier.
struct Block {
  uint32_t active, arrived;
  uint64_t phase;
};

// The block that a thread is in.
thread_local Block *own_block = nullptr;

// The threads that run blocks, one launch at a time. A thread goes on to the next block without the others, unless the
// blocks share memory: each block has a barrier of its own.
class Grid {
 public:
  bool run(const Launch &launch) {
    std::lock_guard<std::mutex> alone(launches_);
    std::unique_lock<std::mutex> lock(mutex_);
    const uint32_t needed = launch.threads.x * launch.threads.y * launch.threads.z;
    while (threads_ < needed) {
      std::thread(&Grid::serve, this, threads_++).detach();
    }
    const size_t count = size_t(launch.blocks.x) * launch.blocks.y * launch.blocks.z;
    blocks_.assign(count, Block{needed, 0, 0});
    launch_ = &launch;
    size_ = running_ = needed;
    faulted_ = false;
    ++number_;
    start_.notify_all();
    done_.wait(lock, [this] { return running_ == 0; });
    launch_ = nullptr;
    return !faulted_;
  }

  // Threads that have left their block are not waited for.
  void barrier() {
    std::unique_lock<std::mutex> lock(mutex_);
    Block &block = *own_block;
    ++block.arrived;
    if (block.arrived == block.active) return release(block);
    const uint64_t phase = block.phase;
    meet_.wait(lock, [&] { return block.phase != phase; });
  }

 private:
  void serve(uint32_t index) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      start_.wait(lock, [&] { return number_ != seen; });
      seen = number_;
      if (index >= size_) continue;
      const Launch &launch = *launch_;
      lock.unlock();
      work(launch, index);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  void work(const Launch &launch, uint32_t index) {
    const device_arena_dim3 dim = launch.threads;
    device_arena_thread = {index % dim.x, index / dim.x % dim.y, index / dim.x / dim.y};
    device_arena_block_dim = dim;
    device_arena_grid_dim = launch.blocks;
    own_block = blocks_.data();
    bool going = true;
    for (uint32_t z = 0; z < launch.blocks.z; ++z)
      for (uint32_t y = 0; y < launch.blocks.y; ++y)
        for (uint32_t x = 0; x < launch.blocks.x; ++x) {
          device_arena_block = {x, y, z};
          const bool whole = !going || guarded([&] { launch.kernel->call(launch.parameters); });
          // After a fault the other blocks are left as well, since threads may wait for this one there.
          going = leave(whole, launch.kernel->shares_memory) && going;
          ++own_block;
        }
  }

  // Ends one thread's part of a block. Whether the launch is whole so far.
  bool leave(bool whole, bool together) {
    std::unique_lock<std::mutex> lock(mutex_);
    Block &block = *own_block;
    if (!whole) faulted_ = true;
    --block.active;
    if (block.active == block.arrived) release(block);
    if (together) meet_.wait(lock, [&] { return block.active == 0; });
    return !faulted_;
  }

  void release(Block &block) {
    block.arrived = 0;
    ++block.phase;
    meet_.notify_all();
  }

  std::mutex launches_, mutex_;
  std::condition_variable start_, meet_, done_;
  std::vector<Block> blocks_;
  const Launch *launch_ = nullptr;
  uint32_t threads_ = 0, size_ = 0, running_ = 0;
  uint64_t number_ = 0;
  bool faulted_ = false;
};

// Never destroyed: its threads outlive `main`.
Grid &the_grid() {
  static Grid *grid = new Grid;
  return *grid;
}

} // namespace

extern "C" void device_arena_barrier(void) { the_grid().barrier(); }

// ------------------------------------------------------------------------------------------- what the core calls

extern "C" const grid::Kernel *grid_find(const char *name) {
  for (const grid::Kernel &kernel : KERNELS)
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  return nullptr;
}

// Zero, or one where a thread touched what is not open to it.
extern "C" int grid_run(const grid::Kernel *kernel, void **parameters, const uint32_t *blocks,
                        const uint32_t *threads) {
  watch_faults();
  const Launch launch{kernel, parameters, {blocks[0], blocks[1], blocks[2]}, {threads[0], threads[1], threads[2]}};
  return the_grid().run(launch) ? 0 : 1;
}

extern "C" int grid_copy(void *to, const void *from, size_t bytes) {
  watch_faults();
  return guarded([&] { std::memmove(to, from, bytes); }) ? 0 : 1;
}

extern "C" int grid_fill(void *to, int value, size_t bytes) {
  watch_faults();
  return guarded([&] { std::memset(to, value, bytes); }) ? 0 : 1;
}

// Zero, or one where the pages can't be moved. By the system's own calls: a sanitizer would take offence at pages that
// are not one object.
extern "C" int grid_move(void *pages, size_t bytes, int file, int open) {
  watch_faults();
  moved_end = 0;
  moved_start = reinterpret_cast<uintptr_t>(pages);
  moved_end = moved_start + bytes;
  // Nobody writes from here on, until the file is there.
  if (mprotect(pages, bytes, PROT_READ) != 0) return 1;
  const int after = open ? PROT_READ | PROT_WRITE : PROT_NONE;
  for (size_t done = 0; done < bytes;) {
    const long some = syscall(SYS_pwrite64, file, static_cast<char *>(pages) + done, bytes - done, done);
    if (some <= 0) {
      mprotect(pages, bytes, after);
      return 1;
    }
    done += size_t(some);
  }
  return syscall(SYS_mmap, pages, bytes, after, MAP_SHARED | MAP_FIXED, file, 0) == -1 ? 1 : 0;
}
