#include "storage/tier/row_log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/tier/testing/memory_tier_file.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::TempDir;

constexpr size_t kFloats = 3;
constexpr LogRecordFormat kFormat = {.floats = kFloats, .timed = true};

// What a row of the model has.
struct ModelRow {
  LogPlace place = 0;
  uint32_t changed = 0;
  int64_t touched = 0;
  std::array<float, kFloats> elements = {};

  bool operator==(const ModelRow& other) const {
    return changed == other.changed && touched == other.touched &&
           elements == other.elements;
  }
};

ModelRow RowOf(const LoggedRow& row) {
  ModelRow model = {.changed = row.changed, .touched = row.touched};
  std::copy_n(row.elements, kFloats, model.elements.begin());
  return model;
}

LoggedRow LoggedRowOf(uint64_t id, const ModelRow& row) {
  return {.id = id,
          .changed = row.changed,
          .touched = row.touched,
          .elements = row.elements.data()};
}

// A log beside a map that says what is in it.
class ModelledLog {
 public:
  explicit ModelledLog(size_t rows_per_segment,
                       std::unique_ptr<TierFile> file = nullptr) {
    auto memory = std::make_unique<MemoryTierFile>();
    disk_ = memory.get();
    if (file == nullptr) file = std::move(memory);
    log_ = std::make_shared<RowLog>(
        std::move(file),
        RowLog::Options{
            .format = kFormat,
            .segment_bytes = rows_per_segment * kFormat.record_bytes()});
  }

  void Append(uint64_t id, float value, uint32_t changed = 0,
              int64_t touched = 0) {
    ModelRow row = {.changed = changed,
                    .touched = touched,
                    .elements = {value, -value, static_cast<float>(id)}};
    row.place = log_->Append(LoggedRowOf(id, row));
    rows_[id] = row;
  }

  void Free(uint64_t id) {
    log_->Free(rows_.at(id).place);
    rows_.erase(id);
  }

  absl::Status Compact() {
    return log_
        ->Compact([this](LogPlace place, const LoggedRow& row) {
          const auto found = rows_.find(row.id);
          if (found == rows_.end() || found->second.place != place) return;
          EXPECT_EQ(RowOf(row), found->second) << "row " << row.id;
          found->second.place = log_->Move(place, row);
        })
        .status();
  }

  void ClampTouched(int64_t most) {
    log_->ClampTouched(most);
    for (auto& [id, row] : rows_) row.touched = std::min(row.touched, most);
  }

  // Reads all rows and compares them.
  absl::Status Check() const {
    RowReads reads(log_);
    std::vector<uint64_t> ids;
    for (const auto& [id, row] : rows_) {
      reads.Add(id, row.place);
      ids.push_back(id);
    }
    RETURN_IF_ERROR(reads.Finish());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(reads.row(i).id, ids[i]);
      EXPECT_EQ(RowOf(reads.row(i)), rows_.at(ids[i])) << "row " << ids[i];
    }
    return absl::OkStatus();
  }

  static std::map<uint64_t, ModelRow> RowsOf(LogSnapshot snapshot) {
    std::map<uint64_t, ModelRow> rows;
    EXPECT_OK(snapshot.Drain([&rows](const LoggedRow& row) {
      EXPECT_TRUE(rows.emplace(row.id, RowOf(row)).second) << row.id;
      return absl::OkStatus();
    }));
    return rows;
  }

  std::map<uint64_t, ModelRow> ChangedSince(uint32_t snapshot) const {
    std::map<uint64_t, ModelRow> changed;
    for (const auto& [id, row] : rows_) {
      if (row.changed >= snapshot) changed.emplace(id, row);
    }
    return changed;
  }

  const std::shared_ptr<RowLog>& log() { return log_; }
  MemoryTierFile& disk() { return *disk_; }
  const std::map<uint64_t, ModelRow>& rows() const { return rows_; }

 private:
  MemoryTierFile* disk_;  // the log has it
  std::shared_ptr<RowLog> log_;
  std::map<uint64_t, ModelRow> rows_;
};

