#include "storage/remote_checkpoints.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_owner.h"
#include "storage/directory_ownership.h"
#include "storage/remote/testing/memory_files.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Fate = MemoryFiles::Fate;
using Request = MemoryFiles::Request;

constexpr char kRun[] = "s3://b/run";
constexpr int kShards = 2;

// Writes a checkpoint as a chief and its ps do. Its elements are `value`.
absl::Status WriteCheckpoint(
    int64_t step, float value, int max_to_keep = 0,
    absl::FunctionRef<absl::Status()> check = [] { return absl::OkStatus(); }) {
  ASSIGN_OR_RETURN(CheckpointStore store,
                   CheckpointStore::OpenForWriting(kRun));
  // The step becomes known when the shards have been asked.
  ASSIGN_OR_RETURN(std::string working, store.Begin(step - 1));
  working = CheckpointStore::WorkingAt(working, step);
  durable::CheckpointManifest manifest;
  manifest.set_run_id("run");
  manifest.set_global_step(step);
  auto& variable = *manifest.add_variable();
  variable.set_name("w");
  variable.mutable_shape()->Add(kShards);
  absl::Status status;
  for (int i = 0; i < kShards && status.ok(); ++i) {
    const std::string name = CheckpointStore::NameInWorking(
        working, absl::StrCat("shard-", i, ".sst"));
    const auto writer =
        ShardWriter::Create(CheckpointStore::PathInWorking(working, name));
    RETURN_IF_ERROR(writer.status());
    RETURN_IF_ERROR((*writer)->AddElements("w", 0, i, /*updates=*/1, {value}));
    const auto file = (*writer)->Finish();
    status = file.status();
    if (file.ok()) *manifest.add_file() = *file;
  }
  if (status.ok()) status = store.Commit(working, manifest, check);
  if (!status.ok()) {
    store.Abandon(working);
    return status;
  }
  const absl::Status pruned = store.Prune(max_to_keep, step);
  if (!pruned.ok()) LOG(WARNING) << pruned.message();
  return absl::OkStatus();
}

// Returns the value of the newest checkpoint that is whole; its two files must
// be of one attempt.
absl::StatusOr<float> NewestValue() {
  const CheckpointStore store(kRun);
  ASSIGN_OR_RETURN(const std::optional<int64_t> step, store.NewestComplete());
  if (!step.has_value()) return absl::NotFoundError("no checkpoint");
  RETURN_IF_ERROR(store.Verify(*step));
  ASSIGN_OR_RETURN(const auto reader,
                   CheckpointReader::Open(store.PathOf(*step)));
  std::vector<float> values(kShards);
  RETURN_IF_ERROR(
      reader->ReadElements("w", 0, 0, absl::MakeSpan(values)).status());
  if (values[0] != values[1]) return absl::DataLossError("of two attempts");
  return values[0];
}

std::vector<std::string> FilesOf(const MemoryFiles& files,
                                 absl::string_view start) {
  std::vector<std::string> found;
  for (const std::string& path : files.Paths()) {
    if (absl::StartsWith(path, start)) found.push_back(path);
  }
  return found;
}

TEST(RemoteCheckpointsTest, ACheckpointIsWrittenReadAndRemoved) {
  MemoryFiles files;
  EXPECT_THAT(CheckpointStore(kRun).ListSteps(), IsOkAndHolds(IsEmpty()));
  ASSERT_OK(WriteCheckpoint(1, 10));
  ASSERT_OK(WriteCheckpoint(2, 20, /*max_to_keep=*/2));
  ASSERT_OK(WriteCheckpoint(3, 30, 2));
  EXPECT_THAT(CheckpointStore(kRun).ListSteps(),
              IsOkAndHolds(ElementsAre(2, 3)));
  EXPECT_THAT(NewestValue(), IsOkAndHolds(30));
  EXPECT_THAT(files.Paths(), SizeIs(2 * (kShards + 1)));
  EXPECT_THAT(CheckpointStore(kRun).PathOf(3), "s3://b/run/ckpt-000000000003");
}

