// Kernels with one fault each, which a checking tool has to find: a tool that finds nothing in these finds nothing
// anywhere.
#include "../../backends/kernels/prelude.h"

// Writes one byte past the end.
extern "C" __global__ void planted_out_of_bounds(unsigned char* bytes, u64 count) {
  if (threadIdx.x == 0) bytes[count] = 1;
}

// One half of the block waits for the other, which never comes.
extern "C" __global__ void planted_barrier(unsigned char* bytes, u64 count) {
  if (threadIdx.x % 2 == 0) __syncthreads();
  if (threadIdx.x < count) bytes[threadIdx.x] = 1;
}

// Threads read what others write, without a barrier between.
extern "C" __global__ void planted_race(unsigned char* bytes, u64 count) {
  __shared__ u32 shared[64];
  shared[threadIdx.x % 64] = threadIdx.x;
  u32 other = shared[(threadIdx.x + 1) % 64];
  if (threadIdx.x < count) bytes[threadIdx.x] = (unsigned char)other;
}

// Reads what nobody has written.
extern "C" __global__ void planted_unwritten(unsigned char* bytes, u64 count) {
  if (threadIdx.x == 0) bytes[0] = (unsigned char)(bytes[count / 2] + 1);
}
