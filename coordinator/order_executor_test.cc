#include "coordinator/order_executor.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status_matchers.h"
#include "coordinator/taken_run.h"
#include "coordinator/testing/fake_ps.h"
#include "storage/directory_ownership.h"
#include "storage/remote/testing/memory_files.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRun[] = "run-a";
constexpr uint64_t kLayout = 5;
constexpr int64_t kChiefEpoch = 3;

class OrderExecutorTest : public testing::Test {
 protected:
  OrderExecutorTest() {
    std::filesystem::remove_all(directory_);
    job_.mutable_checkpoint()->set_max_to_keep(2);
  }

  OrderExecutor NewExecutor() {
    wire::PartSpec part;
    part.set_variable("v");
    part.set_elements(4);
    std::vector<std::unique_ptr<PsClient>> clients;
    clients.push_back(ps0_.NewClient());
    clients.push_back(ps1_.NewClient());
    auto store = CheckpointStore::OpenForWriting(directory_);
    EXPECT_OK(store);
    CoordinatorOptions options;
    options.job = job_;
    options.run_id = kRun;
    options.shards = {{0, "", {part}}, {1, "", {}}};
    options.layout = kLayout;
    options.chief_epoch = kChiefEpoch;
    options.damaged_checkpoints = damaged_;
    options.is_mirrored = is_mirrored_;
    options.state_place = 1;
    OrderExecutor::Directory owner;
    owner.record_places = [this](const LoadOrder& order) {
      recorded_.push_back(order.ps_epochs);
      return record_result_;
    };
    return OrderExecutor(options, std::move(clients), *std::move(store),
                         std::move(owner));
  }

  static CheckpointOrder CheckpointAt(int64_t step) {
    CheckpointOrder order;
    order.manifest.set_global_step(step);
    order.manifest.set_run_id(kRun);
    order.incarnations = {10, 11};
    return order;
  }
  static LoadOrder LoadBoth(bool from_checkpoint) {
    return {{{0, 10}, {1, 11}}, from_checkpoint};
  }

  const std::string directory_ = testing::TempDir() + "/order_executor_test";
  job::Job job_;
  bool is_mirrored_ = false;  // ps1_ is worker 0
  FakePs ps0_;
  FakePs ps1_;
  std::vector<std::map<int, int64_t>> recorded_;
  absl::Status record_result_;
  std::set<int64_t> damaged_;
};

TEST_F(OrderExecutorTest, WritesACheckpointThatIsIntact) {
  OrderExecutor executor = NewExecutor();
  ASSERT_OK(
      executor.WriteCheckpoint(CheckpointAt(7), absl::FromUnixSeconds(5)));
  EXPECT_THAT(executor.store().NewestComplete(), IsOkAndHolds(7));
  ASSERT_OK_AND_ASSIGN(auto manifest, executor.store().ReadManifest(7));
  ASSERT_EQ(manifest.file_size(), 2);
  EXPECT_EQ(manifest.file(1).name(), "shard-00001-of-00002.sst");
  EXPECT_EQ(manifest.created_unix_micros(), 5000000);
}

TEST_F(OrderExecutorTest, KeepsTheNewestCheckpoints) {
  OrderExecutor executor = NewExecutor();
  for (int64_t step : {1, 2, 3}) {
    ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(step), absl::UnixEpoch()));
  }
  EXPECT_THAT(executor.store().ListSteps(), IsOkAndHolds(ElementsAre(2, 3)));
}

