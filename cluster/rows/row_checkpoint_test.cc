#include "cluster/rows/row_checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/placement/row_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"
#include "storage/shard_entry.h"
#include "storage/shard_file.h"
#include "storage/shard_writer.h"
#include "storage/testing/checkpoint_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Rows = std::map<uint64_t, std::vector<float>>;

constexpr size_t kWidth = 3;

std::unique_ptr<RowTable> MakeTable(
    const std::string& optimizer = "adagrad {}") {
  RowTable::Options options = {.name = "items", .width = kWidth, .seed = 3};
  options.initializer.mutable_random_normal();
  auto table =
      RowTable::Create(options, *MakeOptimizer(ParseOptimizer(optimizer)));
  EXPECT_OK(table);
  return *std::move(table);
}

void PushOne(RowTable& table, const std::vector<uint64_t>& ids) {
  const std::vector<float> gradients(ids.size() * kWidth, .1f);
  EXPECT_OK(table.Push(reinterpret_cast<const std::byte*>(ids.data()),
                       reinterpret_cast<const std::byte*>(gradients.data()),
                       ids.size()));
}

// Adds the rows to `rows`; none may be there.
void AddTo(Rows& rows, RowSnapshot snapshot) {
  EXPECT_OK(snapshot.Drain([&](const RowBatch& batch) {
    const size_t floats =
        batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      const auto row = batch.rows.subspan(i * floats, floats);
      EXPECT_TRUE(
          rows.try_emplace(batch.ids[i], row.begin(), row.end()).second);
    }
    return absl::OkStatus();
  }));
}

class RowCheckpointTest : public CheckpointFixture {
 protected:
  RowCheckpointTest() {
    durable::CheckpointTable* const table = manifest_.add_table();
    table->set_name("items");
    table->set_width(kWidth);
    table->add_slot("accumulator");
  }

  void AddShard(const RowTable& table) {
    const std::string path =
        absl::StrCat(root(), "/", manifest_.file_size(), ".sst");
    ASSERT_OK_AND_ASSIGN(const auto writer, ShardWriter::Create(path));
    RowSnapshot snapshot = table.TakeSnapshot();
    ASSERT_OK(WriteTables(absl::MakeSpan(&snapshot, 1), *writer));
    ASSERT_OK_AND_ASSIGN(*manifest_.add_file(), writer->Finish());
    ASSERT_OK(WriteManifest(root(), manifest_));
  }

  absl::Status Restore(uint32_t shard, uint32_t num_shards, RowTable& table) {
    ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(root()));
    return ReadRows(*reader, shard, num_shards, table);
  }

  void ExpectRestoredByAnyNumber(const std::string& optimizer);

  durable::CheckpointManifest manifest_;
};

TEST_F(RowCheckpointTest, AnyNumberOfShardsRestoresTheSameRows) {
  ExpectRestoredByAnyNumber("adagrad {}");
}

TEST_F(RowCheckpointTest, SoAreRowsWithOneSlotElement) {
  *manifest_.mutable_table(0) = MakeTable("rowwise_adagrad {}")->form();
  manifest_.set_format_version(kFormatVersion);
  ExpectRestoredByAnyNumber("rowwise_adagrad {}");
  // A table of the other kind takes none of them.
  const auto other = MakeTable();
  EXPECT_THAT(Restore(0, 1, *other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("width 3 and slots [row_accumulator] of "
                                 "widths [1], the job's 3 and [accumulator]")));
  EXPECT_EQ(other->rows(), 0u);
}

// Slots of the same name that have another width: rows of another size.
TEST_F(RowCheckpointTest, SlotsOfAnotherWidthAreRefused) {
  *manifest_.mutable_table(0) = MakeTable("rowwise_adagrad {}")->form();
  manifest_.mutable_table(0)->clear_slot_width();
  AddShard(*MakeTable());
  EXPECT_THAT(Restore(0, 1, *MakeTable("rowwise_adagrad {}")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("and slots [row_accumulator], the job's 3 and "
                                 "[row_accumulator] of widths [1]")));
}

void RowCheckpointTest::ExpectRestoredByAnyNumber(
    const std::string& optimizer) {
  constexpr uint32_t kWriters = 3;
  std::vector<std::vector<uint64_t>> ids(kWriters);
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t id = i * i * i - 1;
    ids[ShardOfRow(id, kWriters)].push_back(id);
  }
  Rows written;
  for (const auto& ids_of_shard : ids) {
    const auto table = MakeTable(optimizer);
    PushOne(*table, ids_of_shard);
    AddShard(*table);
    AddTo(written, table->TakeSnapshot());
  }
  EXPECT_EQ(written.size(), 5000u);

  for (const uint32_t readers : {1, 2, 3, 7}) {
    SCOPED_TRACE(readers);
    Rows restored;
    for (uint32_t shard = 0; shard < readers; ++shard) {
      const auto table = MakeTable(optimizer);
      ASSERT_OK(Restore(shard, readers, *table));
      EXPECT_EQ(table->updates(), 1);
      RowSnapshot snapshot = table->TakeSnapshot();
      Rows rows;
      AddTo(rows, std::move(snapshot));
      for (const auto& [id, row] : rows) {
        EXPECT_EQ(ShardOfRow(id, readers), shard);
      }
      restored.merge(rows);
    }
    EXPECT_EQ(restored, written);
  }
}