TEST(RowLogTest, RowsAreReadFromMemoryUntilTheirSegmentIsWritten) {
  ModelledLog log(/*rows_per_segment=*/4);
  for (uint64_t id = 0; id < 6; ++id) log.Append(id, .5f * id);
  EXPECT_OK(log.Check());
  EXPECT_EQ(log.disk().reads(), 0);
  EXPECT_THAT(log.log()->Write(), IsOkAndHolds(true));
  EXPECT_OK(log.Check());
  EXPECT_EQ(log.disk().reads(), 4);
  EXPECT_THAT(log.log()->Write(), IsOkAndHolds(false));
}

TEST(RowLogTest, ASegmentWithoutRowsIsUsedAgainAndNotWritten) {
  ModelledLog log(/*rows_per_segment=*/4);
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t id = 0; id < 4; ++id) log.Append(id, round);
    for (uint64_t id = 0; id < 4; ++id) log.Free(id);
  }
  EXPECT_THAT(log.log()->Write(), IsOkAndHolds(false));
  EXPECT_EQ(log.log()->memory_bytes(), 0u);
  EXPECT_EQ(log.log()->file_bytes(), 0u);
}

// Whoever reads a row knows it by its place.
TEST(RowLogTest, APlaceIsNotUsedAgainWhileItsRowIsRead) {
  const auto log = std::make_shared<RowLog>(
      std::make_unique<MemoryTierFile>(),
      RowLog::Options{.format = kFormat,
                      .segment_bytes = kFormat.record_bytes()});
  const ModelRow row = {.elements = {1, 2, 3}};
  const LogPlace place = log->Append(LoggedRowOf(7, row));
  {
    RowReads reads(log);
    reads.Add(7, place);
    log->Free(place);
    EXPECT_NE(log->Append(LoggedRowOf(7, row)), place);
    ASSERT_OK(reads.Finish());
    EXPECT_EQ(RowOf(reads.row(0)), row);
  }
  EXPECT_EQ(log->Append(LoggedRowOf(8, row)), place) << "nobody reads it";
}

TEST(RowLogTest, ARowThatMovesKeepsTheLastTouchThatCounts) {
  const auto log = std::make_shared<RowLog>(
      std::make_unique<MemoryTierFile>(),
      RowLog::Options{.format = kFormat,
                      .segment_bytes = 2 * kFormat.record_bytes()});
  const ModelRow row = {.touched = 9, .elements = {1, 2, 3}};
  const LogPlace place = log->Append(LoggedRowOf(7, row));
  log->ClampTouched(5);
  // Read before.
  const LogPlace moved = log->Move(place, LoggedRowOf(7, row));
  RowReads reads(log);
  reads.Add(7, moved);
  ASSERT_OK(reads.Finish());
  EXPECT_EQ(reads.row(0).touched, 5);
}

TEST(RowLogTest, ASnapshotHasWhatWasThereWhateverComesLater) {
  ModelledLog log(/*rows_per_segment=*/4);
  for (uint64_t id = 0; id < 12; ++id) log.Append(id, id, /*changed=*/id);
  ASSERT_THAT(log.log()->Write(), IsOkAndHolds(true));
  const auto rows = log.rows();
  const auto changed = log.ChangedSince(6);
  LogSnapshot all(log.log(), 0);
  LogSnapshot newer(log.log(), 6);
  for (uint64_t id = 0; id < 12; ++id) log.Free(id);
  for (uint64_t id = 0; id < 12; ++id) log.Append(id, -1.f * id);
  while (*log.log()->Write()) {
  }
  EXPECT_EQ(all.rows(), 12u);
  EXPECT_EQ(ModelledLog::RowsOf(std::move(all)), rows);
  EXPECT_EQ(ModelledLog::RowsOf(std::move(newer)), changed);
  EXPECT_OK(log.Check());
}

TEST(RowLogTest, ASnapshotThatGoesGivesItsSegmentsBack) {
  ModelledLog log(/*rows_per_segment=*/4);
  for (uint64_t id = 0; id < 4; ++id) log.Append(id, id);
  ASSERT_THAT(log.log()->Write(), IsOkAndHolds(true));
  {
    const LogSnapshot snapshot(log.log(), 0);
    for (uint64_t id = 0; id < 4; ++id) log.Free(id);
    for (uint64_t id = 4; id < 8; ++id) log.Append(id, id);
    ASSERT_THAT(log.log()->Write(), IsOkAndHolds(true));
  }
  const uint64_t bytes = log.log()->file_bytes();
  for (uint64_t id = 8; id < 12; ++id) log.Append(id, id);
  ASSERT_THAT(log.log()->Write(), IsOkAndHolds(true));
  EXPECT_EQ(log.log()->file_bytes(), bytes);
}