TEST_F(OrderExecutorTest, NothingIsLeftOfACheckpointThatFailed) {
  OrderExecutor executor = NewExecutor();
  ps1_.FailSnapshots(absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(
      executor.WriteCheckpoint(CheckpointAt(7), absl::UnixEpoch()),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

// Under hybrid tables are spread over the ps alone, and only worker 0 has to
// know where it goes on: ps hear it.
TEST_F(OrderExecutorTest, WorkersVariablesAreNoShardOfTheTables) {
  is_mirrored_ = true;
  OrderExecutor executor = NewExecutor();
  LoadOrder order = LoadBoth(/*from_checkpoint=*/false);
  order.global_step = 70;
  EXPECT_THAT(executor.Load(order), Each(IsOk()));
  EXPECT_EQ(ps0_.loads()[0].num_shards(), 1);
  EXPECT_EQ(ps0_.loads()[0].global_step(), 0);
  EXPECT_EQ(ps1_.loads()[0].global_step(), 70);
}

TEST_F(OrderExecutorTest, AsynchronousTablesAreTakenAsTheyAre) {
  is_mirrored_ = true;
  job_.mutable_parameter_server()->mutable_synchronous();
  job_.mutable_strategy()->mutable_hybrid()->set_tables(
      job::Hybrid::ASYNCHRONOUS);
  OrderExecutor executor = NewExecutor();
  CheckpointOrder order = CheckpointAt(7);
  order.at_one_step = true;
  ps0_.SetUpdates(30, 40);
  ps1_.SetUpdates(9, 9);
  EXPECT_THAT(executor.WriteCheckpoint(order, absl::UnixEpoch()),
              IsOkAndHolds(9));
  EXPECT_FALSE(ps0_.last_snapshot().has_at_updates());
  EXPECT_EQ(ps1_.last_snapshot().at_updates(), 9);
}

TEST_F(OrderExecutorTest, ASynchronousCheckpointIsTakenAtTheFurthestStep) {
  OrderExecutor executor = NewExecutor();
  CheckpointOrder order = CheckpointAt(7);
  order.evaluated_from = 8;
  ASSERT_OK(executor.WriteCheckpoint(order, absl::UnixEpoch()));
  EXPECT_FALSE(ps0_.last_snapshot().has_at_updates());
  ASSERT_OK_AND_ASSIGN(auto first, executor.store().ReadManifest(7));
  EXPECT_FALSE(first.evaluation_due());
  order.at_one_step = true;
  order.may_await = true;
  ps0_.SetUpdates(9, 9);
  ps1_.SetUpdates(8, 9);
  EXPECT_THAT(executor.WriteCheckpoint(order, absl::UnixEpoch()),
              IsOkAndHolds(9));
  EXPECT_EQ(ps0_.last_snapshot().at_updates(), 9);
  EXPECT_EQ(ps1_.last_snapshot().at_updates(), 9);
  ASSERT_OK_AND_ASSIGN(auto manifest, executor.store().ReadManifest(9));
  EXPECT_EQ(manifest.global_step(), 9);
  EXPECT_TRUE(manifest.evaluation_due());
}

TEST_F(OrderExecutorTest, AStepThatTheClusterHasCompletedIsTheLeast) {
  OrderExecutor executor = NewExecutor();
  CheckpointOrder order = CheckpointAt(100);
  order.at_one_step = true;
  order.may_await = true;
  // Both were restored and have yet to hear where the cluster is.
  ps0_.SetUpdates(90, 90);
  ps1_.SetUpdates(90, 90);
  EXPECT_THAT(executor.WriteCheckpoint(order, absl::UnixEpoch()),
              IsOkAndHolds(100));
  EXPECT_EQ(ps0_.last_snapshot().at_updates(), 100);
}

TEST_F(OrderExecutorTest, AShardThatIsBehindIsNamedIfNoWorkerIsThere) {
  OrderExecutor executor = NewExecutor();
  CheckpointOrder order = CheckpointAt(7);
  order.at_one_step = true;
  ps0_.SetUpdates(8, 8);
  ps1_.SetUpdates(7, 8);
  EXPECT_THAT(
      executor.WriteCheckpoint(order, absl::UnixEpoch()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("8 steps, and ps/1")));
  EXPECT_EQ(ps0_.snapshots(), 0);
  ps1_.SetUpdates(8, 8);
  EXPECT_THAT(executor.WriteCheckpoint(order, absl::UnixEpoch()),
              IsOkAndHolds(8));
}

TEST_F(OrderExecutorTest, AShardThatAwaitsAStepInVainIsCancelled) {
  OrderExecutor executor = NewExecutor();
  ps0_.Hang();
  ps1_.FailSnapshots(absl::AbortedError("at 9 already"));
  CheckpointOrder order = CheckpointAt(8);
  order.at_one_step = true;
  order.may_await = true;
  EXPECT_THAT(executor.WriteCheckpoint(order, absl::UnixEpoch()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("at 9")));
}

TEST_F(OrderExecutorTest, LoadsInitialValuesWhenThereIsNoCheckpoint) {
  OrderExecutor executor = NewExecutor();
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/false)),
              ElementsAre(IsOk(), IsOk()));
  ASSERT_EQ(ps0_.loads().size(), 1u);
  const wire::LoadRequest load = ps0_.loads()[0];
  EXPECT_EQ(load.checkpoint(), "");
  EXPECT_EQ(load.run_id(), kRun);
  EXPECT_EQ(load.part_size(), 1);
  EXPECT_EQ(ps1_.loads()[0].shard(), 1u);
  EXPECT_EQ(ps1_.loads()[0].num_shards(), 2u);
}