TEST(RemoteCheckpointsTest, OptionsOfAUriAreBehindEachName) {
  MemoryFiles files;
  const CheckpointStore store("s3://b/run?region=r");
  EXPECT_EQ(store.PathOf(7), "s3://b/run/ckpt-000000000007?region=r");
  const std::string working =
      "s3://b/run/.tmp-ckpt-000000000007-0123456789abcdef?region=r";
  EXPECT_EQ(CheckpointStore::PathInWorking(working, "x.sst"),
            "s3://b/run/ckpt-000000000007/x.sst?region=r");
  EXPECT_EQ(CheckpointStore::NameInWorking(working, "x.sst"),
            "x-0123456789abcdef.sst");
  EXPECT_EQ(CheckpointStore::WorkingAt(working, 9),
            "s3://b/run/.tmp-ckpt-000000000009-0123456789abcdef?region=r");
  EXPECT_EQ(CheckpointStore::PathInWorking("/d/.tmp-ckpt-1-2", "x.sst"),
            "/d/.tmp-ckpt-1-2/x.sst");
}

// At each request the process may end, or the request fail, with or without
// having been done: the newest whole checkpoint is the old one or the new one,
// and the next process leaves nothing of the attempt.
TEST(RemoteCheckpointsTest, AnEndAtAnyPointLeavesAWholeCheckpoint) {
  int points = 0;
  for (const Fate fate : {Fate::kDead, Fate::kRefused, Fate::kLost}) {
    for (const int64_t step : {2, 1}) {  // a new one, or one in its place
      bool was_reached = true;
      for (int at = 0; was_reached; ++at) {
        SCOPED_TRACE(absl::StrCat("fate ", static_cast<int>(fate), ", step ",
                                  step, ", request ", at));
        MemoryFiles files;
        ASSERT_OK(WriteCheckpoint(1, 10));
        int request = 0;
        was_reached = false;
        files.OnRequest([&](const Request&) {
          if (request++ != at) return Fate::kDone;
          was_reached = true;
          return fate;
        });
        const absl::Status written = WriteCheckpoint(step, 20, 5);
        files.OnRequest();
        const auto value = NewestValue();
        ASSERT_OK(value.status());
        EXPECT_TRUE(*value == 10 || *value == 20);
        if (written.ok()) {
          EXPECT_EQ(*value, 20);
        }
        ASSERT_OK(WriteCheckpoint(3, 30, 1));
        EXPECT_THAT(NewestValue(), IsOkAndHolds(30));
        EXPECT_THAT(files.Paths(), SizeIs(kShards + 1));
        ++points;
      }
    }
  }
  EXPECT_GT(points, 60);
}

TEST(RemoteCheckpointsTest, AManifestThatComesLateIsPassedOver) {
  MemoryFiles files;
  ASSERT_OK(WriteCheckpoint(1, 10));
  ASSERT_OK(WriteCheckpoint(2, 20));
  const std::string manifest = "s3://b/run/ckpt-000000000002/MANIFEST";
  ASSERT_OK_AND_ASSIGN(const std::string bytes, files.Read(manifest, 1 << 20));
  ASSERT_OK_AND_ASSIGN(StoredCheckpoints stored, StoredCheckpoints::Look(kRun));
  ASSERT_OK(stored.Remove({2}, [] { return absl::OkStatus(); }));
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));
  files.Put(manifest, bytes);
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));
  ASSERT_OK(WriteCheckpoint(3, 30, 1));
  EXPECT_THAT(files.Paths(), SizeIs(kShards + 1));
}

TEST(RemoteCheckpointsTest, AnOwnerThatHasLostTheDirectoryWritesNoManifest) {
  MemoryFiles files;
  ASSERT_OK(WriteCheckpoint(1, 10));
  int attempts = 0;
  files.OnRequest([&](const Request& request) {
    if (!absl::EndsWith(request.path, "MANIFEST")) return Fate::kDone;
    if (request.what != "write") return Fate::kDone;
    ++attempts;
    return Fate::kRefused;
  });
  // It stands still between two attempts.
  EXPECT_THAT(WriteCheckpoint(2, 20, 0,
                              [&] {
                                return attempts < 3
                                           ? absl::OkStatus()
                                           : absl::FailedPreconditionError(
                                                 "it belongs to another");
                              }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(attempts, 3);
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));
}

