#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "storage/journal/journal_format.h"
#include "storage/journal/journal_reader.h"
#include "storage/journal/journal_writer.h"
#include "storage/shard_index.h"
#include "storage/testing/disk_faults.h"
#include "storage/testing/file_size_limit.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(
        ::testing::TempDir(), "/journal-",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_OK(RemoveTree(directory_));
  }

  static JournalOwner Owner() {
    return {.run_id = "run", .layout = 5, .shard = 1, .num_shards = 2};
  }
  static SegmentHeader First() {
    return {.owner = Owner(), .journal = 77, .segment = 1};
  }

  std::unique_ptr<JournalWriter> Write(const SegmentHeader& header,
                                       Kept kept = Kept::kWritten) {
    auto writer = JournalWriter::Create(directory_, header, kept);
    EXPECT_OK(writer.status());
    return *std::move(writer);
  }

  // What a reader finds, and how it ends.
  struct Found {
    std::vector<std::string> records;
    absl::Status status;
    absl::StatusOr<SegmentHeader> next;
  };
  Found Read(const std::optional<JournalPlace>& place = std::nullopt,
             Kept kept = Kept::kWritten) {
    Found found;
    auto reader = JournalReader::Open(directory_, Owner(), place);
    found.status = reader.status();
    if (!reader.ok()) return found;
    found.status = reader->Read(kept, [&](absl::string_view record) {
      found.records.emplace_back(record);
      return absl::OkStatus();
    });
    EXPECT_EQ(reader->records(), found.records.size());
    found.next = reader->GoOn(/*progress=*/3);
    return found;
  }

  std::string PathOf(uint64_t segment) const {
    return absl::StrCat(directory_, "/", SegmentName(segment));
  }
  std::string Bytes(uint64_t segment) const {
    std::ifstream file(PathOf(segment), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetBytes(uint64_t segment, absl::string_view bytes) const {
    ASSERT_OK(WriteFileDurably(PathOf(segment), bytes));
  }

  std::string directory_;
};

TEST_F(JournalTest, GivesTheRecordsBackInOrder) {
  const auto writer = Write(First());
  ASSERT_OK(writer->Append({"one ", "record"}));
  ASSERT_OK(writer->Append({}));
  ASSERT_OK(writer->Append({"", "three"}));
  const Found found = Read();
  EXPECT_OK(found.status);
  EXPECT_THAT(found.records, ElementsAre("one record", "", "three"));
}

TEST_F(JournalTest, ReadsFromAPlaceOn) {
  const auto writer = Write(First());
  ASSERT_OK(writer->Append({"a"}));
  EXPECT_THAT(writer->BeginSegment(9), IsOkAndHolds(2));
  ASSERT_OK(writer->Append({"b"}));
  EXPECT_THAT(writer->BeginSegment(12), IsOkAndHolds(3));
  ASSERT_OK(writer->Append({"c"}));
  EXPECT_THAT(Read().records, ElementsAre("a", "b", "c"));
  EXPECT_THAT(Read(JournalPlace{77, 2}).records, ElementsAre("b", "c"));
  writer->RemoveBefore(3);
  EXPECT_THAT(Read(JournalPlace{77, 3}).records, ElementsAre("c"));
  const Found gone = Read(JournalPlace{77, 2});
  EXPECT_THAT(gone.status, StatusIs(absl::StatusCode::kNotFound,
                                    HasSubstr("has no segment 2; the first one "
                                              "is 3")));
}

TEST_F(JournalTest, AnotherWriterGoesOnWhereTheFirstWasStopped) {
  const auto stopped = Write(First());
  ASSERT_OK(stopped->Append({"a"}));
  const Found found = Read();
  ASSERT_OK(found.next.status());
  const auto successor = Write(*found.next);
  ASSERT_OK(successor->Append({"b"}));
  // It was only stopped, and knows nothing of its successor.
  ASSERT_OK(stopped->Append({"late"}));
  ASSERT_OK(successor->Append({"c"}));
  EXPECT_THAT(Read().records, ElementsAre("a", "b", "c"));
}

TEST_F(JournalTest, WhoHasLostItsFenceAppendsNothing) {
  auto fence = JournalFence::Take(directory_);
  ASSERT_OK(fence.status());
  const auto writer = JournalWriter::Create(directory_, First(), Kept::kWritten,
                                            *std::move(fence));
  ASSERT_OK(writer.status());
  ASSERT_OK((*writer)->Append({"a"}));
  ASSERT_OK(JournalFence::Take(directory_).status());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT((*writer)->Append({"late"}),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("another process has taken this journal")));
  }
}

