// What a user would call instead of this crate, behind a small C interface that `benches/copies` loads: loops of the
// runtime's copies, its batch call, CUB's batched copy, fills, the stream-ordered allocator, and launches of nothing.
//
//   nvcc -O3 -std=c++17 -shared -Xcompiler -fPIC peers.cu -o libpeers.so
//
// Every function answers 0 or the runtime's error. Streams are the driver's handles. The context of the stream is current
// on the calling thread.

#include <cuda_runtime.h>

#include <cub/device/device_memcpy.cuh>
#include <cub/version.cuh>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

// What the bench and this file have to agree about. It grows with every change of a declaration.
#define PEERS_INTERFACE 1

namespace {

__global__ void nothing() {}

// CUB reads three arrays in device memory. They come there from pinned memory, which is the fastest way.
struct Batched {
  size_t count = 0;
  void** pinned = nullptr;
  void** sources = nullptr;
  void** destinations = nullptr;
  size_t* sizes = nullptr;
  void* room = nullptr;
  size_t room_bytes = 0;
};

cudaError_t launch(const Batched& list, void* room, size_t& room_bytes, cudaStream_t stream) {
  return cub::DeviceMemcpy::Batched(room, room_bytes, list.sources, list.destinations, list.sizes,
                                    static_cast<int64_t>(list.count), stream);
}

cudaError_t release(Batched* list) {
  cudaError_t outcome = cudaSuccess;
  auto keep = [&outcome](cudaError_t code) { outcome = outcome == cudaSuccess ? code : outcome; };
  keep(cudaFreeHost(list->pinned));
  keep(cudaFree(list->sources));
  keep(cudaFree(list->destinations));
  keep(cudaFree(list->sizes));
  keep(cudaFree(list->room));
  delete list;
  return outcome;
}

// An error that was answered is not left for a later call to find.
int answer(cudaError_t code) {
  if (code != cudaSuccess) cudaGetLastError();
  return static_cast<int>(code);
}

}  // namespace

extern "C" {

int peers_interface() { return PEERS_INTERFACE; }

// The runtime's version, the driver's, and CUB's.
int peers_versions(int* runtime, int* driver, int* cub) {
  *cub = CUB_VERSION;
  cudaError_t code = cudaRuntimeGetVersion(runtime);
  return answer(code == cudaSuccess ? cudaDriverGetVersion(driver) : code);
}

const char* peers_error(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }

// One cudaMemcpyAsync a range. `kind` is cudaMemcpyKind's number.
int peers_copy_loop(void* const* to, const void* const* from, const size_t* bytes, size_t count, int kind,
                    cudaStream_t stream) {
  for (size_t at = 0; at < count; at++) {
    cudaError_t code = cudaMemcpyAsync(to[at], from[at], bytes[at], static_cast<cudaMemcpyKind>(kind), stream);
    if (code != cudaSuccess) return answer(code);
  }
  return 0;
}

// One cudaMemcpyBatchAsync, which came with CUDA 12.8.
int peers_copy_batch(void* const* to, const void* const* from, const size_t* bytes, size_t count, cudaStream_t stream) {
#if CUDART_VERSION >= 12080
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
#if CUDART_VERSION >= 13000
  return answer(cudaMemcpyBatchAsync(const_cast<void**>(to), const_cast<const void**>(from), const_cast<size_t*>(bytes),
                                     count, &attributes, &first, 1, stream));
#else
  size_t refused = 0;
  return answer(cudaMemcpyBatchAsync(const_cast<void**>(to), const_cast<void**>(reinterpret_cast<void* const*>(from)),
                                     const_cast<size_t*>(bytes), count, &attributes, &first, 1, &refused, stream));
#endif
#else
  return static_cast<int>(cudaErrorNotSupported);
#endif
}

int peers_batched_destroy(void* list) { return list == nullptr ? 0 : answer(release(static_cast<Batched*>(list))); }

// A list for CUB: its pinned memory is filled here, its device memory by `peers_batched_upload`.
int peers_batched_create(void* const* to, const void* const* from, const size_t* bytes, size_t count, void** created) {
  *created = nullptr;
  Batched* list = new (std::nothrow) Batched;
  if (list == nullptr) return static_cast<int>(cudaErrorMemoryAllocation);
  list->count = count;
  size_t column = count * sizeof(void*);
  static_assert(sizeof(void*) == sizeof(size_t), "the three columns are as wide");
  cudaError_t code = cudaMallocHost(reinterpret_cast<void**>(&list->pinned), 3 * column);
  if (code == cudaSuccess) code = cudaMalloc(reinterpret_cast<void**>(&list->sources), column);
  if (code == cudaSuccess) code = cudaMalloc(reinterpret_cast<void**>(&list->destinations), column);
  if (code == cudaSuccess) code = cudaMalloc(reinterpret_cast<void**>(&list->sizes), column);
  if (code == cudaSuccess) code = launch(*list, nullptr, list->room_bytes, nullptr);
  if (code == cudaSuccess) code = cudaMalloc(&list->room, list->room_bytes);
  if (code != cudaSuccess) {
    release(list);
    return answer(code);
  }
  memcpy(list->pinned, from, column);
  memcpy(list->pinned + count, to, column);
  memcpy(list->pinned + 2 * count, bytes, column);
  *created = list;
  return 0;
}

int peers_batched_upload(void* of, cudaStream_t stream) {
  Batched* list = static_cast<Batched*>(of);
  size_t column = list->count * sizeof(void*);
  void* columns[3] = {list->sources, list->destinations, list->sizes};
  for (size_t at = 0; at < 3; at++) {
    void** pinned = list->pinned + at * list->count;
    cudaError_t code = cudaMemcpyAsync(columns[at], pinned, column, cudaMemcpyHostToDevice, stream);
    if (code != cudaSuccess) return answer(code);
  }
  return 0;
}

int peers_batched_launch(void* of, cudaStream_t stream) {
  Batched* list = static_cast<Batched*>(of);
  return answer(launch(*list, list->room, list->room_bytes, stream));
}

int peers_fill(void* address, int value, size_t bytes, cudaStream_t stream) {
  return answer(cudaMemsetAsync(address, value, bytes, stream));
}

int peers_allocate(void** address, size_t bytes, cudaStream_t stream) {
  return answer(cudaMallocAsync(address, bytes, stream));
}

int peers_free(void* address, cudaStream_t stream) { return answer(cudaFreeAsync(address, stream)); }

int peers_launch_nothing(cudaStream_t stream) {
  nothing<<<1, 32, 0, stream>>>();
  return answer(cudaGetLastError());
}

// A graph of one launch of nothing.
int peers_graph_create(cudaStream_t stream, void** created) {
  *created = nullptr;
  cudaGraph_t graph = nullptr;
  cudaError_t code = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  if (code != cudaSuccess) return answer(code);
  nothing<<<1, 32, 0, stream>>>();
  cudaError_t launched = cudaGetLastError();
  code = cudaStreamEndCapture(stream, &graph);
  if (code == cudaSuccess) code = launched;
  cudaGraphExec_t executable = nullptr;
  if (code == cudaSuccess) code = cudaGraphInstantiate(&executable, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  *created = executable;
  return answer(code);
}

int peers_graph_launch(void* graph, cudaStream_t stream) {
  return answer(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream));
}

int peers_graph_destroy(void* graph) { return answer(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph))); }

}  // extern "C"
