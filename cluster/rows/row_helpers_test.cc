// A table whose large requests are shared with helpers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "base/work_helpers.h"
#include "cluster/rows/row_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::Each;

constexpr size_t kWidth = 32;
// Large enough to be shared: 8 times 64 KiB.
constexpr size_t kRows = 4096;

std::unique_ptr<RowTable> MakeTable(const std::string& optimizer,
                                    std::shared_ptr<WorkHelpers> helpers) {
  RowTable::Options options = {.name = "items",
                               .width = kWidth,
                               .seed = 3,
                               .helpers = std::move(helpers)};
  options.initializer.mutable_random_uniform();
  return *RowTable::Create(std::move(options),
                           *MakeOptimizer(ParseOptimizer(optimizer)));
}

const std::byte* Bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

std::vector<float> Pull(RowTable& table, const std::vector<uint64_t>& ids) {
  std::vector<float> values(ids.size() * kWidth);
  EXPECT_OK(table.Pull(Bytes(ids.data()), ids.size(), values.data()));
  return values;
}

// Adam goes through all rows of each stripe, Adagrad through those pushed.
class RowHelpersTest : public testing::TestWithParam<std::string> {};

// As a pull right behind it would, also if helpers take stripes of it.
TEST_P(RowHelpersTest, APushGivesTheNewValuesOfItsRows) {
  const auto alone = MakeTable(GetParam(), nullptr);
  const auto shared = MakeTable(GetParam(), std::make_shared<WorkHelpers>(3));
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (const size_t count : {size_t{1}, size_t{7}, size_t{500}, kRows}) {
    std::vector<uint64_t> ids(count);
    for (uint64_t& id : ids) id = random() % (2 * count);
    std::vector<float> gradients(count * kWidth);
    for (float& gradient : gradients) gradient = draw(random);
    std::vector<float> values(gradients.size());
    ASSERT_OK(shared->Push(Bytes(ids.data()), Bytes(gradients.data()), count,
                           values.data()));
    ASSERT_OK(alone->Push(Bytes(ids.data()), Bytes(gradients.data()), count));
    EXPECT_EQ(values, Pull(*alone, ids));
    EXPECT_EQ(values, Pull(*shared, ids));
  }
}

TEST_P(RowHelpersTest, ValuesAreThoseOfATableWithoutHelpers) {
  const auto alone = MakeTable(GetParam(), nullptr);
  const auto shared = MakeTable(GetParam(), std::make_shared<WorkHelpers>(3));
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<uint64_t> ids(kRows);
  std::vector<float> gradients(kRows * kWidth);
  for (int step = 0; step < 5; ++step) {
    // Half of the ids come twice or more often, in no order.
    for (uint64_t& id : ids) id = random() % (2 * kRows);
    for (float& gradient : gradients) gradient = draw(random);
    for (RowTable* const table : {alone.get(), shared.get()}) {
      ASSERT_OK(
          table->Push(Bytes(ids.data()), Bytes(gradients.data()), ids.size()));
    }
    ASSERT_EQ(Pull(*alone, ids), Pull(*shared, ids));
  }
  EXPECT_EQ(alone->updates(), shared->updates());
  EXPECT_EQ(alone->rows(), shared->rows());
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RowHelpersTest,
                         testing::Values("adagrad {}", "adam {}"));

// Every push takes 1 from each row: pulls see each row whole, and no push is
// lost.
TEST(RowHelpers, RequestsOfSeveralThreads) {
  constexpr int kPushes = 20;
  const auto table =
      MakeTable("sgd { learning_rate: 1 }", std::make_shared<WorkHelpers>(2));
  std::vector<uint64_t> ids(kRows);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i * i;
  const std::vector<float> ones(kRows * kWidth, 1);
  const std::vector<float> before = Pull(*table, ids);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int push = 0; push < kPushes; ++push) {
        EXPECT_OK(
            table->Push(Bytes(ids.data()), Bytes(ones.data()), ids.size()));
        Pull(*table, ids);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> changes = Pull(*table, ids);
  for (size_t i = 0; i < changes.size(); ++i) changes[i] -= before[i];
  EXPECT_THAT(changes, Each(testing::FloatNear(-3 * kPushes, 1e-4)));
}

}  // namespace
}  // namespace parasol
