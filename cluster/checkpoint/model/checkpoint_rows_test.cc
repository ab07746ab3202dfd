#include "cluster/checkpoint/model/checkpoint_rows.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSeed = 3;
// Makes different ids of different numbers.
constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;

job::SparseTable Users(int width) {
  job::SparseTable table;
  table.set_name("users");
  table.set_width(width);
  table.mutable_initializer()->mutable_constant()->set_value(.5);
  return table;
}

// Two files of a table of width 2 with a slot.
std::unique_ptr<CheckpointReader> WriteUsers() {
  CheckpointStore store = *CheckpointStore::OpenForWriting(absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name()));
  const std::string directory = *store.Begin(1);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(1);
  durable::CheckpointTable& table = *manifest.add_table();
  table.set_name("users");
  table.set_width(2);
  table.add_slot("accumulator");
  for (const uint64_t shard : {0, 1}) {
    auto writer =
        *ShardWriter::Create(absl::StrCat(directory, "/", shard, ".sst"));
    const std::vector<uint64_t> ids = {10 + shard, 20 + shard};
    const float base = 100 * (1 + shard);
    const std::vector<float> rows = {base,     base + 1, -1, -1,
                                     base + 2, base + 3, -1, -1};
    EXPECT_OK(
        writer->AddRows("users", {.updates = 1, .ids = ids, .rows = rows}));
    *manifest.add_file() = *writer->Finish();
  }
  EXPECT_OK(store.Commit(directory, manifest));
  return *CheckpointReader::Open(store.PathOf(1));
}

TEST(CheckpointRowsTest, RowsAreThoseOfAllFilesWithoutTheirSlots) {
  ASSERT_OK_AND_ASSIGN(CheckpointRows users,
                       CheckpointRows::Create(Users(2), kSeed));
  ASSERT_OK(users.Load(*WriteUsers(), {}));
  std::vector<float> values(6);
  ASSERT_OK(users.Read({21, 10, 20}, absl::MakeSpan(values)));
  EXPECT_THAT(values, ElementsAre(202, 203, 100, 101, 102, 103));
}

TEST(CheckpointRowsTest, ARowThatIsNotThereHasItsInitialValues) {
  ASSERT_OK_AND_ASSIGN(CheckpointRows users,
                       CheckpointRows::Create(Users(2), kSeed));
  ASSERT_OK(users.Load(*WriteUsers(), {}));
  std::vector<float> values(4);
  ASSERT_OK(users.Read({99, 10}, absl::MakeSpan(values)));
  EXPECT_THAT(values, ElementsAre(.5, .5, 100, 101));
}

// As the ps would give it.
TEST(CheckpointRowsTest, InitialValuesAreRoundedWhereTheJobKeepsBfloat16) {
  job::SparseTable table = Users(2);
  table.mutable_initializer()->mutable_constant()->set_value(1.001);
  table.set_values(job::SparseTable::BFLOAT16);
  ASSERT_OK_AND_ASSIGN(CheckpointRows users,
                       CheckpointRows::Create(table, kSeed));
  ASSERT_OK(users.Load(*WriteUsers(), {}));
  std::vector<float> values(4);
  ASSERT_OK(users.Read({99, 10}, absl::MakeSpan(values)));
  EXPECT_THAT(values, ElementsAre(1, 1, 100, 101));
}

// A table of width 16 with two slots, in two files, of `rows` rows.
std::unique_ptr<CheckpointReader> WriteManyUsers(uint64_t rows) {
  constexpr size_t kFloats = 3 * 16;
  CheckpointStore store = *CheckpointStore::OpenForWriting(absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name()));
  const std::string directory = *store.Begin(1);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(1);
  durable::CheckpointTable& table = *manifest.add_table();
  table.set_name("users");
  table.set_width(16);
  table.add_slot("m");
  table.add_slot("v");
  for (const uint64_t shard : {0, 1}) {
    auto writer =
        *ShardWriter::Create(absl::StrCat(directory, "/", shard, ".sst"));
    for (uint64_t first = shard; first < rows; first += 200) {
      std::vector<uint64_t> ids;
      std::vector<float> values;
      for (uint64_t id = first; id < std::min(first + 200, rows); id += 2) {
        ids.push_back(id * kOdd);
        for (size_t i = 0; i < kFloats; ++i) values.push_back(id + .001f * i);
      }
      EXPECT_OK(
          writer->AddRows("users", {.updates = 1, .ids = ids, .rows = values}));
    }
    *manifest.add_file() = *writer->Finish();
  }
  EXPECT_OK(store.Commit(directory, manifest));
  return *CheckpointReader::Open(store.PathOf(1));
}