// It is cut off between its look and the removal: the next owner has begun.
TEST(RemoteCheckpointsTest, AnOwnerThatHasLostTheDirectoryRemovesNothing) {
  MemoryFiles files;
  ASSERT_OK(WriteCheckpoint(1, 10));
  ASSERT_OK(WriteCheckpoint(2, 20));
  const std::string rest = "s3://b/run/ckpt-000000000003/shard-0-ab.sst";
  files.Put(rest, "of an attempt");
  const std::string next = "s3://b/run/ckpt-000000000003/shard-0-cd.sst";
  const std::vector<std::string> before = files.Paths();
  const auto is_lost = [] {
    return absl::FailedPreconditionError("it belongs to another");
  };
  EXPECT_THAT(CheckpointStore::OpenForWriting(kRun, is_lost).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  CheckpointStore store(kRun);
  EXPECT_THAT(store.Prune(1, 2, {}, is_lost),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(files.Paths(), before);
  ASSERT_OK(files.Remove(rest));
  EXPECT_THAT(store.Prune(1, 2, {}, is_lost),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(NewestValue(), IsOkAndHolds(20));
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(1, 2)));
  // One that still owns it when it asks removes what it has seen before.
  files.Put(rest, "of an attempt");
  EXPECT_OK(store.Prune(0, 2, {}, [&] {
    files.Put(next, "of the next owner");
    return absl::OkStatus();
  }));
  EXPECT_FALSE(files.Has(rest));
  EXPECT_TRUE(files.Has(next));
}

// Names that read as a URI, as options or as another path, beside a file that
// such a name leads to.
TEST(RemoteCheckpointsTest, NamesOfObjectsLeadNowhereElse) {
  MemoryFiles files;
  ASSERT_OK(WriteCheckpoint(1, 10));
  const std::string folder = "s3://b/run/ckpt-000000000001/";
  const std::vector<std::string> strange = {"s3://victim/key",
                                            folder + "s3://victim/key",
                                            folder + "x?endpoint_override=evil",
                                            folder + "/s3://victim/key",
                                            folder + "/etc/passwd",
                                            folder + ".hidden"};
  for (const std::string& path : strange) files.Put(path, "x");
  files.Put(folder + "shard-0-ab.sst", "of an attempt");
  int requests = 0;
  files.OnRequest([&](const Request& request) {
    ++requests;
    EXPECT_TRUE(absl::StartsWith(request.path, kRun)) << request.path;
    EXPECT_FALSE(absl::StrContains(request.path, "?")) << request.path;
    return Fate::kDone;
  });
  ASSERT_OK(CheckpointStore::OpenForWriting(kRun));
  EXPECT_FALSE(files.Has(folder + "shard-0-ab.sst"));
  for (const std::string& path : strange) EXPECT_TRUE(files.Has(path)) << path;
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));
  EXPECT_GT(requests, 3);
  durable::CheckpointManifest manifest;
  manifest.add_file()->set_name("x?endpoint_override=evil");
  CheckpointStore store(kRun);
  ASSERT_OK_AND_ASSIGN(const std::string working, store.Begin(2));
  EXPECT_THAT(
      store.Commit(working, manifest),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("x?endpoint"), HasSubstr("not a plain"))));
}

TEST(RemoteCheckpointsTest, DamageIsNamedAndPassedOver) {
  MemoryFiles files;
  ASSERT_OK(WriteCheckpoint(1, 10));
  ASSERT_OK(WriteCheckpoint(2, 20));
  std::string file;
  for (const std::string& path : FilesOf(files,
                                         "s3://b/run/ckpt-000000000002/"
                                         "shard-1")) {
    file = path;
  }
  ASSERT_OK_AND_ASSIGN(const std::string bytes, files.Read(file, 1 << 20));
  const CheckpointStore store(kRun);

  std::string altered = bytes;
  altered[20] ^= 1;
  files.Put(file, altered);
  EXPECT_OK(store.CheckComplete(2));
  EXPECT_THAT(store.Verify(2),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(file)));

  files.Put(file, bytes.substr(1));
  EXPECT_THAT(store.CheckComplete(2),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(file), HasSubstr("should have"))));
  EXPECT_THAT(CheckpointReader::Open(store.PathOf(2)).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(file)));
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));

  ASSERT_OK(files.Remove(file));
  EXPECT_THAT(store.CheckComplete(2),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(file), HasSubstr("is missing"))));
  files.Put("s3://b/run/ckpt-000000000002/MANIFEST", "no manifest");
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));
}

TEST(RemoteCheckpointsTest, AStoreThatDoesNotAnswerIsNoDamage) {
  MemoryFiles files;
  ASSERT_OK(WriteCheckpoint(1, 10));
  ASSERT_OK(WriteCheckpoint(2, 20));
  files.OnRequest([](const Request& request) {
    return absl::StrContains(request.path, "ckpt-000000000002") ? Fate::kRefused
                                                                : Fate::kDone;
  });
  EXPECT_THAT(CheckpointStore(kRun).NewestComplete().status(),
              StatusIs(absl::StatusCode::kUnavailable));
  files.OnRequest([](const Request&) { return Fate::kRefused; });
  EXPECT_THAT(CheckpointStore(kRun).ListSteps().status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(CheckpointStore::OpenForWriting(kRun).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("checkpoint directory s3://b/run")));
}