// Its successor makes the segment that it would make.
TEST_F(JournalTest, WhoHasLostItsFenceBeginsNoSegment) {
  auto fence = JournalFence::Take(directory_);
  ASSERT_OK(fence.status());
  const auto stopped = JournalWriter::Create(directory_, First(),
                                             Kept::kWritten, *std::move(fence));
  ASSERT_OK(stopped.status());
  ASSERT_OK((*stopped)->Append({"a"}));
  ASSERT_OK(JournalFence::Take(directory_).status());
  const Found found = Read();
  ASSERT_OK(found.next.status());
  EXPECT_THAT((*stopped)->BeginSegment(1).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("another process has taken this journal")));
  ASSERT_OK(Write(*found.next)->Append({"b"}));
  EXPECT_THAT(Read().records, ElementsAre("a", "b"));
}

// It may have been stopped behind that question.
TEST_F(JournalTest, ASegmentThatAStoppedOneHasBegunIsReadByTheNext) {
  ASSERT_OK(Write(First())->Append({"a"}));
  const Found found = Read();
  ASSERT_OK(found.next.status());
  EXPECT_NE(Write(*found.next), nullptr);
  const auto second =
      JournalWriter::Create(directory_, *found.next, Kept::kWritten);
  EXPECT_THAT(second.status(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("begun this segment")));
  const Found again = Read();
  ASSERT_OK(again.next.status());
  ASSERT_OK(Write(*again.next)->Append({"b"}));
  EXPECT_THAT(Read().records, ElementsAre("a", "b"));
}

TEST_F(JournalTest, WhoHasLostItsFenceMeanwhileAcknowledgesNothing) {
  auto fence = JournalFence::Take(directory_);
  ASSERT_OK(fence.status());
  const auto writer = JournalWriter::Create(directory_, First(), Kept::kOnDisk,
                                            *std::move(fence));
  ASSERT_OK(writer.status());
  ASSERT_OK((*writer)->Append({"a"}));
  ASSERT_OK((*writer)->Flush());
  ASSERT_OK((*writer)->Append({"b"}));
  ASSERT_OK(JournalFence::Take(directory_).status());
  absl::Notification told;
  (*writer)->WhenKept([&](const absl::Status& status) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("another process has taken this journal")));
    told.Notify();
  });
  told.WaitForNotification();
  EXPECT_THAT((*writer)->Flush(), StatusIs(absl::StatusCode::kUnavailable));
}

