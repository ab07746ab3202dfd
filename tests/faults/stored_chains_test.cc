// Checkpoints of increments in a store that fails: whatever is refused, lost or
// late, whichever process dies, and whatever retention removes, the newest
// checkpoint that is whole has exactly the rows of its cut. Random schedules,
// each named by its seed.
//
//   bazel test //tests/faults:stored_chains_test --test_arg=--schedules=2000
//       --test_arg=--first_seed=12345

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/model/checkpoint_listing.h"
#include "cluster/object/store_files.h"
#include "coordinator/order_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/object/testing/object_servers.h"
#include "ml/input/testing/arrow_environment.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/remote/testing/memory_files.h"
#include "tests/faults/rows_ps.h"

ABSL_FLAG(uint64_t, schedules, 120, "How many random schedules to try.");
ABSL_FLAG(uint64_t, first_seed, 1, "The seed of the first one.");

namespace parasol {
namespace {

constexpr char kRun[] = "s3://b/run";
constexpr char kRunId[] = "run-a";
constexpr uint32_t kShards = kRowShards;
constexpr uint64_t kIds = 24;
constexpr int kEvents = 24;

// One schedule.
class Schedule {
 public:
  explicit Schedule(uint64_t seed)
      : seed_(seed), has_late_(seed % 4 == 1), has_damage_(seed % 3 == 0) {
    auto& policy = *job_.mutable_checkpoint();
    policy.set_full_every(static_cast<int>(2 + seed % 5));
    policy.set_max_to_keep(static_cast<int>(seed / 5 % 4));
    if (seed % 7 == 0) policy.set_keep_every_hours(3);
  }

  void Run() {
    for (RowsPs& ps : ps_) ps.Restore({});
    Change();
    StartChief();
    Write();
    for (int event = 0; event < kEvents && !testing::Test::HasFailure();
         ++event) {
      Act();
      Check();
    }
    files_.DeliverLate();
    files_.OnRequest();
    if (has_late_) StartChief();
    Check();
    // Nothing stays that nobody needs.
    step_ += 1;
    Change();
    Write();
    CheckNoRest();
  }

 private:
  uint64_t Next(uint64_t below) {
    return Mixed(seed_ * 1000003 + ++draws_) % below;
  }

  void Act() {
    const uint64_t what = Next(100);
    if (what < 40) {
      Change();
    } else if (what < 80) {
      WriteWithFaults();
    } else if (what < 86) {
      StartChief();
    } else if (what < 92) {
      LosePs(static_cast<uint32_t>(Next(kShards)));
    } else if (has_damage_) {
      Damage();
    } else if (has_late_) {
      files_.DeliverLate(Next(3));
    }
  }

  void Change() {
    for (uint64_t i = 1 + Next(5); i > 0; --i) {
      const uint64_t id = Next(kIds);
      Rows& rows = ps_[id % kShards].rows();
      if (Next(5) == 0) {
        rows.erase(id);
      } else {
        rows[id] = static_cast<float>(++values_);
      }
    }
  }

  Rows AllRows() {
    Rows all;
    for (RowsPs& ps : ps_) all.insert(ps.rows().begin(), ps.rows().end());
    return all;
  }

  // A chief goes on from the newest checkpoint that is whole, as ps do that
  // have not lost their rows. With damage all go back to that one.
  void StartChief() {
    files_.OnRequest();
    ASSERT_OK(CheckpointStore::OpenForWriting(kRun));
    damaged_.clear();
    const auto newest = NewestWhole(&damaged_);
    if (newest.has_value() && goes_back_) {
      for (uint32_t i = 0; i < kShards; ++i) LosePs(i);
      step_ = *newest;
      acknowledged_ = {*newest, 1};
    }
    goes_back_ = false;
    executor_ = NewExecutor([] { return absl::OkStatus(); });
  }

  std::unique_ptr<OrderExecutor> NewExecutor(
      std::function<absl::Status()> check_owner) {
    std::vector<std::unique_ptr<PsClient>> clients;
    CoordinatorOptions options;
    options.job = job_;
    options.run_id = kRunId;
    options.damaged_checkpoints = damaged_;
    for (uint32_t i = 0; i < kShards; ++i) {
      clients.push_back(std::make_unique<RowsClient>(ps_[i]));
      options.shards.push_back({static_cast<int>(i), "", {}});
    }
    OrderExecutor::Directory directory;
    directory.check_owner = std::move(check_owner);
    return std::make_unique<OrderExecutor>(options, std::move(clients),
                                           CheckpointStore(kRun), directory);
  }