TEST_F(OrderExecutorTest, LoadsTheShardsOfTheOrderAlone) {
  OrderExecutor executor = NewExecutor();
  EXPECT_THAT(executor.Load({{{1, 11}}, false}), ElementsAre(IsOk()));
  EXPECT_EQ(ps0_.loads().size(), 0u);
  EXPECT_EQ(ps1_.loads().size(), 1u);
}

TEST_F(OrderExecutorTest, AnOrderNamesItsSenderAndItsAddressee) {
  OrderExecutor executor = NewExecutor();
  executor.Load(LoadBoth(/*from_checkpoint=*/false));
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(7), absl::UnixEpoch()));
  for (const wire::OrderHeader& header :
       {ps1_.loads()[0].order(), ps1_.last_snapshot().order()}) {
    EXPECT_EQ(header.incarnation(), 11u);
    EXPECT_EQ(header.chief_epoch(), kChiefEpoch);
    EXPECT_EQ(header.layout(), kLayout);
  }
}

TEST_F(OrderExecutorTest, NothingIsLoadedBeforeThePlacesAreRecorded) {
  OrderExecutor executor = NewExecutor();
  LoadOrder order = LoadBoth(/*from_checkpoint=*/false);
  order.ps_epochs = {{0, 21}, {1, 22}};
  record_result_ = absl::UnavailableError("disk");
  EXPECT_THAT(executor.Load(order),
              ElementsAre(StatusIs(absl::StatusCode::kUnavailable),
                          StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_TRUE(ps0_.loads().empty());
  record_result_ = absl::OkStatus();
  EXPECT_THAT(executor.Load(order), ElementsAre(IsOk(), IsOk()));
  EXPECT_THAT(recorded_, ElementsAre(order.ps_epochs, order.ps_epochs));
}

TEST_F(OrderExecutorTest, AFullOrMissingDirectoryDoesNotFailALoadForGood) {
  OrderExecutor executor = NewExecutor();
  for (const absl::Status& recorded :
       {absl::ResourceExhaustedError("disk full"),
        absl::NotFoundError("no directory")}) {
    record_result_ = recorded;
    EXPECT_THAT(
        executor.Load(LoadBoth(/*from_checkpoint=*/false)),
        Each(StatusIs(absl::StatusCode::kUnavailable, recorded.message())));
  }
}

TEST_F(OrderExecutorTest, ADamagedCheckpointIsPassedOverForTheOneBefore) {
  OrderExecutor executor = NewExecutor();
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(1), absl::UnixEpoch()));
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(2), absl::UnixEpoch()));
  ps1_.CallDamaged(executor.store().PathOf(2));
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/true)),
              ElementsAre(IsOk(), IsOk()));
  EXPECT_EQ(ps0_.loads().back().checkpoint(), executor.store().PathOf(2));
  EXPECT_EQ(ps0_.loads().size(), 1u);
  EXPECT_EQ(ps1_.loads().back().checkpoint(), executor.store().PathOf(1));
}

// The chief has found it damaged before any ps was asked.
TEST_F(OrderExecutorTest, NoPsLoadsWhatTheChiefHasFoundDamaged) {
  {
    OrderExecutor before = NewExecutor();
    ASSERT_OK(before.WriteCheckpoint(CheckpointAt(1), absl::UnixEpoch()));
    ASSERT_OK(before.WriteCheckpoint(CheckpointAt(2), absl::UnixEpoch()));
  }
  damaged_ = {2};
  OrderExecutor executor = NewExecutor();
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/true)), Each(IsOk()));
  EXPECT_EQ(ps0_.loads().back().checkpoint(), executor.store().PathOf(1));
  EXPECT_EQ(ps1_.loads().back().checkpoint(), executor.store().PathOf(1));
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(2), absl::UnixEpoch()));
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/true)), Each(IsOk()));
  EXPECT_EQ(ps1_.loads().back().checkpoint(), executor.store().PathOf(2));
}

TEST_F(OrderExecutorTest, AManifestThatCantBeReadNowIsNotPassedOver) {
  OrderExecutor executor = NewExecutor();
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(1), absl::UnixEpoch()));
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(2), absl::UnixEpoch()));
  const std::string manifest = executor.store().PathOf(2) + "/MANIFEST";
  std::filesystem::rename(manifest, directory_ + "/kept");
  std::filesystem::create_symlink("/proc/self/mem", manifest);  // EIO
  const auto unavailable =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(manifest));
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/true)),
              ElementsAre(unavailable, unavailable));
  EXPECT_TRUE(ps0_.loads().empty());

  std::filesystem::rename(directory_ + "/kept", manifest);
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/true)),
              ElementsAre(IsOk(), IsOk()));
  EXPECT_EQ(ps0_.loads().back().checkpoint(), executor.store().PathOf(2));
}

