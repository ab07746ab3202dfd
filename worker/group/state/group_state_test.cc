#include "worker/group/state/group_state.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "worker/group/testing/group_fixture.h"
#include "worker/store/host_variables.h"
#include "worker/store/stored_variables.h"

namespace parasol {
namespace {

using group_testing::ContentsOf;
using group_testing::Initialize;
using group_testing::MakeState;
using group_testing::MakeStep;
using ::testing::HasSubstr;
using ::testing::Optional;

bool Never() { return false; }

std::string NewFile() {
  return absl::StrCat(
      getenv("TEST_TMPDIR"), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name());
}

TEST(GroupStateTest, AStateThatIsNotThereIsNeitherReadNorChanged) {
  const auto state = MakeState();
  EXPECT_FALSE(state->version().is_there());
  EXPECT_THAT(MakeStep(*state, 1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(state->steps().Hold(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(SaveState(*state, std::nullopt, NewFile(), Never),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(state->steps().Await(0, absl::ZeroDuration()), std::nullopt);
}

TEST(GroupStateTest, AnOlderStateReplacesNone) {
  const auto state = MakeState();
  Initialize(*state, 5);
  ASSERT_OK(MakeStep(*state, /*epoch=*/3, 1));
  const auto want = ContentsOf(*state);
  Initialize(*state, 4);
  Initialize(*state, 6);  // the same step, but of no group
  EXPECT_EQ(state->version(), (GroupState::Version{.step = 6, .epoch = 3}));
  EXPECT_EQ(ContentsOf(*state), want);
  Initialize(*state, 7);
  EXPECT_EQ(state->version().step, 7);
}

// Variables that lie elsewhere: a device's, which fail when they are told to.
class Elsewhere : public StoredVariables {
 public:
  explicit Elsewhere(const job::Job& job)
      : StoredVariables(group_testing::MakeVariables()),
        host_(*HostVariables::Create(specs(), job)) {
    EXPECT_OK(MakeOptimizers(job));
  }
  absl::StatusOr<absl::Span<const float>> Read(size_t variable,
                                               int array) override {
    return host_->Read(variable, array);
  }
  absl::Status Write(size_t variable, int array,
                     absl::Span<const float> elements) override {
    if (is_lost) return absl::UnavailableError("the device was lost");
    return host_->Write(variable, array, elements);
  }
  bool is_lost = false;

 private:
  std::unique_ptr<HostVariables> host_;
};

job::Job JobWithoutTable() {
  job::Job job = group_testing::MakeJob();
  job.mutable_model()->clear_sparse_table();
  return job;
}

TEST(GroupStateTest, VariablesElsewhereAreLoadedAndReplacedInTheirPlace) {
  const job::Job job = JobWithoutTable();
  Elsewhere elsewhere(job);
  GroupState state(group_testing::MakeVariables(), job, Clock::Real(),
                   TableStore::kHost, &elsewhere);
  const auto parameters = [&state](float gradient) {
    auto made = *state.MakeParameters();
    made->ApplyBlock(0, 0, std::vector<float>(3, gradient));
    made->CountUpdate(0);
    return made;
  };
  const auto has_those_of = [&](ParameterStore& want) {
    for (int array = 0; array < elsewhere.num_arrays(0); ++array) {
      const auto got = *elsewhere.Read(0, array);
      const std::vector<float> copy(got.begin(), got.end());
      if (*want.variables().Read(0, array) != absl::MakeConstSpan(copy)) {
        return false;
      }
    }
    return elsewhere.updates()[0] == want.variables().updates()[0];
  };
  EXPECT_THAT(state.Pull({}), StatusIs(absl::StatusCode::kFailedPrecondition));
  state.Load(parameters(1), 5);
  EXPECT_TRUE(has_those_of(*parameters(1)));
  EXPECT_THAT(state.Pull({}), IsOkAndHolds(5));
  state.Replace(parameters(2), {.step = 6, .epoch = 1});
  EXPECT_TRUE(has_those_of(*parameters(2)));
  EXPECT_FALSE(has_those_of(*parameters(1)));
  // Equal values in a later group are no other ones.
  EXPECT_THAT(state.Pull({}), IsOkAndHolds(6));
  state.Replace(parameters(2), {.step = 6, .epoch = 2});
  EXPECT_OK(state.steps().ended());
  state.Replace(parameters(3), {.step = 6, .epoch = 3});
  EXPECT_THAT(state.steps().ended(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("it has to start again")));
}

TEST(GroupStateTest, AStateWhosePlaceElsewhereIsLostEnds) {
  const job::Job job = JobWithoutTable();
  Elsewhere elsewhere(job);
  GroupState state(group_testing::MakeVariables(), job, Clock::Real(),
                   TableStore::kHost, &elsewhere);
  state.Load(*state.MakeParameters(), 5);
  elsewhere.is_lost = true;
  state.Replace(*state.MakeParameters(), {.step = 6, .epoch = 1});
  EXPECT_THAT(state.steps().ended(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the device was lost")));
  EXPECT_FALSE(state.version().is_there());
}

TEST(GroupStateTest, AStateWhoseOtherValuesWerePulledEnds) {
  const auto state = MakeState();
  Initialize(*state, 5);
  const auto peers = MakeState();
  Initialize(*peers, 4);
  ASSERT_OK(MakeStep(*peers, /*epoch=*/3, 1));
  ContentsOf(*state);  // pulls
  const auto copy_to = [&peers](GroupState& to) {
    auto parameters = to.MakeParameters();
    ASSERT_OK(parameters);
    (*parameters)->ApplyBlock(0, 0, std::vector<float>(3, 1));
    to.Replace(*std::move(parameters), peers->version());
  };
  copy_to(*state);
  EXPECT_THAT(state->steps().ended(), StatusIs(absl::StatusCode::kUnavailable,
                                               HasSubstr("start again")));
  EXPECT_EQ(state->version(), peers->version());

  const auto unused = MakeState();
  Initialize(*unused, 5);
  copy_to(*unused);
  EXPECT_OK(unused->steps().ended());
}

TEST(GroupStateTest, AStateWithTheSameValuesGoesOn) {
  const auto state = MakeState();
  Initialize(*state, 5);
  ContentsOf(*state);
  auto same = state->MakeParameters();
  ASSERT_OK(same);
  state->Replace(*std::move(same), {.step = 5, .epoch = 3});
  EXPECT_OK(state->steps().ended());
  EXPECT_EQ(state->version(), (GroupState::Version{.step = 5, .epoch = 3}));
}

TEST(GroupStateTest, ALoadedStateReplacesNone) {
  const auto state = MakeState();
  auto loaded = state->MakeParameters();
  ASSERT_OK(loaded);
  state->Load(*std::move(loaded), 3);
  EXPECT_EQ(state->version(), (GroupState::Version{.step = 3}));
  auto late = state->MakeParameters();
  ASSERT_OK(late);
  state->Load(*std::move(late), 5);
  EXPECT_EQ(state->version().step, 3);
}

TEST(GroupStateTest, AStepThatFailsHalfWayLeavesNoState) {
  const auto state = MakeState();
  Initialize(*state);
  EXPECT_THAT(state->MakeStep(1,
                              [](ParameterStore&) {
                                return absl::ResourceExhaustedError("memory");
                              }),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_FALSE(state->version().is_there());
}

TEST(GroupStateTest, AWaitEndsWithTheStepOrWithTheEnd) {
  const auto state = MakeState();
  Initialize(*state);
  EXPECT_THAT(state->steps().Await(0, absl::InfiniteDuration()),
              Optional(IsOk()));
  std::thread waits([&] {
    EXPECT_THAT(state->steps().Await(1, absl::InfiniteDuration()),
                Optional(IsOk()));
    EXPECT_THAT(state->steps().Await(2, absl::InfiniteDuration()),
                Optional(StatusIs(absl::StatusCode::kCancelled)));
  });
  ASSERT_OK(MakeStep(*state, 1, 1));
  state->steps().End(absl::CancelledError("first"));
  state->steps().End(absl::InternalError("second"));
  waits.join();
}

TEST(GroupStateTest, NoStepIsMadeBetweenTheHoldAndTheSnapshot) {
  const auto state = MakeState();
  Initialize(*state);
  ASSERT_OK_AND_ASSIGN(const int64_t held, state->steps().Hold());
  EXPECT_EQ(held, 0);
  std::thread steps([&] {
    EXPECT_OK(MakeStep(*state, 1, 1));
    EXPECT_OK(MakeStep(*state, 1, 1));
  });
  // The chief has heard of a step that this worker has yet to make.
  EXPECT_OK(SaveState(*state, /*step=*/1, NewFile(), Never));
  steps.join();
  EXPECT_EQ(state->version().step, 2);
}

TEST(GroupStateTest, AStateThatStaysMakesNoStepUntilItGoesOn) {
  SimulatedClock clock;
  const auto state = MakeState(clock);
  Initialize(*state);
  ASSERT_OK(state->steps().Hold());
  ASSERT_OK(SaveState(*state, /*step=*/0, NewFile(), Never, /*stays=*/true));
  std::thread steps([&] { EXPECT_OK(MakeStep(*state, 1, 1)); });
  clock.Advance(2 * StateSteps::kHoldLimit);
  EXPECT_EQ(state->version().step, 0);
  // Another order does not end the stay.
  EXPECT_THAT(state->steps().Hold(), IsOkAndHolds(0));
  ASSERT_OK(SaveState(*state, /*step=*/0, NewFile(), Never));
  clock.Advance(2 * StateSteps::kHoldLimit);
  EXPECT_EQ(state->version().step, 0);
  state->steps().GoOn();
  steps.join();
  EXPECT_EQ(state->version().step, 1);
}

TEST(GroupStateTest, AWorkerThatEndsMakesNoStepBehindAStay) {
  const auto state = MakeState();
  Initialize(*state);
  ASSERT_OK(SaveState(*state, /*step=*/0, NewFile(), Never, /*stays=*/true));
  std::thread steps([&] {
    EXPECT_THAT(MakeStep(*state, 1, 1),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("step 0")));
  });
  state->steps().EndThoseThatStay();
  steps.join();
  EXPECT_EQ(state->version().step, 0);
}

TEST(GroupStateTest, ASnapshotThatFailsHasNothingStay) {
  const auto state = MakeState();
  Initialize(*state, 3);
  ASSERT_OK(state->steps().Hold());
  EXPECT_THAT(SaveState(*state, /*step=*/2, NewFile(), Never, /*stays=*/true),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("3 steps")));
  EXPECT_OK(MakeStep(*state, 1, 1));
}

TEST(GroupStateTest, StepsAreMadeWhileACopyIsWritten) {
  const auto state = MakeState();
  Initialize(*state);
  ASSERT_OK(MakeStep(*state, 1, 1));
  const auto want = ContentsOf(*state);
  ASSERT_OK_AND_ASSIGN(StoreSnapshot snapshot,
                       state->TakeSnapshot(/*step=*/1, Never));
  ASSERT_OK(MakeStep(*state, 1, 2));
  EXPECT_NE(ContentsOf(*state), want);

  auto store = *CheckpointStore::OpenForWriting(NewFile());
  const std::string working = *store.Begin(1);
  ASSERT_OK_AND_ASSIGN(auto writer, ShardWriter::Create(working + "/file"));
  ASSERT_OK(std::move(snapshot).Write(*writer));
  ASSERT_OK_AND_ASSIGN(durable::CheckpointFile file, writer->Finish());
  file.set_name("file");
  durable::CheckpointManifest manifest;
  manifest.set_global_step(1);
  *manifest.mutable_job() = state->job();
  parasol::ContentsOf(state->variables(), state->job())->AddTo(manifest);
  *manifest.add_file() = file;
  ASSERT_OK(store.Commit(working, manifest));

  const auto read = MakeState();
  ASSERT_OK_AND_ASSIGN(auto parameters, read->MakeParameters());
  ASSERT_OK(
      parameters->Restore(*CheckpointReader::Open(store.PathOf(1)).value()));
  read->Replace(std::move(parameters), {.step = 1});
  EXPECT_EQ(ContentsOf(*read), want);
}

TEST(GroupStateTest, AHoldThatNobodyEndsLastsForItsLimit) {
  SimulatedClock clock;
  const auto state = MakeState(clock);
  Initialize(*state);
  ASSERT_OK(state->steps().Hold());
  const absl::Time end = clock.Now() + StateSteps::kHoldLimit;
  std::thread steps([&] {
    EXPECT_OK(MakeStep(*state, 1, 1));
    EXPECT_GE(clock.Now(), end);
  });
  clock.Advance(StateSteps::kHoldLimit / 2);
  clock.Advance(StateSteps::kHoldLimit / 2);
  steps.join();
  EXPECT_EQ(state->version().step, 1);
}

TEST(GroupStateTest, ACutThatHasPassedIsNoSnapshot) {
  const auto state = MakeState();
  Initialize(*state, 3);
  EXPECT_THAT(SaveState(*state, /*step=*/2, NewFile(), Never),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("3 steps")));
}

TEST(GroupStateTest, ASnapshotThatTheChiefWantsNoMoreEnds) {
  const auto state = MakeState();
  Initialize(*state, 3);
  EXPECT_THAT(SaveState(*state, /*step=*/4, NewFile(), [] { return true; }),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace parasol
