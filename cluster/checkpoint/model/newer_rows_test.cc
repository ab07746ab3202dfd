// Tables of which only what is newer in a checkpoint is read: they have the
// rows that a whole load has, and leave the ones that they share as they are.
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/checkpoint_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kRowWidth = 2;
constexpr uint64_t kIds = 2000;

job::SparseTable TableOfUsers(int width = kRowWidth) {
  job::SparseTable table;
  table.set_name("users");
  table.set_width(width);
  table.mutable_initializer()->mutable_constant()->set_value(.5);
  return table;
}

class NewerRowsTest : public testing::Test {
 protected:
  // Writes the checkpoint of `step`, in which the values of the rows of `ids`
  // are the step: a whole one, or as an increment to the one before.
  void Write(int64_t step, const std::vector<uint64_t>& ids, bool is_whole) {
    const std::string working = *store_.Begin(step);
    const std::string name = absl::StrCat(step, ".sst");
    const auto writer = *ShardWriter::Create(working + "/" + name);
    writer->SetWriter({.shard = 0, .num_shards = 1});
    for (const uint64_t id : ids) values_[id] = static_cast<float>(step);
    std::vector<uint64_t> written = ids;
    if (is_whole) {
      written.clear();
      for (const auto& [id, value] : values_) written.push_back(id);
    }
    std::vector<float> rows;
    for (const uint64_t id : written) {
      // Values, then the slot's.
      rows.insert(rows.end(), {values_[id], values_[id], -1, -1});
    }
    ASSERT_OK(writer->AddRows("users",
                              {.updates = step, .ids = written, .rows = rows}));
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    durable::CheckpointTable& table = *manifest.add_table();
    table.set_name("users");
    table.set_width(kRowWidth);
    table.add_slot("accumulator");
    if (!is_whole) {
      *manifest.mutable_file() = newest_.file();
      for (const durable::CheckpointFile& file : newest_.file()) {
        ASSERT_OK(Link(store_.PathOf(newest_.global_step()) + "/" + file.name(),
                       working + "/" + file.name()));
      }
      const durable::CheckpointFile& last = *newest_.file().rbegin();
      writer->SetBase({last.bytes(), last.crc32c()});
    }
    const int number = manifest.file_size();
    ASSERT_OK_AND_ASSIGN(*manifest.add_file(), writer->Finish());
    manifest.mutable_file(number)->set_increment(number);
    ASSERT_OK(store_.Commit(working, manifest));
    newest_ = manifest;
  }

  std::unique_ptr<CheckpointReader> Newest() {
    return *CheckpointReader::Open(store_.PathOf(newest_.global_step()));
  }
  static CheckpointRows Empty(int width = kRowWidth) {
    return *CheckpointRows::Create(TableOfUsers(width), 3);
  }
  static std::vector<float> All(CheckpointRows& rows) {
    std::vector<uint64_t> ids(kIds);
    for (uint64_t id = 0; id < kIds; ++id) ids[id] = id;
    std::vector<float> values(kIds * kRowWidth);
    EXPECT_OK(rows.Read(ids, absl::MakeSpan(values)));
    return values;
  }

  const std::string directory_ = absl::StrCat(
      testing::TempDir(), "/newer_rows_",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  CheckpointStore store_ = [this] {
    std::filesystem::remove_all(directory_);
    return *CheckpointStore::OpenForWriting(directory_);
  }();
  std::map<uint64_t, float> values_;
  durable::CheckpointManifest newest_;
};

TEST_F(NewerRowsTest, AnyNumberOfIncrementsGivesTheRowsOfAWholeLoad) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> ids(kIds / 2);
  for (uint64_t& id : ids) id = random() % kIds;
  Write(1, ids, /*is_whole=*/true);
  CheckpointRows served = Empty();
  ASSERT_OK(served.Load(*Newest(), {}));
  for (int64_t step = 2; step < 30; ++step) {
    const durable::CheckpointManifest before = newest_;
    const std::vector<float> values_before = All(served);
    std::vector<uint64_t> changed(random() % 200);
    for (uint64_t& id : changed) id = random() % kIds;
    Write(step, changed, /*is_whole=*/false);
    const auto reader = Newest();
    CheckpointRows next = Empty();
    ASSERT_OK(next.LoadNewer(*reader, served, before, {}));
    CheckpointRows whole = Empty();
    ASSERT_OK(whole.Load(*Newest(), {}));
    EXPECT_EQ(All(next), All(whole)) << step;
    EXPECT_EQ(All(served), values_before) << step;
    // Layers take little more than the rows.
    EXPECT_LE(next.memory_bytes(), 4 * whole.memory_bytes());
    served = std::move(next);
  }
}

TEST_F(NewerRowsTest, SeveralIncrementsAreTakenTogether) {
  Write(1, {1, 2, 3}, true);
  const durable::CheckpointManifest before = newest_;
  CheckpointRows served = Empty();
  ASSERT_OK(served.Load(*Newest(), {}));
  Write(2, {2, 4}, false);
  Write(3, {4}, false);
  CheckpointRows next = Empty();
  ASSERT_OK(next.LoadNewer(*Newest(), served, before, {}));
  std::vector<float> values(8);
  ASSERT_OK(next.Read({1, 2, 4, 9}, absl::MakeSpan(values)));
  EXPECT_THAT(values, testing::ElementsAre(1, 1, 2, 2, 3, 3, .5, .5));
}

