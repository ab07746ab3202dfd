// A step like the last one asks the system for no memory, but for the vectors
// that Gradient() returns and what oneDNN allocates for itself.

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/tape/losses.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

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
namespace {

// What a call of Gradient() allocates besides tensors: the state of the tape,
// and vectors of tensors.
constexpr int kVectors = 8;

int AllocationsOfAStep(const Tensor& x, const Tensor& y, const Tensor& w,
                       const Tensor& b) {
  static int keys[2];
  allocations = 0;
  counting = true;
  {
    GradientTape tape;
    const Tensor hidden = Tanh(MatMul(x, Leaf(&keys[0], w)));
    const Tensor out =
        ReduceSum(hidden * Leaf(&keys[1], b), {1}, {.keep_dims = true});
    const Tensor loss = ReduceMean(BinaryCrossentropy(y, out));
    const auto gradients =
        tape.Gradient(loss, {Leaf(&keys[0], w), Leaf(&keys[1], b)});
    gradients.status().IgnoreError();
  }
  counting = false;
  return allocations;
}

TEST(TapeAllocationTest, AStepAllocatesNoTensors) {
#if defined(PARASOL_SANITIZER)
  GTEST_SKIP() << "a sanitizer allocates itself";
#endif
  const Tensor x = RandomNormal({32, 16}, {.seed = 1});
  const Tensor y = Greater(RandomNormal({32, 1}, {.seed = 2}), 0);
  const Tensor w = RandomNormal({16, 8}, {.seed = 3});
  const Tensor b = RandomNormal({8}, {.seed = 4});
  EXPECT_GT(AllocationsOfAStep(x, y, w, b), kVectors);
  AllocationsOfAStep(x, y, w, b);
  for (int step = 2; step < 6; ++step) {
    EXPECT_LE(AllocationsOfAStep(x, y, w, b), kVectors) << step;
  }
}

}  // namespace
}  // namespace parasol
