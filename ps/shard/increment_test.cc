// Snapshots of what has changed: what a reader puts together of a whole file
// and its increments is the shard at the newest cut, whatever failed before.
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/snapshot_bases.h"
#include "ps/testing/parameter_server_fixture.h"
#include "ps/testing/requests.h"
#include "ps/testing/synchronous_shard.h"
#include "ps/testing/table_order.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/shard_file.h"

namespace parasol {
namespace {

using namespace parameter_server_testing;  // NOLINT
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kIds = 300;

// Checkpoints of one ps, as a chief has them written.
class IncrementTest : public testing::Test {
 protected:
  explicit IncrementTest(wire::LoadRequest order = TableOrder())
      : order_(std::move(order)) {
    ps_.server.Registered(kChief, directory_);
    EXPECT_OK(ps_.server.Load(order_));
  }

  // What a snapshot is compared to: the newest complete checkpoint.
  std::string Since() const {
    if (committed_.file().empty()) return "";
    return absl::StrCat(CheckpointName(committed_.global_step()), "/",
                        committed_.file().rbegin()->name());
  }

  // Has the ps write a snapshot, and commits it unless the checkpoint is to
  // fail. Returns whether it is an increment.
  absl::StatusOr<bool> Save(bool is_committed = true) {
    return SaveSince(Since(), is_committed);
  }
  absl::StatusOr<bool> SaveSince(const std::string& since,
                                 bool is_committed = true) {
    ++step_;
    ASSIGN_OR_RETURN(const std::string working, store_.Begin(step_));
    wire::SnapshotRequest request;
    request.set_run_id("run-a");
    *request.mutable_order() = OrderHeader();
    request.set_directory(working);
    request.set_file_name(absl::StrCat("shard.", step_, ".sst"));
    request.set_since(since);
    ASSIGN_OR_RETURN(const auto response, ps_.server.Snapshot(request));
    bytes_ = response.bytes();
    durable::CheckpointManifest manifest = ManifestOf(order_);
    manifest.set_global_step(step_);
    if (response.is_increment()) {
      *manifest.mutable_file() = committed_.file();
      for (const durable::CheckpointFile& file : committed_.file()) {
        RETURN_IF_ERROR(
            Link(absl::StrCat(store_.PathOf(committed_.global_step()), "/",
                              file.name()),
                 absl::StrCat(working, "/", file.name())));
      }
    }
    durable::CheckpointFile& file = *manifest.add_file();
    file.set_name(request.file_name());
    file.set_bytes(response.bytes());
    file.set_crc32c(response.crc32c());
    file.set_increment(manifest.file_size() - 1);
    if (!is_committed) {
      store_.Abandon(working);
      return response.is_increment();
    }
    RETURN_IF_ERROR(store_.Commit(working, manifest));
    committed_ = manifest;
    return response.is_increment();
  }

  static void PushChunk(Ps& ps, uint64_t sequence, int chunk) {
    wire::RequestHeader request = PushRequest(sequence);
    const int64_t count = chunk < 2 ? kChunk : 9;
    *request.mutable_operation(0)->mutable_push() =
        MakePush(sequence, {MakeRange(0, chunk * kChunk, count)});
    const std::string bytes = Floats(count, .5);
    EXPECT_OK(Execute(ps, request, {ViewOf(bytes)}));
  }
  static absl::StatusOr<OperationResult> PushRows(
      Ps& ps, uint64_t sequence, const std::vector<uint64_t>& ids) {
    wire::RequestHeader request = PushRequest(sequence);
    wire::RowPush push;
    push.set_sequence(sequence);
    push.set_rows(ids.size());
    *request.mutable_operation(0) = OperationOf(push);
    const std::string id_bytes = IdBytes(ids),
                      rows = Floats(ids.size() * kWidth, .25);
    return Execute(ps, request, {ViewOf(id_bytes), ViewOf(rows)});
  }
  static std::vector<float> PullRows(Ps& ps, const std::vector<uint64_t>& ids) {
    wire::RequestHeader request = PullRequest();
    wire::RowPull pull;
    pull.set_rows(ids.size());
    *request.mutable_operation(0) = OperationOf(pull);
    const std::string id_bytes = IdBytes(ids);
    const auto result = Execute(ps, request, {ViewOf(id_bytes)});
    EXPECT_OK(result);
    return result.ok() ? FloatsOf(result->payloads) : std::vector<float>();
  }

