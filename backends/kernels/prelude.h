// What kernels are written with, for compilers that come without a vendor's headers. nvcc, NVRTC, hiprtc and hipcc with
// hip_runtime.h have these names already; plain clang gets them here, and so does a host compiler that builds kernels
// to run on threads (DEVICE_ARENA_SIMULATED).
#ifndef DEVICE_ARENA_PRELUDE
#define DEVICE_ARENA_PRELUDE

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#if defined(DEVICE_ARENA_SIMULATED)

// Whoever runs the kernels defines these, and sets them before each thread of each block.
struct device_arena_dim3 {
  u32 x, y, z;
};
extern thread_local device_arena_dim3 device_arena_thread;
extern thread_local device_arena_dim3 device_arena_block;
extern thread_local device_arena_dim3 device_arena_block_dim;
extern thread_local device_arena_dim3 device_arena_grid_dim;
// Returns once every thread of the block has called it.
extern "C" void device_arena_barrier(void);

#define __global__
#define __device__
#define __launch_bounds__(...)
#define threadIdx device_arena_thread
#define blockIdx device_arena_block
#define blockDim device_arena_block_dim
#define gridDim device_arena_grid_dim
#define __syncthreads() device_arena_barrier()

#elif defined(__clang__) && (defined(__CUDA__) || defined(__HIP__)) && !defined(__CUDACC_RTC__) && \
    !defined(__HIPCC_RTC__) && !defined(__CLANG_CUDA_RUNTIME_WRAPPER_H__) && !defined(HIP_INCLUDE_HIP_HIP_RUNTIME_H)

// clang's own wrapper for HIP may have the attributes, but not the indices.
#ifndef __global__
#define __global__ __attribute__((global))
#endif
#ifndef __device__
#define __device__ __attribute__((device))
#endif
#ifndef __shared__
#define __shared__ __attribute__((shared))
#endif

struct device_arena_dim3 {
  u32 x, y, z;
};
// The builtins return int: without the cast, a product in 64 bits would begin with a sign extension.
#define DEVICE_ARENA_DIM3(F) (device_arena_dim3{(u32)F(x), (u32)F(y), (u32)F(z)})

#if defined(__HIP__)
// On AMD, clang does not heed launch_bounds: this attribute it does.
#ifndef __launch_bounds__
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
#define DEVICE_ARENA_THREAD(axis) __builtin_amdgcn_workitem_id_##axis()
#define DEVICE_ARENA_BLOCK(axis) __builtin_amdgcn_workgroup_id_##axis()
#define DEVICE_ARENA_BLOCK_DIM(axis) __builtin_amdgcn_workgroup_size_##axis()
#define DEVICE_ARENA_GRID_DIM(axis) (__builtin_amdgcn_grid_size_##axis() / __builtin_amdgcn_workgroup_size_##axis())
// The barrier alone orders no memory there.
#define __syncthreads()                                   \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), \
   __builtin_amdgcn_s_barrier(),                          \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#else
// __syncthreads is a builtin of clang's here.
#ifndef __launch_bounds__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif
#define DEVICE_ARENA_THREAD(axis) __nvvm_read_ptx_sreg_tid_##axis()
#define DEVICE_ARENA_BLOCK(axis) __nvvm_read_ptx_sreg_ctaid_##axis()
#define DEVICE_ARENA_BLOCK_DIM(axis) __nvvm_read_ptx_sreg_ntid_##axis()
#define DEVICE_ARENA_GRID_DIM(axis) __nvvm_read_ptx_sreg_nctaid_##axis()
#endif

#define threadIdx DEVICE_ARENA_DIM3(DEVICE_ARENA_THREAD)
#define blockIdx DEVICE_ARENA_DIM3(DEVICE_ARENA_BLOCK)
#define blockDim DEVICE_ARENA_DIM3(DEVICE_ARENA_BLOCK_DIM)
#define gridDim DEVICE_ARENA_DIM3(DEVICE_ARENA_GRID_DIM)

#endif

// Device memory by its own address space where the compiler has one: an address that came as a number would else be
// taken for one of any space. clang alone has a way to say it.
#if defined(__clang__) && !defined(DEVICE_ARENA_SIMULATED) && (defined(__NVPTX__) || defined(__AMDGCN__))
#define DEVICE_ARENA_GLOBAL __attribute__((address_space(1)))
#else
#define DEVICE_ARENA_GLOBAL
#endif

// A loop that is left as it is: unrolled, it takes registers that the loads need.
#if defined(DEVICE_ARENA_SIMULATED)
#define DEVICE_ARENA_ROLLED
#else
#define DEVICE_ARENA_ROLLED _Pragma("unroll 1")
#endif

// A quotient that is good enough for a guess: a division that rounds correctly is a function of its own on a GPU.
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#define DEVICE_ARENA_RATIO(a, b) __fdividef(a, b)
#elif defined(__clang__) && defined(__NVPTX__)
#define DEVICE_ARENA_RATIO(a, b) ((a) * __nvvm_rcp_approx_ftz_f(b))
#else
#define DEVICE_ARENA_RATIO(a, b) ((a) / (b))
#endif

// Sixteen bytes that are loaded and stored at once, as x (the lower address) and y. They may be part of anything.
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
typedef ulonglong2 device_arena_words;
#elif defined(__clang__) && !defined(DEVICE_ARENA_SIMULATED)
typedef u64 device_arena_words __attribute__((ext_vector_type(2), may_alias));
#else
struct __attribute__((aligned(16), may_alias)) device_arena_words {
  u64 x, y;
};
#endif

#endif
