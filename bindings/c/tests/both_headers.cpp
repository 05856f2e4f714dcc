// The header is C++ as well, and the one of kernels, which has the same name, can be in the same program.
#include "../include/device_arena.h"
#include "../../../include/device_arena.h"

#include <cstdio>
#include <type_traits>

static_assert(std::is_same<std::underlying_type<device_arena_status_t>::type, int32_t>::value, "a status has 32 bits");
static_assert(std::is_standard_layout<device_arena_error_t>::value, "records are C's");

int main() {
  // What kernels do, on the host.
  alignas(16) unsigned char bytes[64];
  device_arena_room room = {0, sizeof bytes, bytes, 16, 0, {0, 0, 0}};
  const bool has_taken = device_arena_take(&room, 40) == bytes && device_arena_take(&room, 40) == nullptr;

  device_arena_error_t error;
  device_arena_library_t library = 0;
  device_arena_t arena = 0;
  device_arena_description_t where = {DEVICE_ARENA_RESIDENCY_VRAM, 7};
  const bool is_made = device_arena_library_load(&library, &error) == DEVICE_ARENA_STATUS_OK &&
                       device_arena_init(&arena, library, &error) == DEVICE_ARENA_STATUS_OK &&
                       device_arena_describe(arena, &where, &error) == DEVICE_ARENA_STATUS_OK;
  const bool is_host = where.residency == DEVICE_ARENA_RESIDENCY_RAM && where.device == -1;
  const bool is_gone = device_arena_free(arena, nullptr) == DEVICE_ARENA_STATUS_OK &&
                       device_arena_free(arena, nullptr) == DEVICE_ARENA_STATUS_INVALID_ARGUMENT;
  const bool is_right = has_taken && is_made && is_host && is_gone;
  std::printf("%d passed, %d failed\n", is_right ? 1 : 0, is_right ? 0 : 1);
  return is_right ? 0 : 1;
}
