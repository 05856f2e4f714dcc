// The copies without a stream that cust makes, by those with one: the driver over host memory has no others.
typedef unsigned long long address;

int cuMemcpyHtoDAsync_v2(address to, const void* from, unsigned long bytes, void* stream);
int cuMemcpyDtoHAsync_v2(void* to, address from, unsigned long bytes, void* stream);
int cuMemsetD8Async(address to, unsigned char value, unsigned long bytes, void* stream);
int cuStreamSynchronize(void* stream);

int cuMemcpyHtoD_v2(address to, const void* from, unsigned long bytes) {
  int code = cuMemcpyHtoDAsync_v2(to, from, bytes, 0);
  return code ? code : cuStreamSynchronize(0);
}

int cuMemcpyDtoH_v2(void* to, address from, unsigned long bytes) {
  int code = cuMemcpyDtoHAsync_v2(to, from, bytes, 0);
  return code ? code : cuStreamSynchronize(0);
}

// Device memory is set in the null stream's order, and nobody waits.
int cuMemsetD8_v2(address to, unsigned char value, unsigned long bytes) { return cuMemsetD8Async(to, value, bytes, 0); }