TEST_F(RowCheckpointTest, ATableWithoutRowsKeepsItsUpdates) {
  const auto table = MakeTable();
  PushOne(*table, {});
  AddShard(*table);
  const auto restored = MakeTable();
  ASSERT_OK(Restore(0, 2, *restored));
  EXPECT_EQ(restored->updates(), 1);
  EXPECT_EQ(restored->rows(), 0u);
}

TEST_F(RowCheckpointTest, ATableOfAnotherShapeIsRefused) {
  AddShard(*MakeTable());
  durable::CheckpointTable& table = *manifest_.mutable_table(0);
  table.set_slot(0, "momentum");
  ASSERT_OK(WriteManifest(root(), manifest_));
  EXPECT_THAT(Restore(0, 1, *MakeTable()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("width 3 and slots [momentum]")));
}

TEST_F(RowCheckpointTest, ARowThatTwoFilesHaveIsDataLoss) {
  const auto table = MakeTable();
  PushOne(*table, {77});
  AddShard(*table);
  AddShard(*table);
  EXPECT_THAT(Restore(0, 1, *MakeTable()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("table items: row 77 is in the checkpoint "
                                 "twice")));
}

// A table whose rows go when two pushes have not touched them.
std::unique_ptr<RowTable> MakeForgetfulTable() {
  RowTable::Options options = {.name = "items", .width = kWidth, .seed = 3};
  options.initializer.mutable_random_normal();
  options.bounds.idle_steps = 1;
  return *RowTable::Create(options, *MakeOptimizer(ParseOptimizer("sgd {}")));
}

TEST_F(RowCheckpointTest, ARemovedIdIsWrittenOnce) {
  const auto table = MakeForgetfulTable();
  PushOne(*table, {4, 2, 9});
  table->TakeSnapshot({.number = 1});
  for (int i = 0; i < 3; ++i) {
    PushOne(*table, {});
    PushOne(*table, {9, 4});
  }
  PushOne(*table, {});
  PushOne(*table, {});
  const RowSnapshot snapshot = table->TakeSnapshot({.number = 2, .since = 1});
  ASSERT_GT(snapshot.removed().size(), 3u);
  ASSERT_OK_AND_ASSIGN(const auto writer, ShardWriter::Create(root() + "/0"));
  writer->SetBase({1, 2});
  ASSERT_OK(WriteRemoved(absl::MakeConstSpan(&snapshot, 1), *writer));
  ASSERT_OK(writer->AddRows("items", {.updates = table->updates()}));
  ASSERT_OK_AND_ASSIGN(const durable::CheckpointFile written, writer->Finish());
  ASSERT_OK_AND_ASSIGN(const auto file, ShardFile::Open(root(), written));
  ASSERT_EQ(file->index().tables.size(), 1u);
  std::vector<uint64_t> removed;
  ASSERT_OK(file->ReadRemoved(
      file->index().tables[0].prefix, [&](absl::Span<const uint64_t> ids) {
        removed.insert(removed.end(), ids.begin(), ids.end());
        return absl::OkStatus();
      }));
  EXPECT_THAT(removed, ElementsAre(2, 4, 9));
}

TEST_F(RowCheckpointTest, ASnapshotThatIsNotCompleteIsNotWritten) {
  const auto table = MakeForgetfulTable();
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 9000; ++i) ids.push_back(RowIdOf(i));
  PushOne(*table, ids);
  table->TakeSnapshot({.number = 1});
  PushOne(*table, {});
  PushOne(*table, {});
  RowSnapshot snapshot = table->TakeSnapshot({.number = 2, .since = 1});
  ASSERT_FALSE(snapshot.is_complete());
  ASSERT_OK_AND_ASSIGN(const auto writer, ShardWriter::Create(root() + "/0"));
  const auto is_refused = StatusIs(
      absl::StatusCode::kFailedPrecondition,
      "table items: more rows have gone than are kept track of; the next "
      "checkpoint is whole");
  EXPECT_THAT(WriteRemoved(absl::MakeConstSpan(&snapshot, 1), *writer),
              is_refused);
  EXPECT_THAT(WriteTables(absl::MakeSpan(&snapshot, 1), *writer), is_refused);
}

}  // namespace
}  // namespace parasol