TEST(RowLogTest, DamageIsAnErrorThatNamesThePlace) {
  ModelledLog log(/*rows_per_segment=*/4);
  for (uint64_t id = 0; id < 4; ++id) log.Append(id, id);
  ASSERT_THAT(log.log()->Write(), IsOkAndHolds(true));
  log.disk().Damage();
  EXPECT_THAT(log.Check(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("at place 0")));
  LogSnapshot snapshot(log.log(), 0);
  EXPECT_THAT(snapshot.Drain([](const LoggedRow&) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(RowLogTest, AReadThatFailsIsItsError) {
  ModelledLog log(/*rows_per_segment=*/4);
  for (uint64_t id = 0; id < 4; ++id) log.Append(id, id);
  ASSERT_THAT(log.log()->Write(), IsOkAndHolds(true));
  log.disk().FailReadAfter(2);
  EXPECT_THAT(log.Check(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(RowLogTest, AFullDiskLosesNothingAndPutsTheLogBehind) {
  ModelledLog log(/*rows_per_segment=*/4);
  log.disk().SetCapacity(0);
  for (uint64_t id = 0; id < 12; ++id) {
    EXPECT_FALSE(log.log()->is_behind());
    log.Append(id, id);
    EXPECT_EQ(log.log()->Write().ok(), id < 3);
  }
  EXPECT_TRUE(log.log()->is_behind());
  EXPECT_THAT(log.log()->AwaitRoom(absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_OK(log.Check());
  log.disk().SetCapacity(UINT64_MAX);
  EXPECT_THAT(log.log()->Write(), IsOkAndHolds(true));
  EXPECT_OK(log.log()->AwaitRoom(absl::ZeroDuration()));
  EXPECT_OK(log.Check());
}

TEST(RowLogTest, RowsThatWereTouchedLaterCountAsTouchedByTheLast) {
  ModelledLog log(/*rows_per_segment=*/4);
  for (uint64_t id = 0; id < 6; ++id) log.Append(id, id, 0, 10 * id);
  log.ClampTouched(20);
  log.Append(7, 7, 0, 70);
  EXPECT_OK(log.Check());
  while (*log.log()->Write()) {
  }
  EXPECT_OK(log.Check());
  EXPECT_EQ(ModelledLog::RowsOf(LogSnapshot(log.log(), 0)), log.rows());
}

// Draws a schedule and compares everything that can be read with the model.
void RunSchedule(uint64_t seed, std::unique_ptr<TierFile> file = nullptr,
                 int steps = 400) {
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const bool has_faults = file == nullptr;
  ModelledLog log(1 + random() % 9, std::move(file));
  const uint64_t ids = 1 + random() % 100;
  std::optional<LogSnapshot> snapshot;
  std::map<uint64_t, ModelRow> of_snapshot;
  for (int step = 0; step < steps; ++step) {
    const uint64_t id = random() % ids;
    switch (random() % 16) {
      case 0:
        // Fails while the disk is full.
        log.log()->Write().IgnoreError();
        break;
      case 1:
        ASSERT_OK(log.Compact());
        break;
      case 2: {
        const uint32_t since = random() % 2 * (random() % 8);
        snapshot.emplace(log.log(), since);
        of_snapshot = log.ChangedSince(since);
        break;
      }
      case 3:
        if (!snapshot.has_value()) break;
        ASSERT_EQ(ModelledLog::RowsOf(*std::move(snapshot)), of_snapshot);
        snapshot.reset();
        break;
      case 4:
        if (random() % 4 != 0) break;
        snapshot.reset();
        if (random() % 2 == 0) log.ClampTouched(random() % 100);
        break;
      case 5:
        if (!has_faults) break;
        log.disk().SetCapacity(random() % 2 == 0 ? UINT64_MAX
                                                 : random() % 5 * 4096);
        break;
      case 6:
        ASSERT_OK(log.Check());
        break;
      default:
        if (log.rows().contains(id)) log.Free(id);
        log.Append(id, step, random() % 8, random() % 100);
    }
  }
  ASSERT_OK(log.Check());
  ASSERT_EQ(ModelledLog::RowsOf(LogSnapshot(log.log(), 0)), log.rows());
}

TEST(RowLogTest, AnySequenceOfCallsGivesTheRowsOfTheModel) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    RunSchedule(seed);
    if (HasFailure()) return;
  }
}

TEST(RowLogTest, RowsOfAFileOnTheDiskAreTheSame) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    ASSERT_OK_AND_ASSIGN(
        std::unique_ptr<TierFile> file,
        OpenTierFile(TempDir(),
                     seed % 2 == 0 ? ReadWith::kRings : ReadWith::kThreads));
    RunSchedule(seed, std::move(file), /*steps=*/2000);
    if (HasFailure()) return;
  }
}

// The process's own limit is none of the disk's room.
TEST(TierFileTest, TheLimitOfFilesIsNamed) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TierFile> file,
                       OpenTierFile(TempDir()));
  const BlockMemory block(TierFile::kBlockBytes);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t limit : {rlim_t{8192}, rlim_t{8192 + 100}}) {
    const struct rlimit small = {.rlim_cur = limit,
                                 .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Status fits =
        file->Write(4096, absl::MakeConstSpan(block.data(), block.size()));
    const absl::Status beyond =
        file->Write(8192, absl::MakeConstSpan(block.data(), block.size()));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_OK(fits);
    EXPECT_THAT(beyond, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr(absl::StrCat("may write ", limit,
                                                        " bytes to a file"))));
  }
}

TEST(RowLogTest, CompactionKeepsTheFileShort) {
  constexpr uint64_t kIds = 1000;
  ModelledLog log(/*rows_per_segment=*/10);
  std::mt19937_64 random(1);
  for (uint64_t id = 0; id < kIds; ++id) log.Append(id, id);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t id = random() % kIds;
    log.Free(id);
    log.Append(id, i);
    while (*log.log()->Write()) {
    }
    ASSERT_OK(log.Compact());
  }
  // 100 segments if none had a place that is wasted.
  EXPECT_LE(log.log()->file_bytes(), 160 * log.log()->segment_bytes());
  EXPECT_OK(log.Check());
}

