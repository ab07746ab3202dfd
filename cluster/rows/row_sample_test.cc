#include "cluster/rows/row_sample.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"

namespace parasol {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<uint64_t> RandomIds(size_t count, int seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> ids(count);
  for (uint64_t& id : ids) id = random();
  return ids;
}

// The first `count` of the ids in the order of their hashes.
std::vector<uint64_t> Smallest(std::vector<uint64_t> ids, size_t count) {
  std::sort(ids.begin(), ids.end(),
            [](uint64_t a, uint64_t b) { return RowHash(a) < RowHash(b); });
  ids.resize(std::min(ids.size(), count));
  return ids;
}

TEST(RowSampleTest, HasTheIdsWithTheSmallestHashes) {
  for (const size_t count : {0, 1, 1024, 1025, 20000}) {
    SCOPED_TRACE(count);
    const std::vector<uint64_t> ids = RandomIds(count, 1);
    RowSample sample(3);
    for (const uint64_t id : ids) sample.Add(id);
    for (const uint64_t id : ids) sample.Add(id);
    EXPECT_THAT(sample.Ids(), ElementsAreArray(Smallest(ids, 1024)));
  }
}

TEST(RowSampleTest, WideRowsAreFewer) {
  RowSample sample(65536);
  for (const uint64_t id : RandomIds(100, 1)) sample.Add(id);
  EXPECT_THAT(sample.Ids(), SizeIs(16));
}

TEST(RowSampleTest, ATablesSampleIsThatOfAllItsRows) {
  RowTable::Options options = {.name = "items", .width = 2};
  options.initializer.mutable_zeros();
  const auto table = *RowTable::Create(
      options, *MakeOptimizer(ParseOptimizer("sgd { learning_rate: 1 }")));
  RowSample none(2);
  table->AddTo(none);
  EXPECT_THAT(none.Ids(), IsEmpty());
  // Some rows, so that all stripes are needed, and so many that one is enough.
  std::vector<uint64_t> ids;
  for (const size_t count : {900, 400, 200000}) {
    SCOPED_TRACE(count);
    const std::vector<uint64_t> more = RandomIds(count, count);
    ids.insert(ids.end(), more.begin(), more.end());
    std::vector<float> values(2 * count);
    ASSERT_OK(table->Pull(reinterpret_cast<const std::byte*>(more.data()),
                          count, values.data()));
    RowSample sample(2);
    table->AddTo(sample);
    EXPECT_THAT(sample.Ids(), ElementsAreArray(Smallest(ids, 1024)));
  }
}

}  // namespace
}  // namespace parasol