TEST(RemoteCheckpointsTest, AnOpenReaderKeepsWhatItHas) {
  MemoryFiles files;
  ASSERT_OK(WriteCheckpoint(1, 10));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::Open(CheckpointStore(kRun).PathOf(1)));
  ASSERT_OK(WriteCheckpoint(2, 20, 1));
  std::vector<float> values(kShards);
  EXPECT_OK(reader->ReadElements("w", 0, 0, absl::MakeSpan(values)).status());
  EXPECT_THAT(values, Each(10));
  EXPECT_OK(reader->Verify());
}

// A clock on which waits take no time.
class HurriedClock : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Advance(timeout);
    return mu.AwaitWithTimeout(condition, absl::ZeroDuration());
  }
};

absl::StatusOr<std::unique_ptr<DirectoryOwnership>> Take(Clock& clock) {
  return DirectoryOwnership::Take({.directory = kRun,
                                   .job_name = "mnist",
                                   .lease = DirectoryOwnership::kLeaseInStore},
                                  clock);
}

TEST(RemoteOwnershipTest, TheOwnerIsNamedReleasedAndFollowed) {
  MemoryFiles files;
  SimulatedClock still;
  ASSERT_OK_AND_ASSIGN(auto first, Take(still));
  EXPECT_OK(first->Check());
  durable::PlaceEpoch place;
  place.set_index(3);
  place.set_place_epoch(7);
  ASSERT_OK(first->Record("run-a", {place}));
  const int64_t epoch = first->chief_epoch();
  first.reset();
  ASSERT_OK_AND_ASSIGN(const auto second, Take(still));
  EXPECT_EQ(second->chief_epoch(), epoch + 1);
  EXPECT_EQ(second->run_at_start(), "run-a");
  ASSERT_THAT(second->ps_at_start(), SizeIs(1));
  EXPECT_THAT(FilesOf(files, "s3://b/run/CHIEF/"), SizeIs(1));
}

TEST(RemoteOwnershipTest, OneThatStandsStillLosesItAfterALease) {
  MemoryFiles files;
  SimulatedClock still;
  ASSERT_OK_AND_ASSIGN(auto stopped, Take(still));
  HurriedClock clock;
  const absl::Time begin = clock.Now();
  ASSERT_OK_AND_ASSIGN(const auto successor, Take(clock));
  EXPECT_GE(clock.Now() - begin, DirectoryOwnership::kLeaseInStore);
  // What it still has under way when it goes on harms nobody.
  ASSERT_OK(
      files.Write("s3://b/run/CHIEF/000000000001-1-1-00000000", "its renewal"));
  EXPECT_THAT(stopped->Check(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(kRun), HasSubstr("touches"))));
  stopped.reset();
  EXPECT_OK(successor->Check());
}

TEST(RemoteOwnershipTest, OneThatRenewsIsLeftAlone) {
  MemoryFiles files;
  SimulatedClock still;
  ASSERT_OK_AND_ASSIGN(const auto owner, Take(still));
  ASSERT_OK_AND_ASSIGN(const OwnerSight sight, LookAtOwner(kRun));
  int looks = 0;
  files.OnRequest([&](const Request& request) {
    // It renews its lease between two looks.
    if (request.what == "list" && ++looks == 3) {
      files.OnRequest();
      EXPECT_OK(TouchOwner(kRun, *sight.owner));
    }
    return Fate::kDone;
  });
  HurriedClock clock;
  EXPECT_THAT(Take(clock).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(kRun), HasSubstr("job mnist"),
                             HasSubstr("which is alive"))));
  EXPECT_OK(owner->Check());
}

TEST(RemoteOwnershipTest, AFileThatWasRemovedIsWrittenAgain) {
  MemoryFiles files;
  SimulatedClock still;
  ASSERT_OK_AND_ASSIGN(const auto owner, Take(still));
  ASSERT_OK(files.RemoveFolder(kRun));
  EXPECT_OK(owner->Check());
  EXPECT_THAT(FilesOf(files, "s3://b/run/CHIEF/"), SizeIs(1));
}

