// A step in the steady state allocates nothing on the thread that computes, but
// for the list of arguments that oneDNN makes for itself at every execution.

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"

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
namespace {

class ModelAllocationTest : public ModelTestBase {
 protected:
  static int AllocationsOfAStep(Model& model, const Batch& batch,
                                StagedBatch& staged) {
    allocations = 0;
    counting = true;
    const absl::Status is_staged = model.Stage(batch, staged);
    const auto result = model.Gradients(
        staged, /*seed=*/1, {.variable = IgnoreVariable, .rows = IgnoreRows});
    for (size_t i = 0; i < model.variables().size(); ++i) {
      model.Upload(i).IgnoreError();
    }
    counting = false;
    EXPECT_OK(is_staged);
    EXPECT_OK(result);
    return allocations;
  }
};

TEST_P(ModelAllocationTest, TheCountCounts) {
#if defined(PARASOL_SANITIZER)
  GTEST_SKIP() << "a sanitizer allocates itself";
#endif
  counting = true;
  const auto number = std::make_unique<std::atomic<int>>(7);
  counting = false;
  EXPECT_EQ(*number, 7);
  EXPECT_GT(allocations, 0);
}

TEST_P(ModelAllocationTest, AStepOfAGraphAllocatesNothing) {
  const std::unique_ptr<Model> model = Make(
      "input_shape: [4, 4] layer { flatten {} }"
      "layer { name: 'a' dense { units: 16 activation: RELU kernel_l2: 1e-3 } }"
      "layer { name: 'b' dense { units: 16 } }"
      "layer { add {} input: ['b', 'a'] } layer { activation: RELU }"
      "layer { dense { units: 4 } }");
  SetAll(*model, RandomValues(*model));
  const Batch whole = RandomBatch(32, {4, 4}, 4);
  const Batch last = RandomBatch(5, {4, 4}, 4);
  const auto staged = model->NewStagedBatch();
  for (int step = 1; step <= 2; ++step) {
    AllocationsOfAStep(*model, whole, *staged);
    AllocationsOfAStep(*model, last, *staged);
  }
  for (int step = 3; step <= 10; ++step) {
    EXPECT_EQ(AllocationsOfAStep(*model, whole, *staged), 0) << step;
    EXPECT_EQ(AllocationsOfAStep(*model, last, *staged), 0) << step;
  }
}

TEST_P(ModelAllocationTest, AStepWithTablesAllocatesNothing) {
  const std::unique_ptr<Model> model = Make(
      "input { name: 'n' dense { shape: 3 } } input { name: 'c' ids {} }"
      "sparse_table { name: 't' width: 4 }"
      "layer { name: 'n2' dense { units: 4 activation: SIGMOID } input: 'n' }"
      "layer { name: 'e' embedding_bag { table: 't' } input: 'c' }"
      "layer { concatenate {} input: ['n2', 'e'] }"
      "layer { dropout { rate: .5 } } layer { dense { units: 4 } }");
  SetAll(*model, RandomValues(*model));
  Batch batch = RandomBatch(32, {3}, 4);
  IdFeature& ids = batch.ids.emplace_back();
  for (int i = 0; i <= batch.size; ++i) ids.offsets.push_back(3 * i);
  for (int i = 0; i < 3 * batch.size; ++i) ids.ids.push_back(i * i % 50);
  const auto staged = model->NewStagedBatch();
  for (int step = 1; step <= 10; ++step) {
    const int count = AllocationsOfAStep(*model, batch, *staged);
    EXPECT_TRUE(step < 3 || count == 0) << step << ": " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelAllocationTest, ::testing::Values("cpu"),
                         DeviceName);

}  // namespace
}  // namespace parasol
