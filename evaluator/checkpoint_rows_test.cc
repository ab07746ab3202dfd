#include "evaluator/checkpoint_rows.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 3;

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
  ASSERT_OK(users.Load(*WriteUsers()));
  std::vector<float> values(6);
  users.Read({21, 10, 20}, absl::MakeSpan(values));
  EXPECT_THAT(values, ElementsAre(202, 203, 100, 101, 102, 103));
}

TEST(CheckpointRowsTest, ARowThatIsNotThereHasItsInitialValues) {
  ASSERT_OK_AND_ASSIGN(CheckpointRows users,
                       CheckpointRows::Create(Users(2), kSeed));
  ASSERT_OK(users.Load(*WriteUsers()));
  std::vector<float> values(4);
  users.Read({99, 10}, absl::MakeSpan(values));
  EXPECT_THAT(values, ElementsAre(.5, .5, 100, 101));
}

TEST(CheckpointRowsTest, ATableOfAnotherWidthIsDataLoss) {
  ASSERT_OK_AND_ASSIGN(CheckpointRows users,
                       CheckpointRows::Create(Users(3), kSeed));
  EXPECT_THAT(users.Load(*WriteUsers()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("users have width 2, the job's 3")));
}

}  // namespace
}  // namespace parasol