TEST_F(OrderExecutorTest, ACheckpointThatOnlyThePsDoesNotSeeIsNotPassedOver) {
  OrderExecutor executor = NewExecutor();
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(1), absl::UnixEpoch()));
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(2), absl::UnixEpoch()));
  ps1_.Miss(executor.store().PathOf(2));
  EXPECT_THAT(
      executor.Load(LoadBoth(/*from_checkpoint=*/true)),
      ElementsAre(IsOk(), StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("the chief sees it: is "
                                             "the checkpoint directory's "
                                             "volume mounted at the same "
                                             "path for ps/1?"))));
  EXPECT_EQ(ps1_.loads().size(), 1u);

  // Here it is gone for the chief, too.
  ps1_.Vanish(executor.store().PathOf(2));
  EXPECT_THAT(executor.Load({{{1, 11}}, true}), ElementsAre(IsOk()));
  EXPECT_EQ(ps1_.loads().back().checkpoint(), executor.store().PathOf(1));
}

TEST_F(OrderExecutorTest, ACheckpointThatOnlyWorker0DoesNotSeeNamesIt) {
  is_mirrored_ = true;
  OrderExecutor executor = NewExecutor();
  ASSERT_OK(executor.WriteCheckpoint(CheckpointAt(1), absl::UnixEpoch()));
  ps1_.Miss(executor.store().PathOf(1));
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/true)),
              ElementsAre(IsOk(), StatusIs(absl::StatusCode::kUnavailable,
                                           HasSubstr("for worker/0?"))));
}

TEST_F(OrderExecutorTest, CheckpointsOfAnotherRunAreNotLoaded) {
  OrderExecutor executor = NewExecutor();
  CheckpointOrder other = CheckpointAt(9);
  other.manifest.set_run_id("run-b");
  ASSERT_OK(executor.WriteCheckpoint(other, absl::UnixEpoch()));
  EXPECT_THAT(executor.Load(LoadBoth(/*from_checkpoint=*/true)),
              ElementsAre(StatusIs(absl::StatusCode::kDataLoss),
                          StatusIs(absl::StatusCode::kDataLoss,
                                   HasSubstr("no checkpoint of run run-a"))));
  EXPECT_TRUE(ps0_.loads().empty());
}

// The store that an executor gets.
constexpr char kTaken[] = "s3://b/run";
constexpr char kPart[] = "s3://b/run/ckpt-000000000003/shard-0-cd.sst";

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

// A process takes a run in a store and is cut off for longer than a lease when
// it opens the store to write: then that request has `fate`, and another one is
// the owner, whose checkpoint is under way.
class TakenRunTest : public testing::Test {
 protected:
  absl::Status TakeAndBeCutOff(MemoryFiles::Fate fate) {
    files_.OnRequest([this, fate](const MemoryFiles::Request& request) {
      if (request.what != "list" || request.path != kTaken) {
        return MemoryFiles::Fate::kDone;
      }
      files_.OnRequest();
      auto taken =
          DirectoryOwnership::Take({.directory = kTaken}, clock_of_next_);
      EXPECT_OK(taken);
      (*taken)->StopRenewal();
      next_ = *std::move(taken);
      files_.Put(kPart, "of the next owner");
      return fate;
    });
    CoordinatorOptions coordinator;
    return TakeRun({.directory = kTaken, .variables = {}}, clock_, still_,
                   coordinator)
        .status();
  }

  MemoryFiles files_;
  HurriedClock clock_;
  SimulatedClock still_;  // its lease is not renewed
  HurriedClock clock_of_next_;
  std::unique_ptr<DirectoryOwnership> next_;
};

TEST_F(TakenRunTest, AnAttemptAfterItIsLostTouchesNothing) {
  EXPECT_THAT(TakeAndBeCutOff(MemoryFiles::Fate::kRefused),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("touches nothing more")));
  EXPECT_TRUE(files_.Has(kPart));
  EXPECT_OK(next_->Check());
}

TEST_F(TakenRunTest, WhatWasListedBeforeItIsLostStays) {
  EXPECT_THAT(TakeAndBeCutOff(MemoryFiles::Fate::kDone),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("touches nothing more")));
  EXPECT_TRUE(files_.Has(kPart));
}

}  // namespace
}  // namespace parasol