  absl::Status WriteBy(OrderExecutor& executor) {
    tried_[step_].push_back(AllRows());
    const size_t number = tried_[step_].size();
    const auto written = executor.WriteCheckpoint(
        RowsOrder(kRunId, job_, step_), absl::FromUnixSeconds(3600 * ++hours_));
    RETURN_IF_ERROR(written.status());
    acknowledged_ = {step_, number};
    return absl::OkStatus();
  }

  void Write() {
    files_.OnRequest();
    ASSERT_OK(WriteBy(*executor_));
  }

  void WriteWithFaults() {
    // One that may come late is of a step of its own.
    if (has_late_ || Next(6) != 0) ++step_;
    if (Next(8) == 0) {
      WriteAgainstNextOwner();
      return;
    }
    const uint64_t odds = 20 + Next(200);  // a fault in so many requests
    const uint64_t salt = Next(UINT32_MAX);
    absl::Mutex mu;
    std::map<std::string, uint64_t> met;
    files_.OnRequest([&](const MemoryFiles::Request& request) {
      // Shards write at once: what becomes of a request is its own affair.
      const std::string name = LastName(request.path).substr(0, 11);
      const absl::MutexLock lock(&mu);
      const std::string about = absl::StrCat(request.what, name);
      const uint64_t drawn =
          Mixed(salt + std::hash<std::string>()(about) + 1000 * ++met[about]);
      if (drawn % odds != 0) return MemoryFiles::Fate::kDone;
      switch (drawn / odds % 4) {
        case 0:
          return MemoryFiles::Fate::kRefused;
        case 1:
          return MemoryFiles::Fate::kLost;
        case 2:
          return has_late_ ? MemoryFiles::Fate::kLate
                           : MemoryFiles::Fate::kRefused;
        default:
          return MemoryFiles::Fate::kDead;
      }
    });
    const absl::Status written = WriteBy(*executor_);
    files_.OnRequest();
    if (!written.ok() && Next(2) == 0) StartChief();
  }

  // Another chief takes the directory between two looks of this one, writes a
  // checkpoint and removes what it finds; this one goes on until it looks
  // again.
  void WriteAgainstNextOwner() {
    files_.OnRequest();
    uint64_t looks = 1 + Next(8);
    std::unique_ptr<OrderExecutor> next;
    const auto old = NewExecutor([&]() -> absl::Status {
      if (next == nullptr && --looks > 0) return absl::OkStatus();
      if (next == nullptr) {
        next = NewExecutor([] { return absl::OkStatus(); });
        ++step_;
        EXPECT_OK(CheckpointStore::OpenForWriting(kRun));
        EXPECT_OK(WriteBy(*next));
      }
      return absl::FailedPreconditionError("another chief has it");
    });
    const int64_t step = step_;
    const absl::Status written = WriteBy(*old);
    if (next == nullptr) return;
    executor_ = std::move(next);
    EXPECT_TRUE(written.ok() || absl::IsFailedPrecondition(written)) << written;
    // Its own was acknowledged before the next one's, if at all.
    acknowledged_ = {step + 1, tried_[step + 1].size()};
  }

  // A ps dies, and its successor has the rows of the newest checkpoint.
  void LosePs(uint32_t shard) {
    files_.OnRequest();
    const auto newest = NewestWhole(nullptr);
    ASSERT_TRUE(newest.has_value());
    const ShardNumber number = {.shard = shard, .num_shards = kShards};
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         CheckpointReader::OpenForShard(
                             CheckpointStore(kRun).PathOf(*newest), number));
    ASSERT_OK_AND_ASSIGN(Rows rows, RowsOf(*reader, number));
    for (const auto& [id, value] : rows) ASSERT_EQ(id % kShards, shard);
    ps_[shard].Restore(std::move(rows));
  }

