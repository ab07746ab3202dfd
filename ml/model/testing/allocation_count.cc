#include "ml/model/testing/allocation_count.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace {

thread_local bool counting = false;
thread_local int allocations = 0;

#if !defined(PARASOL_SANITIZER)
void Count() {
  if (counting) ++allocations;
}
#endif

}  // namespace

#if !defined(PARASOL_SANITIZER)
// The functions that operator new and everything else in this process allocate
// with.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* data, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  Count();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count();
  return __libc_calloc(count, size);
}
void* realloc(void* data, size_t size) {
  Count();
  return __libc_realloc(data, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** data, size_t alignment, size_t size) {
  Count();
  *data = __libc_memalign(alignment, size);
  return *data == nullptr ? ENOMEM : 0;
}

// oneDNN's, in front of it: what it allocates in there is not counted.
int dnnl_primitive_execute(const void* primitive, void* stream, int size,
                           const void* arguments) {
  static const auto execute =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(
          dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  const bool was_counting = counting;
  counting = false;
  const int status = execute(primitive, stream, size, arguments);
  counting = was_counting;
  return status;
}
}
#endif

namespace parasol {

int CountAllocations(absl::FunctionRef<void()> body) {
  allocations = 0;
  counting = true;
  body();
  counting = false;
  return allocations;
}

}  // namespace parasol