// The writer's thread is busy meanwhile: whoever flushes calls.
TEST_F(JournalTest, AFlushOfABrokenJournalCallsThoseThatWait) {
  auto fence = JournalFence::Take(directory_);
  ASSERT_OK(fence.status());
  const auto writer = JournalWriter::Create(directory_, First(), Kept::kOnDisk,
                                            *std::move(fence));
  ASSERT_OK(writer.status());
  absl::Notification is_busy, may_go_on;
  ASSERT_OK((*writer)->Append({"a"}));
  (*writer)->WhenKept([&](const absl::Status& status) {
    EXPECT_OK(status);
    is_busy.Notify();
    may_go_on.WaitForNotification();
  });
  is_busy.WaitForNotification();
  ASSERT_OK((*writer)->Append({"b"}));
  absl::Status told;
  (*writer)->WhenKept([&](const absl::Status& status) { told = status; });
  ASSERT_OK(told);
  ASSERT_OK(JournalFence::Take(directory_).status());
  EXPECT_FALSE((*writer)->Append({"late"}).ok());
  EXPECT_THAT((*writer)->Flush(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(told,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("another process has taken this journal")));
  may_go_on.Notify();
}

// A disk without room says so when files are synced.
TEST_F(JournalTest, WhatIsReadIsOnTheDiskOrReadAgain) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"a"}));
    ASSERT_OK(writer->Append({"b"}));
    ASSERT_OK(writer->Append({"c"}));
  }
  const std::string path =
      std::filesystem::canonical(directory_).string() + "/" + SegmentName(1);
  const std::string whole = Bytes(1);
  std::string damaged = whole;
  damaged[whole.size() - RecordHeader::kBytes - 2] ^= 1;
  for (const std::string& bytes : {whole, damaged}) {
    SetBytes(1, bytes);
    for (const int code : {ENOSPC, EDQUOT, EIO}) {
      FailFsyncOf(path, code);
      EXPECT_THAT(
          Read(std::nullopt, Kept::kOnDisk).status,
          StatusIs(absl::StatusCode::kUnavailable, HasSubstr("fdatasync")));
      // Nothing is synced there.
      EXPECT_NE(Read().status.code(), absl::StatusCode::kUnavailable);
      FailFsyncOf("");
    }
  }
  const Found found = Read(std::nullopt, Kept::kOnDisk);
  EXPECT_THAT(found.status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(found.records, ElementsAre("a"));
  // A record that whoever reads refuses is damage, too.
  SetBytes(1, whole);
  auto reader = JournalReader::Open(directory_, Owner(), std::nullopt);
  ASSERT_OK(reader.status());
  FailFsyncOf(path, ENOSPC);
  EXPECT_THAT(reader->Read(Kept::kOnDisk,
                           [](absl::string_view record) {
                             return record == "a" ? absl::OkStatus()
                                                  : absl::DataLossError("b");
                           }),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(reader->records(), 1u);
  FailFsyncOf("");
}

TEST_F(JournalTest, ADamagedHeadBeforeRecordsIsALoss) {
  const auto writer = Write(First());
  ASSERT_OK(writer->Append({"a"}));
  ASSERT_OK(writer->BeginSegment(1).status());
  ASSERT_OK(writer->Append({"b"}));
  std::string bytes = Bytes(2);
  bytes[20] ^= 1;
  SetBytes(2, bytes);
  const Found found = Read();
  EXPECT_THAT(found.records, ElementsAre("a"));
  EXPECT_THAT(found.status, StatusIs(absl::StatusCode::kDataLoss,
                                     HasSubstr("segment-000000000002")));
}

TEST_F(JournalTest, ARecordThatWasCutOffIsLeftOut) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"first"}));
    ASSERT_OK(writer->Append({"second"}));
  }
  const std::string whole = Bytes(1);
  const size_t second = whole.size() - RecordHeader::kBytes - 6;
  for (size_t size = second; size < whole.size(); ++size) {
    SetBytes(1, whole.substr(0, size));
    const Found found = Read();
    EXPECT_OK(found.status) << size;
    EXPECT_THAT(found.records, ElementsAre("first")) << size;
    ASSERT_OK(found.next.status());
    EXPECT_EQ(found.next->bytes_before, second);
    EXPECT_EQ(found.next->first_record, 2);
  }
}

TEST_F(JournalTest, EveryFlippedBitIsFound) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"first"}));
    ASSERT_OK(writer->Append({"second"}));
  }
  const std::string whole = Bytes(1);
  const size_t second = whole.size() - RecordHeader::kBytes - 6;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    SetBytes(1, damaged);
    const Found found = Read();
    EXPECT_THAT(found.status.code(),
                testing::AnyOf(absl::StatusCode::kDataLoss,
                               absl::StatusCode::kFailedPrecondition))
        << "bit " << bit;
    EXPECT_LE(found.records.size(), bit / 8 < second ? 0u : 1u) << bit;
  }
}

TEST_F(JournalTest, ALossOfPowerMayLeaveAnythingOfTheLastRecord) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"first"}));
    ASSERT_OK(writer->Append({"second"}));
  }
  std::string bytes = Bytes(1);
  bytes.back() = 'x';
  SetBytes(1, bytes);
  EXPECT_THAT(Read().status, StatusIs(absl::StatusCode::kDataLoss));
  const Found found = Read(std::nullopt, Kept::kOnDisk);
  EXPECT_OK(found.status);
  EXPECT_THAT(found.records, ElementsAre("first"));
}

TEST_F(JournalTest, DamageBeforeAWholeRecordIsNoEnd) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"first"}));
    ASSERT_OK(writer->Append({"second"}));
    ASSERT_OK(writer->Append({"third"}));
  }
  std::string bytes = Bytes(1);
  bytes[bytes.size() - 2 * RecordHeader::kBytes - 11] ^= 1;
  SetBytes(1, bytes);
  const Found found = Read(std::nullopt, Kept::kOnDisk);
  EXPECT_THAT(found.status, StatusIs(absl::StatusCode::kDataLoss,
                                     HasSubstr("a damaged record at byte")));
  EXPECT_THAT(found.records, ElementsAre("first"));
}