  // Alters or removes a file, unless all checkpoints would be damaged.
  void Damage() {
    std::vector<std::string> paths = files_.Paths();
    std::erase_if(paths, [](const std::string& path) {
      return !absl::EndsWith(path, ".sst");
    });
    const std::string path = paths[Next(paths.size())];
    const std::string before = *files_.Read(path, 1 << 20);
    if (Next(2) == 0) {
      ASSERT_OK(files_.Remove(path));
    } else {
      std::string altered = before;
      altered[Next(altered.size())] ^= 1;
      files_.Put(path, altered);
    }
    if (!NewestWhole(nullptr).has_value()) {
      files_.Put(path, before);
      return;
    }
    harmed_.insert(path);
    goes_back_ = true;
    StartChief();
  }

  // Returns the newest step that a chief would go on from.
  std::optional<int64_t> NewestWhole(std::set<int64_t>* damaged) {
    const CheckpointStore store(kRun);
    const auto steps = store.ListSteps();
    EXPECT_OK(steps);
    for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
      const absl::Status verified = store.Verify(*step);
      if (verified.ok()) return *step;
      EXPECT_TRUE(absl::IsDataLoss(verified)) << verified;
      if (damaged != nullptr) damaged->insert(*step);
    }
    return std::nullopt;
  }

  // A checkpoint is whole as long as nobody has harmed a file of it.
  bool IsHarmed(int64_t step) {
    const CheckpointStore store(kRun);
    const auto manifest = store.ReadManifest(step);
    if (!manifest.ok()) return true;
    return std::any_of(manifest->file().begin(), manifest->file().end(),
                       [&](const auto& file) {
                         const std::string path =
                             ListedPath(store.PathOf(step), file.name());
                         return harmed_.contains(path) || !files_.Has(path);
                       });
  }

  void Check() {
    files_.OnRequest();
    const auto newest = NewestWhole(nullptr);
    ASSERT_TRUE(newest.has_value());
    const CheckpointStore store(kRun);
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         CheckpointReader::Open(store.PathOf(*newest)));
    ASSERT_OK_AND_ASSIGN(const Rows rows, RowsOf(*reader, std::nullopt));
    const std::vector<Rows>& tried = tried_[*newest];
    const auto from = *newest == acknowledged_.first && !has_late_
                          ? tried.begin() + (acknowledged_.second - 1)
                          : tried.begin();
    EXPECT_TRUE(std::find(from, tried.end(), rows) != tried.end())
        << "step " << *newest << " has other rows";
    if (has_late_) return;
    EXPECT_GE(*newest, acknowledged_.first);
    ASSERT_OK_AND_ASSIGN(const auto steps, store.ListSteps());
    for (const int64_t step : steps) {
      if (step <= *newest) continue;
      EXPECT_TRUE(IsHarmed(step)) << step;
    }
  }

  void CheckNoRest() {
    const CheckpointStore store(kRun);
    ASSERT_OK_AND_ASSIGN(const auto steps, store.ListSteps());
    std::set<std::string> listed;
    for (const int64_t step : steps) {
      ASSERT_OK_AND_ASSIGN(const auto manifest, store.ReadManifest(step));
      for (const auto& file : manifest.file()) {
        listed.insert(ListedPath(store.PathOf(step), file.name()));
      }
    }
    for (const std::string& path : files_.Paths()) {
      if (!absl::EndsWith(path, ".sst")) continue;
      EXPECT_TRUE(listed.contains(path)) << path;
    }
  }

  const uint64_t seed_;
  const bool has_late_;    // requests come after their errors
  const bool has_damage_;  // files are harmed
  uint64_t draws_ = 0;
  int64_t values_ = 0;
  int64_t hours_ = 0;
  job::Job job_;
  MemoryFiles files_;
  RowsPs ps_[kShards] = {RowsPs(0), RowsPs(1)};
  std::unique_ptr<OrderExecutor> executor_;
  int64_t step_ = 0;
  // The rows at each attempt to write a checkpoint, by its step.
  std::map<int64_t, std::vector<Rows>> tried_;
  // The newest one that was acknowledged: its step, its number among these.
  std::pair<int64_t, size_t> acknowledged_;
  std::set<int64_t> damaged_;
  std::set<std::string> harmed_;
  bool goes_back_ = false;
};