  // Compares the ps with what another one restores from the newest checkpoint,
  // now and behind one more push, which makes slots differ.
  void ExpectRestored(const std::vector<uint64_t>& ids) {
    Ps other;
    other.server.Registered(kChief, directory_);
    ASSERT_OK(other.server.Load(From(order_, store_.PathOf(step_))));
    EXPECT_EQ(Values(other), Values(ps_));
    EXPECT_EQ(PullRows(other, ids), PullRows(ps_, ids));
    // What it has applied it does not apply again.
    EXPECT_TRUE(IsDuplicate(PushRows(other, sequence_, ids)));
    ++sequence_;
    for (Ps* const ps : {&ps_, &other})
      EXPECT_OK(PushRows(*ps, sequence_, ids));
    ++sequence_;
    for (Ps* const ps : {&ps_, &other}) EXPECT_OK(Push(*ps, sequence_, .5));
    EXPECT_EQ(Values(other), Values(ps_));
    EXPECT_EQ(PullRows(other, ids), PullRows(ps_, ids));
  }

  const std::string directory_ = absl::StrCat(
      testing::TempDir(), "/increment_test_",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  CheckpointStore store_ = [this] {
    std::filesystem::remove_all(directory_);
    return *CheckpointStore::OpenForWriting(directory_);
  }();
  const wire::LoadRequest order_;
  Ps ps_;
  int64_t step_ = 0;
  uint64_t bytes_ = 0;  // of the newest file
  uint64_t sequence_ = 0;
  durable::CheckpointManifest committed_;
};

TEST_F(IncrementTest, AnIncrementHasChangedChunksAndRowsAndAllWindows) {
  ASSERT_OK(PushRows(ps_, ++sequence_, {1, 2, 3}));
  // Nothing is marked before somebody asks for changes.
  EXPECT_THAT(Save(), IsOkAndHolds(false));
  EXPECT_THAT(Save(), IsOkAndHolds(false));
  const uint64_t whole = bytes_;
  PushChunk(ps_, ++sequence_, 1);
  ASSERT_OK(PushRows(ps_, ++sequence_, {2, 4}));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  EXPECT_LT(bytes_, whole * 6 / 10);
  const auto file = ShardFile::Open(store_.PathOf(step_), committed_.file(1));
  ASSERT_OK(file);
  for (const ShardIndex::Extent& extent : (*file)->index().extents) {
    EXPECT_EQ(extent.key.first, kChunk);
  }
  EXPECT_EQ((*file)->index().extents.size(), 2u);  // value and slot
  std::vector<uint64_t> ids;
  ASSERT_OK(
      (*file)->ReadRows((*file)->index().tables[0], [&](const RowBatch& batch) {
        ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
        return absl::OkStatus();
      }));
  EXPECT_THAT(ids, ElementsAre(2, 4));
  ExpectRestored({1, 2, 3, 4});
}

TEST_F(IncrementTest, WithoutChangesAnIncrementIsSmall) {
  ASSERT_OK(Push(ps_, ++sequence_, 1));
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  ASSERT_OK(PushRows(ps_, ++sequence_, {1}));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  EXPECT_LT(bytes_, 4096u);
  ExpectRestored({1});
}

TEST_F(IncrementTest, OfAFailedCheckpointNothingIsLost) {
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  PushChunk(ps_, ++sequence_, 0);
  ASSERT_OK(PushRows(ps_, ++sequence_, {1}));
  EXPECT_THAT(Save(/*is_committed=*/false), IsOkAndHolds(true));
  PushChunk(ps_, ++sequence_, 2);
  ASSERT_OK(PushRows(ps_, ++sequence_, {2}));
  EXPECT_THAT(Save(/*is_committed=*/false), IsOkAndHolds(true));
  ASSERT_OK(PushRows(ps_, ++sequence_, {3}));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  ExpectRestored({1, 2, 3});
}

TEST_F(IncrementTest, AFileThatWasNotWrittenIsNoBase) {
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  ASSERT_OK(PushRows(ps_, ++sequence_, {1}));
  // The name is taken, so the snapshot is taken and the file is not written.
  wire::SnapshotRequest request;
  request.set_run_id("run-a");
  *request.mutable_order() = OrderHeader();
  request.set_directory(*store_.Begin(99));
  request.set_file_name("shard.sst");
  request.set_since(Since());
  ASSERT_OK(WriteFileDurably(request.directory() + "/shard.sst", "x"));
  EXPECT_FALSE(ps_.server.Snapshot(request).ok());
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  ExpectRestored({1});
}

TEST_F(IncrementTest, SinceACheckpointThatItDoesNotKnowAShardWritesAll) {
  ASSERT_OK(Save());
  const std::string first = Since();
  ASSERT_OK(Save());
  const std::string second = Since();
  ASSERT_OK(Save());
  ASSERT_OK(Save());
  // An older one, of which the marks are gone; another file's; one that is not
  // there.
  EXPECT_THAT(SaveSince(first, false), IsOkAndHolds(false));
  EXPECT_THAT(SaveSince(second, false), IsOkAndHolds(false));
  EXPECT_THAT(SaveSince("ckpt-000000000001/other.sst", false),
              IsOkAndHolds(false));
  EXPECT_THAT(SaveSince("ckpt-000000000077/shard.1.sst", false),
              IsOkAndHolds(false));
}

// A whole snapshot begins the marks anew, whatever becomes of its checkpoint.
TEST_F(IncrementTest, BehindAWholeSnapshotThatFailedAShardWritesAll) {
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  ASSERT_OK(PushRows(ps_, ++sequence_, {1, 2}));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  EXPECT_THAT(SaveSince("", /*is_committed=*/false), IsOkAndHolds(false));
  ASSERT_OK(PushRows(ps_, ++sequence_, {3}));
  EXPECT_THAT(Save(), IsOkAndHolds(false));
  ASSERT_OK(PushRows(ps_, ++sequence_, {4}));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  ExpectRestored({1, 2, 3, 4});
}

TEST_F(IncrementTest, BehindAWholeSnapshotThatWasNotWrittenAShardWritesAll) {
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  ASSERT_OK(PushRows(ps_, ++sequence_, {1, 2}));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
  ASSERT_OK(PushRows(ps_, ++sequence_, {3}));
  wire::SnapshotRequest request;
  request.set_run_id("run-a");
  *request.mutable_order() = OrderHeader();
  request.set_directory(directory_ +
                        "/.tmp-ckpt-000000000009-0123456789abcdef");
  request.set_file_name("shard.sst");
  EXPECT_THAT(ps_.server.Snapshot(request),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("shard.sst")));
  // The file of the last checkpoint is known, but not what has changed since.
  EXPECT_THAT(Save(), IsOkAndHolds(false));
  ExpectRestored({1, 2, 3});
}

TEST_F(IncrementTest, AFileOfThatNameFromAnotherIsNoBase) {
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  // Another owner of the directory has replaced the checkpoint.
  durable::CheckpointManifest manifest = committed_;
  manifest.mutable_file(0)->set_crc32c(manifest.file(0).crc32c() + 1);
  manifest.set_format_version(2);
  ASSERT_OK(WriteFileDurably(store_.PathOf(step_) + "/MANIFEST",
                             EncodeManifest(manifest)));
  EXPECT_THAT(Save(false), IsOkAndHolds(false));
}

TEST_F(IncrementTest, ACheckpointOfAnotherRunIsNoBase) {
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  durable::CheckpointManifest manifest = committed_;
  manifest.set_run_id("run-b");
  manifest.set_format_version(2);
  ASSERT_OK(WriteFileDurably(store_.PathOf(step_) + "/MANIFEST",
                             EncodeManifest(manifest)));
  EXPECT_THAT(Save(false), IsOkAndHolds(false));
}

TEST_F(IncrementTest, ARestoredShardWritesAllAndThenIncrements) {
  for (int i = 0; i < 3; ++i) ASSERT_OK(Save());
  Ps other;
  other.server.Registered(kChief, directory_);
  ASSERT_OK(other.server.Load(From(order_, store_.PathOf(step_))));
  wire::SnapshotRequest request;
  request.set_run_id("run-a");
  *request.mutable_order() = OrderHeader();
  request.set_directory(*store_.Begin(99));
  request.set_file_name("shard.sst");
  request.set_since(Since());
  const auto response = other.server.Snapshot(request);
  ASSERT_OK(response);
  EXPECT_FALSE(response->is_increment());
}

TEST_F(IncrementTest, WhatIsNoFileOfACheckpointIsRefused) {
  for (const char* since :
       {"shard.sst", "ckpt-1/../shard.sst", "/ckpt-1/a", "ckpt-000000000001/",
        "ckpt-000000000001/.a", "run/shard.sst"}) {
    EXPECT_THAT(SaveSince(since, false),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is no file of a checkpoint")))
        << since;
  }
}

TEST_F(IncrementTest, AnyOrderOfPushesFailuresAndCheckpointsIsRestored) {
  std::mt19937_64 random(5);
  int increments = 0;
  std::map<uint64_t, bool> touched;
  for (int round = 0; round < 25; ++round) {
    for (uint64_t i = random() % 4; i > 0; --i) {
      if (random() % 2 == 0) {
        PushChunk(ps_, ++sequence_, static_cast<int>(random() % 3));
        continue;
      }
      std::vector<uint64_t> ids(1 + random() % 9);
      for (uint64_t& id : ids) touched[id = random() % kIds] = true;
      ASSERT_OK(PushRows(ps_, ++sequence_, ids));
    }
    const bool is_committed = random() % 3 != 0;
    // A chief begins a new chain now and then.
    const bool is_whole = random() % 5 == 0;
    ASSERT_OK_AND_ASSIGN(const bool is_increment,
                         SaveSince(is_whole ? "" : Since(), is_committed));
    EXPECT_FALSE(is_whole && is_increment);
    increments += is_increment;
    if (!is_committed) continue;
    std::vector<uint64_t> ids = {0};
    for (const auto& [id, unused] : touched) ids.push_back(id);
    touched[0] = true;
    ASSERT_OK(PushRows(ps_, ++sequence_, ids));
    ASSERT_OK_AND_ASSIGN(const bool last, Save());
    increments += last;
    ExpectRestored(ids);
  }
  EXPECT_GT(increments, 20);
}

// A row of its table goes when two pushes have not touched it.
class IncrementEvictionTest : public IncrementTest {
 protected:
  IncrementEvictionTest() : IncrementTest(ForgetfulOrder()) {}

 private:
  static wire::LoadRequest ForgetfulOrder() {
    wire::LoadRequest order = TableOrder();
    order.mutable_table(0)->mutable_eviction()->set_idle_steps(1);
    return order;
  }
};

TEST_F(IncrementEvictionTest, WhereManyRowsHaveGoneAShardWritesAll) {
  std::vector<uint64_t> ids;
  for (uint64_t i = 1; i <= 9000; ++i) ids.push_back(RowIdOf(i));  // a stripe's
  ASSERT_OK(PushRows(ps_, ++sequence_, ids));
  for (int i = 0; i < 2; ++i) ASSERT_OK(Save());
  for (int i = 0; i < 2; ++i) ASSERT_OK(PushRows(ps_, ++sequence_, {ids[0]}));
  EXPECT_THAT(Save(), IsOkAndHolds(false));
  EXPECT_THAT(Save(), IsOkAndHolds(true));
}

// Synchronous training: increments are cut at one step.
TEST(IncrementStepTest, AnIncrementIsCutAtItsStep) {
  SynchronousShard shard(1, 1);
  SimulatedClock clock;
  const auto never = [] { return false; };
  shard.Push(0, 0, {.v0 = 1, .v1 = 1, .rows = {1, 2}, .of_rows = {1, 1}});
  auto whole = shard.table().BeginSnapshotAt(1, false, {.number = 1});
  ASSERT_OK(whole);
  ASSERT_OK((*whole)->Wait(clock, never));
  shard.Push(1, 0, {.v0 = 1, .v1 = 1, .rows = {2}, .of_rows = {1}});
  auto cut = shard.table().BeginSnapshotAt(3, false, {.number = 2, .since = 1});
  ASSERT_OK(cut);
  shard.Push(2, 0, {.v0 = 1, .v1 = 1, .rows = {3}, .of_rows = {1}});
  shard.Push(3, 0, {.v0 = 1, .v1 = 1, .rows = {4}, .of_rows = {1}});
  ASSERT_OK_AND_ASSIGN(ShardSnapshot snapshot, (*cut)->Wait(clock, never));
  std::vector<uint64_t> ids;
  EXPECT_EQ(snapshot.tables[0].updates(), 3);
  ASSERT_OK(snapshot.tables[0].Drain([&](const RowBatch& batch) {
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    return absl::OkStatus();
  }));
  EXPECT_THAT(ids, testing::UnorderedElementsAre(2, 3));
}

// A cut that is cancelled has left some tables, and not others, behind it.
TEST(IncrementStepTest, OfACutThatIsCancelledNothingIsLost) {
  SynchronousShard shard(1, 1);
  SimulatedClock clock;
  const auto never = [] { return false; };
  auto whole = shard.table().BeginSnapshotAt(0, false, {.number = 1});
  ASSERT_OK((*whole)->Wait(clock, never));
  shard.Push(0, 0, {.v0 = 1, .rows = {5}, .of_rows = {1}});
  (*whole).reset();
  for (const int64_t cut : {1, 2}) {
    // The first is taken at once, the second waits for a step.
    auto cancelled = shard.table().BeginSnapshotAt(
        cut, false, {.number = 1 + static_cast<uint64_t>(cut), .since = 1});
    ASSERT_OK(cancelled);
    EXPECT_EQ((*cancelled)->IsDone(), cut == 1);
  }
  auto taken =
      shard.table().BeginSnapshotAt(1, false, {.number = 4, .since = 1});
  ASSERT_OK_AND_ASSIGN(ShardSnapshot snapshot, (*taken)->Wait(clock, never));
  EXPECT_EQ(snapshot.tables[0].rows(), 1u);
}

TEST(SnapshotBasesTest, TheNewestAndTheNewestCompleteAreKnown) {
  SnapshotBases bases;
  EXPECT_FALSE(bases.is_marking());
  const auto base = [&bases](const std::string& name) {
    SnapshotBases::Base taken = {.number = bases.NextNumber()};
    taken.file.set_name(name);
    return taken;
  };
  const auto with = [](std::vector<std::string> names) {
    durable::CheckpointManifest manifest;
    for (const std::string& name : names) manifest.add_file()->set_name(name);
    return manifest;
  };
  bases.Note(base("a"));
  EXPECT_TRUE(bases.is_marking());
  EXPECT_EQ(bases.Find(with({"b"}), "b"), nullptr);
  EXPECT_EQ(bases.Find(with({"b"}), "a"), nullptr);
  ASSERT_NE(bases.Find(with({"a"}), "a"), nullptr);
  bases.Note(base("b"));  // whose checkpoint fails
  bases.Note(base("c"));
  EXPECT_EQ(bases.Find(with({"a", "b"}), "b"), nullptr);
  EXPECT_EQ(bases.Find(with({"a"}), "a")->number, 1u);
  EXPECT_EQ(bases.Find(with({"a", "c"}), "c")->number, 3u);
  EXPECT_EQ(bases.Find(with({"a"}), "a"), nullptr);
}

TEST(DropUnchangedTest, FrozenChunksAreDroppedWhateverTheirCounts) {
  ShardSnapshot snapshot;
  for (int i = 0; i < 3; ++i) {
    ShardSnapshot::Chunk& chunk = snapshot.chunks.emplace_back();
    chunk.variable = absl::StrCat(i);
    chunk.contents.updates = 5 + i;
    chunk.is_frozen = i == 2;
  }
  EXPECT_THAT(UpdatesOf(snapshot), ElementsAre(5, 6, 7));
  DropUnchanged({5, 5, 5}, snapshot);
  ASSERT_EQ(snapshot.chunks.size(), 1u);
  EXPECT_EQ(snapshot.chunks[0].variable, "1");
}

}  // namespace
}  // namespace parasol