TEST(TierFileTest, ReadsSideBySideAreTheBytesThatWereWritten) {
  constexpr size_t kBlocks = 1000;
  constexpr size_t kBlock = TierFile::kBlockBytes;
  for (const ReadWith read_with : {ReadWith::kRings, ReadWith::kThreads}) {
    SCOPED_TRACE(static_cast<int>(read_with));
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<TierFile> file,
                         OpenTierFile(TempDir(), read_with));
    const BlockMemory written(kBlocks * kBlock);
    const BlockMemory read(kBlocks * kBlock);
    for (size_t i = 0; i < written.size(); ++i) {
      written.data()[i] = static_cast<std::byte>(i / kBlock * 31 + i % 251);
    }
    ASSERT_OK(file->Write(0, absl::MakeSpan(written.data(), written.size())));
    std::vector<TierFile::Reading> readings;
    for (size_t i = 0; i < kBlocks; ++i) {
      const size_t block = i * 7 % kBlocks;
      readings.push_back(
          {.offset = block * kBlock,
           .out = absl::MakeSpan(read.data() + block * kBlock, kBlock)});
    }
    ASSERT_OK(file->Read(readings));
    EXPECT_TRUE(
        std::equal(read.data(), read.data() + read.size(), written.data()));
    readings[500].offset = kBlocks * kBlock;
    EXPECT_THAT(file->Read(readings), StatusIs(absl::StatusCode::kUnavailable,
                                               HasSubstr("--tier_dir")));
  }
}

TEST(TierFileTest, AFileHasNoNameAndADirectoryThatIsMissingIsNamed) {
  const std::string directory = absl::StrCat(TempDir(), "/tier");
  EXPECT_THAT(OpenTierFile(directory).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(directory)));
}

}  // namespace
}  // namespace parasol