TEST(StoredChainsTest, EachCheckpointThatIsWholeHasTheRowsOfItsCut) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  for (uint64_t i = 0; i < absl::GetFlag(FLAGS_schedules); ++i) {
    SCOPED_TRACE(absl::StrCat("--schedules=1 --first_seed=", first + i));
    Schedule(first + i).Run();
    if (HasFailure()) return;
  }
}

class ServedChainsTest : public testing::TestWithParam<std::string> {};

// A table of which 1 % of the rows change between two checkpoints, in a store
// that is busy and loses answers: what is written and asked for.
TEST_P(ServedChainsTest, AnIncrementCostsWhatHasChanged) {
  if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  constexpr uint64_t kRows = 100000;
  const std::unique_ptr<ObjectServer> server =
      StartObjectServer(GetParam(), "chains");
  StoreFiles files;
  UseRemoteFiles(&files);
  RowsPs ps[kShards] = {RowsPs(0), RowsPs(1)};
  for (uint64_t id = 0; id < kRows; ++id) ps[id % kShards].rows()[id] = 1;
  CoordinatorOptions options;
  options.job.mutable_checkpoint()->set_full_every(5);
  options.job.mutable_checkpoint()->set_max_to_keep(3);
  options.run_id = kRunId;
  std::vector<std::unique_ptr<PsClient>> clients;
  for (uint32_t i = 0; i < kShards; ++i) {
    clients.push_back(std::make_unique<RowsClient>(ps[i]));
    options.shards.push_back({static_cast<int>(i), "", {}});
  }
  ASSERT_OK_AND_ASSIGN(const CheckpointStore store,
                       CheckpointStore::OpenForWriting(server->Uri("run")));
  OrderExecutor executor(options, std::move(clients), store);
  KnownManifests known(store);
  const auto list = [&known] {
    return ListCheckpoints(known, [](const auto&) { return true; });
  };
  const auto bytes = [&server] {
    uintmax_t sum = 0;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(server->PathOf("run"))) {
      if (file.is_regular_file()) sum += file.file_size();
    }
    return sum;
  };
  server->SetFaults(
      {server->Fault("PUT /b/run/.*sst", "503", 2, /*skip=*/3),
       server->Fault("PUT /b/run/.*sst", "lost", 1, /*skip=*/6),
       server->Fault("PUT /b/run/.*MANIFEST", "lost", 1, /*skip=*/2)});
  std::unique_ptr<CheckpointReader> reader;
  uintmax_t whole = 0;
  for (int64_t step = 1; step <= 8; ++step) {
    SCOPED_TRACE(step);
    for (uint64_t i = 0; step > 1 && i < kRows / 100; ++i) {
      const uint64_t id = Mixed(i + 1000000 * step) % kRows;
      ps[id % kShards].rows()[id] = static_cast<float>(step);
    }
    server->ForgetRequests();
    const uintmax_t before = bytes();
    ASSERT_OK(executor.WriteCheckpoint(RowsOrder(kRunId, options.job, step),
                                       absl::FromUnixSeconds(step)));
    if (step == 1) whole = bytes() - before;
    if (step != 1 && step != 6) {  // increments
      EXPECT_LT(bytes(), before + whole / 60);
    }
    EXPECT_LE(server->Asked(), 70u);
    // Whoever follows: a look that finds nothing new, and a new version.
    ASSERT_OK(list());
    server->ForgetRequests();
    ASSERT_OK(list());
    EXPECT_LE(server->Asked(), 1u + 5u);
    server->ForgetRequests();
    ASSERT_OK_AND_ASSIGN(
        auto newer, CheckpointReader::Open(store.PathOf(step), reader.get()));
    // Google's library begins to read each file twice.
    EXPECT_LE(server->Asked(),
              7u + 3u * kShards + (GetParam() == "S3" ? 0u : 2u + kShards));
    Rows all = ps[0].rows();
    all.insert(ps[1].rows().begin(), ps[1].rows().end());
    ASSERT_OK_AND_ASSIGN(const Rows rows, RowsOf(*newer, std::nullopt));
    EXPECT_TRUE(rows == all);
    reader = std::move(newer);
  }
  EXPECT_OK(store.Verify(8));
  UseRemoteFiles(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Servers, ServedChainsTest, ObjectServerKinds(),
                         ObjectServerName);

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