// Two processes take a free directory. Whatever the one has done when the
// other does all of its part, one of them is the owner at most, and as long as
// both go on one of them is.
TEST(RemoteOwnershipTest, OfTwoThatTakeItAtOnceOneIsTheOwner) {
  bool was_reached = true;
  int points = 0;
  for (int at = 0; was_reached; ++at) {
    SCOPED_TRACE(absl::StrCat("request ", at));
    MemoryFiles files;
    HurriedClock other_clock;
    other_clock.Advance(absl::Milliseconds(1));  // as another process
    std::unique_ptr<DirectoryOwnership> other;
    int request = 0;
    was_reached = false;
    files.OnRequest([&](const Request&) {
      if (request++ != at) return Fate::kDone;
      was_reached = true;
      files.OnRequest();
      auto taken = Take(other_clock);
      if (taken.ok()) other = *std::move(taken);
      if (other != nullptr) other->StopRenewal();
      return Fate::kDone;
    });
    HurriedClock clock;
    const auto taken = Take(clock);
    files.OnRequest();
    const bool is_first = taken.ok() && (*taken)->Check().ok();
    const bool is_other = other != nullptr && other->Check().ok();
    EXPECT_FALSE(is_first && is_other);
    EXPECT_TRUE(is_first || is_other);
    if (taken.ok() && other != nullptr) {
      EXPECT_NE((*taken)->chief_epoch(), other->chief_epoch());
    }
    ++points;
  }
  EXPECT_GT(points, 5);
}

// Records a standby of place 0, as an owner whose run goes on does.
absl::Status RecordStandby(DirectoryOwnership& owner, uint64_t standby) {
  durable::PlaceEpoch place;
  place.set_standby(standby);
  return owner.RecordStandbys("run-a", {place});
}

uint64_t StandbyAtStart(const DirectoryOwnership& owner) {
  return owner.run_at_start() == "run-a" && owner.ps_at_start().size() == 1
             ? owner.ps_at_start()[0].standby()
             : 0;
}

// Has the process `other` take the directory until its request `at` has the
// fate, and its requests from then on as well if that is its end.
void TakeUntil(MemoryFiles& files, int at, Fate fate, bool& was_reached) {
  HurriedClock clock;
  clock.Advance(absl::Milliseconds(1));  // as another process
  int request = 0;
  files.OnRequest([&, here = std::this_thread::get_id()](const Request&) {
    if (std::this_thread::get_id() != here) return Fate::kDone;
    if (request++ != at) return Fate::kDone;
    was_reached = true;
    return fate;
  });
  {
    auto taken = Take(clock);
    if (taken.ok()) {
      (*taken)->StopRenewal();
      was_reached = false;  // it has had all requests
    }
    // It ends without a word.
    files.OnRequest([](const Request&) { return Fate::kDead; });
  }
  files.OnRequest();
}

// Of two that take a directory one fails or dies at each of its requests,
// whatever the other has done: the other, or whoever comes next, has the
// directory, keeps it, and knows what the owner before has recorded.
TEST(RemoteOwnershipTest, OneThatDiesWhileItTakesItLeavesNoTrace) {
  int points = 0;
  for (const Fate fate : {Fate::kDead, Fate::kRefused, Fate::kLost}) {
    bool was_reached_by_first = true;
    for (int at = 0; was_reached_by_first; at += fate == Fate::kDead ? 1 : 3) {
      bool was_reached = true;
      for (int other_at = 0; was_reached; ++other_at) {
        SCOPED_TRACE(absl::StrCat("fate ", static_cast<int>(fate), ", request ",
                                  at, " and ", other_at, " of the other"));
        MemoryFiles files;
        SimulatedClock still;
        {
          ASSERT_OK_AND_ASSIGN(const auto before, Take(still));
          ASSERT_OK(RecordStandby(*before, 7));
        }
        int request = 0;
        was_reached_by_first = false;
        was_reached = false;
        files.OnRequest([&, here = std::this_thread::get_id()](const Request&) {
          // Renewals are on another thread.
          if (std::this_thread::get_id() != here) return Fate::kDone;
          if (request++ != at) return Fate::kDone;
          was_reached_by_first = true;
          TakeUntil(files, other_at, fate, was_reached);
          return Fate::kDone;
        });
        HurriedClock clock;
        auto taken = Take(clock);
        files.OnRequest();
        // It has seen the other one at work.
        if (!taken.ok() || !(*taken)->Check().ok()) taken = Take(clock);
        ASSERT_OK(taken);
        EXPECT_EQ(StandbyAtStart(**taken), 7u);
        EXPECT_OK(RecordStandby(**taken, 9));
        // A request of the other one that comes late.
        files.Put(
            "s3://b/run/CHIEF/" + absl::StrFormat("%012d-999999999-9-0-claim",
                                                  (*taken)->chief_epoch()),
            "late");
        EXPECT_OK((*taken)->Check());
        while (FilesOf(files, "s3://b/run/CHIEF/").size() > 1) {
          std::this_thread::yield();  // it renews its lease
        }
        EXPECT_OK((*taken)->Check());
        (*taken)->StopRenewal();
        files.OnRequest([](const Request&) { return Fate::kDead; });
        taken->reset();
        files.OnRequest();
        HurriedClock next_clock;
        ASSERT_OK_AND_ASSIGN(const auto next, Take(next_clock));
        EXPECT_EQ(StandbyAtStart(*next), 9u);
        ++points;
      }
    }
  }
  EXPECT_GT(points, 80);
}