TEST_F(JournalTest, GoesOnBehindDamage) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"a"}));
    ASSERT_OK(writer->BeginSegment(1).status());
    ASSERT_OK(writer->Append({"b"}));
    ASSERT_OK(writer->BeginSegment(1).status());
    ASSERT_OK(writer->Append({"c"}));
  }
  std::string bytes = Bytes(2);
  bytes.back() ^= 1;
  SetBytes(2, bytes);
  const Found found = Read();
  EXPECT_THAT(found.status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(found.records, ElementsAre("a"));
  ASSERT_OK(found.next.status());
  const auto writer = Write(*found.next);
  ASSERT_OK(writer->Append({"d"}));
  const Found again = Read();
  EXPECT_OK(again.status);
  EXPECT_THAT(again.records, ElementsAre("a", "d"));
}

TEST_F(JournalTest, AMissingSegmentIsFound) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"a"}));
    ASSERT_OK(writer->BeginSegment(1).status());
    ASSERT_OK(writer->Append({"b"}));
    ASSERT_OK(writer->BeginSegment(1).status());
  }
  ASSERT_EQ(unlink(PathOf(2).c_str()), 0);
  const Found found = Read();
  EXPECT_THAT(found.status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(found.records, ElementsAre("a"));
}

TEST_F(JournalTest, ASegmentThatWasJustBegunHasNothing) {
  {
    const auto writer = Write(First());
    ASSERT_OK(writer->Append({"a"}));
  }
  SetBytes(2, "PARA");
  const Found found = Read();
  EXPECT_OK(found.status);
  EXPECT_THAT(found.records, ElementsAre("a"));
  ASSERT_OK(found.next.status());
  EXPECT_EQ(found.next->segment, 2);
  ASSERT_OK(Write(*found.next)->Append({"b"}));
  EXPECT_THAT(Read().records, ElementsAre("a", "b"));
}

TEST_F(JournalTest, WhoDoesNotReadItLearnsWhetherItHasRecords) {
  const auto has = [this](uint64_t journal, uint64_t segment) {
    return JournalReader::HasRecordsBehind(directory_, {journal, segment});
  };
  EXPECT_THAT(has(77, 1), IsOkAndHolds(false)) << "there is none";
  auto writer = Write(First());
  EXPECT_THAT(has(77, 1), IsOkAndHolds(false));
  ASSERT_OK(writer->Append({"a"}));
  EXPECT_THAT(has(77, 1), IsOkAndHolds(true));
  EXPECT_THAT(has(78, 1), IsOkAndHolds(false)) << "another journal";
  ASSERT_OK(writer->BeginSegment(3).status());
  EXPECT_THAT(has(77, 2), IsOkAndHolds(false)) << "a checkpoint follows";
  ASSERT_OK(writer->Append({"b"}));
  EXPECT_THAT(has(77, 2), IsOkAndHolds(true));
  EXPECT_THAT(has(77, 3), IsOkAndHolds(false));
}

TEST_F(JournalTest, RecordsOfAProcessThatWasReplacedDoNotCount) {
  const auto has = [this](uint64_t segment) {
    return JournalReader::HasRecordsBehind(directory_, {77, segment});
  };
  auto replaced = Write(First());
  const Found found = Read();
  ASSERT_OK(found.next.status());
  const auto writer = Write(*found.next);
  ASSERT_OK(replaced->Append({"late"}));
  EXPECT_THAT(has(1), IsOkAndHolds(false));
  ASSERT_OK(writer->Append({"a"}));
  EXPECT_THAT(has(1), IsOkAndHolds(true));
}

// Segment 3 says how long segment 2 was, not segment 1.
TEST_F(JournalTest, ASegmentThatIsDamagedHidesNoRecordsBeforeIt) {
  auto writer = Write(First());
  ASSERT_OK(writer->Append({"a"}));
  ASSERT_OK(writer->BeginSegment(3).status());
  ASSERT_OK(writer->BeginSegment(4).status());
  SetBytes(2, "PARA");
  EXPECT_THAT(JournalReader::HasRecordsBehind(directory_, {77, 1}),
              IsOkAndHolds(true));
  EXPECT_THAT(JournalReader::HasRecordsBehind(directory_, {77, 2}),
              IsOkAndHolds(false));
}