TEST(CheckpointRowsTest, RowsThatDoNotFitInMemoryAreTheSameInAFile) {
  constexpr uint64_t kRows = 300'000;
  const auto checkpoint = WriteManyUsers(kRows);
  ASSERT_OK_AND_ASSIGN(CheckpointRows in_memory,
                       CheckpointRows::Create(Users(16), kSeed));
  ASSERT_OK(in_memory.Load(*checkpoint, {}));
  EXPECT_FALSE(in_memory.is_in_file());
  ASSERT_OK_AND_ASSIGN(CheckpointRows in_file,
                       CheckpointRows::Create(Users(16), kSeed));
  // A limit below what one run has, and one of two runs.
  for (const size_t limit : {size_t{0}, size_t{20} << 20}) {
    ASSERT_OK(in_file.Load(
        *checkpoint, {.memory_bytes = limit, .directory = testing::TempDir()}));
    EXPECT_TRUE(in_file.is_in_file());
    EXPECT_LT(in_file.memory_bytes(), kRows);
    std::vector<uint64_t> ids;
    // All rows, and some that are not there.
    for (uint64_t id = 0; id < kRows + 1000; ++id) {
      ids.push_back(id * kOdd);
    }
    std::vector<float> want(ids.size() * 16);
    std::vector<float> values(ids.size() * 16);
    ASSERT_OK(in_memory.Read(ids, absl::MakeSpan(want)));
    ASSERT_OK(in_file.Read(ids, absl::MakeSpan(values)));
    EXPECT_TRUE(values == want);
  }
  // A table that fits stays in memory, also after it was in a file.
  ASSERT_OK(in_file.Load(
      *checkpoint, {.memory_bytes = size_t{1} << 30, .directory = "/nowhere"}));
  EXPECT_FALSE(in_file.is_in_file());
  EXPECT_GT(in_file.memory_bytes(), kRows * 16 * sizeof(float));
}

TEST(CheckpointRowsTest, ASampleHasTheRowsWithTheSmallestHashes) {
  constexpr uint64_t kRows = 3000;
  const auto checkpoint = WriteManyUsers(kRows);
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < kRows; ++id) ids.push_back(id * kOdd);
  std::sort(ids.begin(), ids.end(),
            [](uint64_t a, uint64_t b) { return RowHash(a) < RowHash(b); });
  ids.resize(1024);
  ASSERT_OK_AND_ASSIGN(CheckpointRows users,
                       CheckpointRows::Create(Users(16), kSeed));
  for (const size_t limit : {size_t{0}, SIZE_MAX}) {
    SCOPED_TRACE(limit);
    ASSERT_OK(users.Load(*checkpoint, {.memory_bytes = limit,
                                       .directory = testing::TempDir(),
                                       .with_sample = true}));
    std::vector<float> want(ids.size() * 16);
    ASSERT_OK(users.Read(ids, absl::MakeSpan(want)));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> sample, users.Sample());
    EXPECT_TRUE(sample == want);
  }
  ASSERT_OK(users.Load(*checkpoint, {}));
  EXPECT_THAT(users.Sample(), IsOkAndHolds(IsEmpty()));
}

TEST(CheckpointRowsTest, ATableOfAnotherWidthIsDataLoss) {
  ASSERT_OK_AND_ASSIGN(CheckpointRows users,
                       CheckpointRows::Create(Users(3), kSeed));
  EXPECT_THAT(users.Load(*WriteUsers(), {}),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("users have width 2, the job's 3")));
}

}  // namespace
}  // namespace parasol