TEST_F(NewerRowsTest, WhatDoesNotContinueTheServedOneIsLoadedWhole) {
  Write(1, {1, 2, 3}, true);
  const durable::CheckpointManifest before = newest_;
  CheckpointRows served = Empty();
  ASSERT_OK(served.Load(*Newest(), {}));
  Write(2, {2}, true);
  CheckpointRows next = Empty();
  EXPECT_THAT(next.LoadNewer(*Newest(), served, before, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not continue")));
  // Another run with a file of that name and size.
  Write(3, {2}, false);
  durable::CheckpointManifest other = newest_;
  other.mutable_file()->RemoveLast();
  other.mutable_file(0)->set_crc32c(other.file(0).crc32c() + 1);
  EXPECT_THAT(next.LoadNewer(*Newest(), served, other, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  other = newest_;
  other.set_run_id("another");
  EXPECT_THAT(next.LoadNewer(*Newest(), served, other, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(NewerRowsTest, RowsOutsideOfMemoryAreLoadedWhole) {
  std::vector<uint64_t> ids(kIds);
  for (uint64_t id = 0; id < kIds; ++id) ids[id] = id;
  Write(1, ids, true);
  const durable::CheckpointManifest before = newest_;
  const std::string files = directory_ + "/tables";
  std::filesystem::create_directories(files);
  CheckpointRows in_file = Empty(), in_memory = Empty();
  ASSERT_OK(in_file.Load(*Newest(), {.memory_bytes = 0, .directory = files}));
  ASSERT_TRUE(in_file.is_in_file());
  ASSERT_OK(in_memory.Load(*Newest(), {}));
  Write(2, {1, 2}, false);
  CheckpointRows next = Empty();
  EXPECT_THAT(next.LoadNewer(*Newest(), in_file, before, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not in memory")));
  EXPECT_THAT(
      next.LoadNewer(*Newest(), in_memory, before,
                     {.memory_bytes = in_memory.memory_bytes()}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("do not fit")));
}

// Both versions are in memory while one is made of the other.
TEST_F(NewerRowsTest, WhatDoesNotFitBesideTheServedOneIsLoadedWhole) {
  std::vector<uint64_t> ids(kIds);
  for (uint64_t id = 0; id < kIds; ++id) ids[id] = id;
  Write(1, ids, true);
  const durable::CheckpointManifest before = newest_;
  CheckpointRows served = Empty();
  ASSERT_OK(served.Load(*Newest(), {}));
  Write(2, ids, false);
  const CheckpointRows::Limits limits = {
      .memory_bytes = served.memory_bytes() + served.memory_bytes() / 2};
  CheckpointRows next = Empty();
  EXPECT_THAT(
      next.LoadNewer(*Newest(), served, before, limits),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("do not fit")));
  CheckpointRows whole = Empty();
  ASSERT_OK(whole.Load(*Newest(), limits));
  EXPECT_FALSE(whole.is_in_file());
  EXPECT_THAT(All(whole), Each(2.f));
  EXPECT_THAT(All(served), Each(1.f));
}

// What is merged is in memory three times meanwhile: in the layers that are
// served, in what is newer, and in the layer that both become.
TEST_F(NewerRowsTest, WhatIsMergedFitsBesideBothOrIsLoadedWhole) {
  std::vector<uint64_t> ids(kIds);
  for (uint64_t id = 0; id < kIds; ++id) ids[id] = id;
  Write(1, ids, true);
  const durable::CheckpointManifest before = newest_;
  CheckpointRows served = Empty();
  ASSERT_OK(served.Load(*Newest(), {}));
  Write(2, ids, false);
  const size_t bytes = served.memory_bytes();
  CheckpointRows next = Empty();
  EXPECT_THAT(
      next.LoadNewer(*Newest(), served, before, {.memory_bytes = 4 * bytes}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("do not fit")));
  next = Empty();
  ASSERT_OK(
      next.LoadNewer(*Newest(), served, before, {.memory_bytes = 6 * bytes}));
  EXPECT_THAT(All(next), Each(2.f));
  EXPECT_THAT(All(served), Each(1.f));
}

// The version that is served answers while the next one is made of it.
TEST_F(NewerRowsTest, AServedTableKeepsItsRowsWhileAnotherIsMadeOfIt) {
  std::vector<uint64_t> ids(kIds);
  for (uint64_t id = 0; id < kIds; ++id) ids[id] = id;
  Write(1, ids, true);
  auto served = std::make_unique<CheckpointRows>(Empty());
  ASSERT_OK(served->Load(*Newest(), {}));
  for (int64_t step = 2; step < 12; ++step) {
    std::atomic<bool> is_over = false;
    std::atomic<int64_t> reads = 0;
    std::thread reader([&] {
      while (!is_over || reads < 20) {
        EXPECT_THAT(All(*served), Each(static_cast<float>(step - 1)));
        ++reads;
      }
    });
    const durable::CheckpointManifest before = newest_;
    Write(step, ids, false);
    auto next = std::make_unique<CheckpointRows>(Empty());
    EXPECT_OK(next->LoadNewer(*Newest(), *served, before, {}));
    is_over = true;
    reader.join();
    served = std::move(next);
  }
}

}  // namespace
}  // namespace parasol