TEST_F(JournalTest, OthersJournalsAreNotRead) {
  Write(First());
  EXPECT_THAT(Read(JournalPlace{78, 1}).status,
              StatusIs(absl::StatusCode::kNotFound));
  JournalOwner other = Owner();
  other.layout = 6;
  EXPECT_THAT(JournalReader::Open(directory_, other, std::nullopt).status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(
      JournalReader::Open("/no/such/directory", Owner(), std::nullopt).status(),
      StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(JournalTest, CallsBackWhenTheDiskHasTheRecord) {
  const auto writer = Write(First(), Kept::kOnDisk);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(writer->Append({absl::StrCat(i)}));
    absl::Notification kept;
    writer->WhenKept([&](const absl::Status& status) {
      EXPECT_OK(status);
      kept.Notify();
    });
    kept.WaitForNotification();
  }
  EXPECT_EQ(Read(std::nullopt, Kept::kOnDisk).records.size(), 20);
}

// The system tells of the error once, and takes what it could not write for
// written afterwards.
TEST_F(JournalTest, WhatADiskHasRefusedOnceIsNeverAcknowledged) {
  for (const bool at_a_cut : {false, true}) {
    SCOPED_TRACE(at_a_cut);
    ASSERT_OK(RemoveTree(directory_));
    const auto writer = Write(First(), Kept::kOnDisk);
    ASSERT_OK(writer->Append({"a"}));
    ASSERT_OK(writer->Flush());
    ASSERT_OK(writer->Append({"b"}));
    FailFsyncOf(std::filesystem::canonical(directory_).string() + "*");
    if (at_a_cut) {
      ASSERT_OK(writer->BeginSegment(2).status());
    }
    EXPECT_THAT(writer->Flush(), StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("fdatasync")));
    FailFsyncOf("");
    EXPECT_THAT(writer->Flush(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(writer->Append({"c"}),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("until this ps is started again")));
    absl::Notification told;
    writer->WhenKept([&](const absl::Status& status) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
      told.Notify();
    });
    told.WaitForNotification();
  }
}

TEST_F(JournalTest, TheNamesOfItsDirectoriesAreOnTheDisk) {
  const std::string path =
      std::filesystem::canonical(::testing::TempDir()).string() + "/of_names";
  ASSERT_OK(MakeDirectories(path));
  const std::string directory = path + "/journal/shard";
  for (const std::string& synced : {path, path + "/journal", directory}) {
    SCOPED_TRACE(synced);
    for (const bool is_there : {false, true}) {
      // What an attempt before has left.
      ASSERT_OK(RemoveTree(is_there ? directory : path + "/journal"));
      FailFsyncOf(synced);
      EXPECT_THAT(
          JournalWriter::Create(directory, First(), Kept::kOnDisk).status(),
          StatusIs(absl::StatusCode::kUnavailable, HasSubstr(synced)));
      FailFsyncOf("");
    }
  }
}

TEST_F(JournalTest, ClosesWithoutLeavingAnyoneWaiting) {
  const auto writer = Write(First(), Kept::kOnDisk);
  int answers = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(writer->Append({"a"}));
    writer->WhenKept([&answers](const absl::Status&) { ++answers; });
  }
  writer->Close();
  EXPECT_EQ(answers, 100);
  EXPECT_THAT(writer->Append({"b"}), StatusIs(absl::StatusCode::kUnavailable));
  writer->WhenKept([&answers](const absl::Status& status) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    ++answers;
  });
  EXPECT_EQ(answers, 101);
  // They are there all the same, and may be acknowledged to a resend.
  EXPECT_EQ(Read(std::nullopt, Kept::kOnDisk).records.size(), 100);
}

TEST_F(JournalTest, WithoutRoomNothingIsAppended) {
  const auto writer = Write(First());
  ASSERT_OK(writer->Append({"a"}));
  FileSizeLimit limit(Bytes(1).size() + 40);
  const absl::Status full = writer->Append({std::string(1000, 'x')});
  limit.Lift();
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kUnavailable,
                             HasSubstr("pushes wait until")));
  ASSERT_OK(writer->Append({"b"}));
  EXPECT_THAT(Read().records, ElementsAre("a", "b"));
}

TEST_F(JournalTest, NamesOfSegments) {
  EXPECT_EQ(SegmentName(12), "segment-000000000012");
  EXPECT_EQ(SegmentOfName("segment-000000000012"), 12);
  EXPECT_EQ(SegmentOfName("segment-12"), std::nullopt);
  EXPECT_EQ(SegmentOfName("unread-segment-000000000012"), std::nullopt);
}

}  // namespace
}  // namespace parasol