// The claim comes while the record is written: whoever has it may have read the
// record before.
TEST(RemoteOwnershipTest, ARecordThatTheNextOwnerMayNotHaveReadIsNone) {
  MemoryFiles files;
  SimulatedClock still;
  ASSERT_OK_AND_ASSIGN(auto owner, Take(still));
  owner->StopRenewal();
  ASSERT_OK(RecordStandby(*owner, 7));
  std::unique_ptr<DirectoryOwnership> next;
  files.OnRequest([&](const Request& request) {
    if (request.what != "write") return Fate::kDone;
    files.OnRequest();
    HurriedClock clock;
    auto taken = Take(clock);
    EXPECT_OK(taken);
    (*taken)->StopRenewal();
    next = *std::move(taken);
    return Fate::kDone;
  });
  EXPECT_THAT(RecordStandby(*owner, 9),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(StandbyAtStart(*next), 7u);
}

TEST(RemoteOwnershipTest, AClaimAloneLosesNothingThatIsRecorded) {
  MemoryFiles files;
  SimulatedClock still;
  ASSERT_OK_AND_ASSIGN(auto owner, Take(still));
  ASSERT_OK(RecordStandby(*owner, 7));
  const int64_t epoch = owner->chief_epoch();
  owner->StopRenewal();
  files.OnRequest([](const Request&) { return Fate::kDead; });
  owner.reset();
  files.OnRequest();
  // Two have died as they took it, and another owner stood still.
  for (const char* name : {"1-1-00000000-claim", "2-2-00000000-claim"}) {
    files.Put(absl::StrFormat("s3://b/run/CHIEF/%012d-%s", epoch + 1, name),
              "damaged");
  }
  files.Put(absl::StrFormat("s3://b/run/CHIEF/%012d-3-3-00000000-claim", epoch),
            "damaged");
  HurriedClock clock;
  const absl::Time begin = clock.Now();
  ASSERT_OK_AND_ASSIGN(const auto next, Take(clock));
  EXPECT_GE(clock.Now() - begin, DirectoryOwnership::kLeaseInStore);
  EXPECT_EQ(next->chief_epoch(), epoch + 2);
  EXPECT_EQ(StandbyAtStart(*next), 7u);
  EXPECT_THAT(FilesOf(files, "s3://b/run/CHIEF/"), SizeIs(1));
}

TEST(RemoteOwnershipTest, NamesThatNoOwnerHasAreRefusedOrPassedOver) {
  MemoryFiles files;
  files.Put("s3://b/run/CHIEF/000000000009?endpoint_override=evil-1", "x");
  files.Put("s3://b/run/CHIEF/9-s3://victim/key", "x");
  files.Put("s3://b/run/CHIEF//000000000009-1-1-00000000", "x");
  SimulatedClock still;
  ASSERT_OK_AND_ASSIGN(auto owner, Take(still));
  const std::string large =
      absl::StrCat("s3://b/run/CHIEF/", kMaxChiefEpoch, "-1-1-00000000");
  files.Put(large, "x");
  EXPECT_OK(owner->Check());
  owner.reset();
  EXPECT_THAT(
      Take(still).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(large), HasSubstr("chief_epoch 2147483647"))));
  EXPECT_THAT(FilesOf(files, "s3://b/run/CHIEF/"), SizeIs(5));
}

}  // namespace
}  // namespace parasol
