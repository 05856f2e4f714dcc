// How a kernel's name finds its code: one line a kernel in a table.
#ifndef DEVICE_ARENA_SIMULATED_GRID_H
#define DEVICE_ARENA_SIMULATED_GRID_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace grid {

constexpr std::size_t MAX_PARAMETERS = 16;

struct Kernel {
  const char *name;
  std::uint32_t parameters;
  std::size_t sizes[MAX_PARAMETERS];
  void (*call)(void **parameters);
  // What is `__shared__` is one place in the process, so that a block has to end before the next begins.
  bool shares_memory;
};

template <typename... A, std::size_t... I>
void apply(void (*kernel)(A...), void **parameters, std::index_sequence<I...>) {
  kernel(*static_cast<A *>(parameters[I])...);
}

template <typename... A>
void apply(void (*kernel)(A...), void **parameters) {
  apply(kernel, parameters, std::index_sequence_for<A...>{});
}

template <typename... A>
constexpr Kernel describe(const char *name, void (*)(A...), void (*call)(void **), bool shares_memory) {
  static_assert(sizeof...(A) <= MAX_PARAMETERS, "more parameters than a table line holds");
  return Kernel{name, sizeof...(A), {sizeof(A)...}, call, shares_memory};
}

} // namespace grid

// A line of the table. The kernel's own type says what its parameters are.
#define GRID_KERNEL(name) GRID_LINE(name, false)
// For kernels with memory that is `__shared__`, which the sources have to define as `static` here.
#define GRID_KERNEL_THAT_SHARES(name) GRID_LINE(name, true)
#define GRID_LINE(name, shares_memory) \
  grid::describe(#name, name, [](void **parameters) { grid::apply(name, parameters); }, shares_memory)

#endif
