#include "worker/group/state/state_transfer.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/memory_network.h"
#include "cluster/rows/row_snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/shard_entry.h"
#include "worker/group/testing/cut_endpoint.h"
#include "worker/group/testing/group_fixture.h"

namespace parasol {
namespace {

using group_testing::Contents;
using group_testing::ContentsOf;
using group_testing::CutEndpoint;
using group_testing::Initialize;
using group_testing::MakeState;
using group_testing::MakeStep;

class StateTransferTest : public testing::Test {
 protected:
  void Make(int ranks) {
    for (int i = 0; i < ranks; ++i) {
      states_.push_back(MakeState());
      endpoints_.push_back(network_.MakeEndpoint(absl::StrCat("h:", i)));
    }
  }

  // All ranks agree, as threads, in one group; returns their results.
  std::vector<absl::Status> Agree(std::function<bool()> may_go_on) {
    std::vector<absl::Status> results(states_.size());
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < states_.size(); ++i) {
        threads.emplace_back([&, i] { results[i] = AgreeAs(i, may_go_on); });
      }
    }
    ++epoch_;
    return results;
  }
  std::vector<absl::Status> Agree() {
    return Agree([] { return true; });
  }

  absl::Status AgreeAs(int rank, const std::function<bool()>& may_go_on) {
    CollectiveGroup group;
    group.epoch = epoch_;
    group.own_rank = rank;
    for (size_t i = 0; i < states_.size(); ++i) {
      group.ranks.push_back({.address = absl::StrCat("h:", i), .replicas = {}});
    }
    auto joined = endpoints_[rank]->Join(group, absl::Seconds(30));
    if (!joined.ok()) return joined.status();
    return AgreeOnState(**joined, *states_[rank], may_go_on, Clock::Real());
  }

  MemoryNetwork network_;
  std::vector<std::unique_ptr<CollectiveEndpoint>> endpoints_;
  std::vector<std::unique_ptr<GroupState>> states_;
  int64_t epoch_ = 1;
};

TEST_F(StateTransferTest, AllTakeTheStateThatIsTheFurthest) {
  Make(4);
  // Ranks 0 and 2 have the same step of the same group; 3 has an older one.
  for (const int rank : {0, 2, 3}) Initialize(*states_[rank]);
  for (const int rank : {0, 2}) {
    ASSERT_OK(MakeStep(*states_[rank], 1, 2));
    ASSERT_OK(MakeStep(*states_[rank], 1, 3));
  }
  ASSERT_OK(MakeStep(*states_[3], 1, 2));
  const Contents want = ContentsOf(*states_[0]);
  EXPECT_THAT(Agree(), testing::Each(IsOk()));
  for (const auto& state : states_) {
    EXPECT_EQ(state->version(), (GroupState::Version{.step = 2, .epoch = 1}));
    EXPECT_EQ(ContentsOf(*state), want);
  }
  // What they have copied changes as the original does.
  for (const auto& state : states_) ASSERT_OK(MakeStep(*state, 2, 4));
  const Contents next = ContentsOf(*states_[0]);
  EXPECT_NE(next, want);
  for (const auto& state : states_) EXPECT_EQ(ContentsOf(*state), next);
}

TEST_F(StateTransferTest, OfTwoStatesOfOneStepTheLaterGroupsCounts) {
  Make(2);
  for (const auto& state : states_) Initialize(*state);
  ASSERT_OK(MakeStep(*states_[0], /*epoch=*/5, 1));
  ASSERT_OK(MakeStep(*states_[1], /*epoch=*/6, 2));
  const Contents want = ContentsOf(*states_[1]);
  EXPECT_THAT(Agree(), testing::Each(IsOk()));
  EXPECT_EQ(ContentsOf(*states_[0]), want);
}

TEST_F(StateTransferTest, AGroupWithoutVariablesWaitsUntilOneHasLoadedThem) {
  Make(3);
  std::atomic<int> asked = 0;
  // Rank 1 loads while they wait.
  const auto results = Agree([&] {
    if (++asked == 4) Initialize(*states_[1], 8);
    return true;
  });
  EXPECT_THAT(results, testing::Each(IsOk()));
  for (const auto& state : states_) EXPECT_EQ(state->version().step, 8);
}

// Rank 1 stood still at step 82 while others made steps until 500, and were
// lost; rank 0 has loaded the checkpoint of step 80.
TEST_F(StateTransferTest, AWorkerThatStoodStillGoesOnWhereTheTablesAre) {
  Make(3);
  Initialize(*states_[0], 80);
  states_[0]->SetGoesOnAt(500);
  Initialize(*states_[1], 80);
  ASSERT_OK(MakeStep(*states_[1], /*epoch=*/7, 1));
  ASSERT_OK(MakeStep(*states_[1], /*epoch=*/7, 2));
  const Contents want = ContentsOf(*states_[1]);
  EXPECT_THAT(Agree(), testing::Each(IsOk()));
  for (const auto& state : states_) {
    EXPECT_EQ(state->version(), (GroupState::Version{.step = 500}));
    EXPECT_EQ(ContentsOf(*state).arrays, want.arrays);
  }
}

// Members of a group are one step apart at most: the others can make the step
// again, from gradients.
TEST_F(StateTransferTest, AWorkerOneStepBehindTheTablesMakesTheStep) {
  Make(2);
  Initialize(*states_[0], 80);
  states_[0]->SetGoesOnAt(82);
  Initialize(*states_[1], 80);
  ASSERT_OK(MakeStep(*states_[1], /*epoch=*/7, 1));
  const Contents want = ContentsOf(*states_[1]);
  EXPECT_THAT(Agree(), testing::Each(IsOk()));
  for (const auto& state : states_) {
    EXPECT_EQ(state->version(), (GroupState::Version{.step = 81, .epoch = 7}));
    EXPECT_EQ(ContentsOf(*state), want);
  }
}

TEST_F(StateTransferTest, AWaitThatIsWantedNoMoreEnds) {
  Make(2);
  EXPECT_THAT(Agree([] { return false; }),
              testing::Contains(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(StateTransferTest, ManyRowsAreCopiedInPieces) {
  // So many pieces that the ranks meet during the copy.
  static constexpr int64_t kRows = 150000;
  Make(3);
  Initialize(*states_[0]);
  Initialize(*states_[1]);
  const auto add_rows = [](ParameterStore& parameters) {
    std::vector<uint64_t> ids;
    for (uint64_t id = 0; id < kRows; ++id) ids.push_back(id * id);
    std::vector<float> gradients(ids.size() * group_testing::kWidth);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = i;
    return parameters.ApplyRows(0, ids, gradients);
  };
  for (const int rank : {0, 1}) {
    ASSERT_OK(states_[rank]->MakeStep(1, add_rows));
  }
  EXPECT_THAT(Agree(), testing::Each(IsOk()));
  ASSERT_OK(states_[2]->Read([](ParameterStore& parameters) {
    EXPECT_EQ(parameters.table(0).rows(), kRows);
    return absl::OkStatus();
  }));
  EXPECT_EQ(ContentsOf(*states_[2]), ContentsOf(*states_[0]));
}

// Everything that a table with bounds has.
struct BoundedContents {
  std::vector<std::tuple<uint64_t, float, int64_t>> rows;
  std::vector<std::tuple<uint64_t, uint32_t, int64_t>> counts;

  friend bool operator==(const BoundedContents&,
                         const BoundedContents&) = default;
};

BoundedContents BoundedContentsOf(GroupState& state) {
  BoundedContents contents;
  EXPECT_OK(state.Read([&](ParameterStore& parameters) {
    RowSnapshot snapshot = parameters.table(0).TakeSnapshot();
    EXPECT_OK(snapshot.VisitCounts([&](const CountBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        contents.counts.emplace_back(
            batch.ids[i], batch.counts[i],
            batch.touched.empty() ? -1 : batch.touched[i]);
      }
      return absl::OkStatus();
    }));
    return snapshot.Drain([&](const RowBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        contents.rows.emplace_back(
            batch.ids[i], batch.rows[i * batch.rows.size() / batch.ids.size()],
            batch.touched.empty() ? -1 : batch.touched[i]);
      }
      return absl::OkStatus();
    });
  }));
  std::sort(contents.rows.begin(), contents.rows.end());
  std::sort(contents.counts.begin(), contents.counts.end());
  return contents;
}

// Pushes `ids`, that many times.
absl::Status PushIds(ParameterStore& parameters, uint64_t ids, int times) {
  std::vector<uint64_t> pushed(ids);
  std::iota(pushed.begin(), pushed.end(), 1);
  const std::vector<float> gradients(ids * group_testing::kWidth, 1);
  for (int i = 0; i < times; ++i) {
    RETURN_IF_ERROR(parameters.ApplyRows(0, pushed, gradients));
  }
  return absl::OkStatus();
}

TEST_F(StateTransferTest, CountsAndTouchesOfATableWithBoundsAreCopied) {
  // More than one piece of each.
  constexpr uint64_t kRows = 20000, kCounted = 15000;
  for (const auto& [idle_steps, max_rows] :
       std::vector<std::pair<int64_t, int64_t>>{
           {100, 0}, {0, 1 << 20}, {0, 0}}) {
    SCOPED_TRACE(absl::StrCat(idle_steps, ", ", max_rows));
    job::Job job = group_testing::MakeJob();
    job::SparseTable& table = *job.mutable_model()->mutable_sparse_table(0);
    table.mutable_admission()->set_min_count(3);
    if (idle_steps > 0) table.mutable_eviction()->set_idle_steps(idle_steps);
    if (max_rows > 0) table.mutable_eviction()->set_max_rows(max_rows);
    states_.clear();
    endpoints_.clear();
    Make(3);
    for (auto& state : states_) {
      state = std::make_unique<GroupState>(group_testing::MakeVariables(), job,
                                           Clock::Real());
    }
    // Rank 1 only watches, or gives what rank 0 watches.
    for (const int rank : {0, 1}) {
      Initialize(*states_[rank]);
      ASSERT_OK(states_[rank]->MakeStep(
          1, [&](ParameterStore& parameters) -> absl::Status {
            RETURN_IF_ERROR(PushIds(parameters, kRows + kCounted, 2));
            RETURN_IF_ERROR(PushIds(parameters, kRows, 1));
            return PushIds(parameters, kRows / 2, 1);
          }));
    }
    EXPECT_THAT(Agree(), testing::Each(IsOk()));
    const BoundedContents want = BoundedContentsOf(*states_[0]);
    EXPECT_EQ(want.rows.size(), kRows);
    EXPECT_EQ(want.counts.size(), kCounted);
    EXPECT_TRUE(BoundedContentsOf(*states_[2]) == want);
    // It goes on as the others do: the ids that were counted get their rows.
    for (const auto& state : states_) {
      ASSERT_OK(state->MakeStep(2, [&](ParameterStore& parameters) {
        return PushIds(parameters, kRows + kCounted, 1);
      }));
    }
    const BoundedContents next = BoundedContentsOf(*states_[0]);
    EXPECT_EQ(next.rows.size(), kRows + kCounted);
    EXPECT_TRUE(BoundedContentsOf(*states_[2]) == next);
  }
}

TEST_F(StateTransferTest, ALargeVariableIsCopiedInPieces) {
  VariableSpec large{.name = "large", .shape = {2500000}};
  large.initializer.mutable_zeros();
  std::vector<float> elements(large.elements());
  std::iota(elements.begin(), elements.end(), 1.0f);
  Make(3);
  for (auto& state : states_) {
    state =
        std::make_unique<GroupState>(std::vector<VariableSpec>{large},
                                     group_testing::MakeJob(), Clock::Real());
  }
  for (const int rank : {0, 1}) {
    Initialize(*states_[rank]);
    ASSERT_OK(states_[rank]->MakeStep(1, [&](ParameterStore& parameters) {
      return parameters.variables().Write(0, /*array=*/1, elements);
    }));
  }
  EXPECT_THAT(Agree(), testing::Each(IsOk()));
  ASSERT_OK(states_[2]->Read([&](ParameterStore& parameters) {
    EXPECT_EQ(*parameters.variables().Read(0, 1), absl::MakeSpan(elements));
    return absl::OkStatus();
  }));
}

TEST_F(StateTransferTest, ACopyThatIsWantedNoMoreEndsBetweenItsPieces) {
  int polls = -1;
  for (int allowed = 0; polls < 0; ++allowed) {
    SCOPED_TRACE(allowed);
    states_.clear();
    endpoints_.clear();
    Make(2);
    Initialize(*states_[0]);
    std::atomic<int> asked = 0;
    const auto results = Agree([&] { return ++asked <= allowed; });
    if (results[0].ok() && results[1].ok()) {
      polls = allowed;
      EXPECT_EQ(ContentsOf(*states_[1]), ContentsOf(*states_[0]));
    } else {
      EXPECT_THAT(results,
                  testing::Contains(StatusIs(absl::StatusCode::kCancelled)));
      EXPECT_FALSE(states_[1]->version().is_there());
    }
  }
  // Three lists of numbers and six arrays, at both ranks.
  EXPECT_EQ(polls, 2 * 9);
}

TEST_F(StateTransferTest, ACopyThatIsCutOffChangesNothing) {
  // At each of its operations, which is the last one when none is cut off.
  int operations = 0;
  for (int cut_at = 1; operations == 0; ++cut_at) {
    SCOPED_TRACE(cut_at);
    states_.clear();
    endpoints_.clear();
    Make(2);
    auto cut = std::make_unique<CutEndpoint>(std::move(endpoints_[0]), cut_at);
    const CutEndpoint& source = *cut;
    endpoints_[0] = std::move(cut);
    Initialize(*states_[0]);
    ASSERT_OK(MakeStep(*states_[0], 1, 2));
    const auto results = Agree();
    if (source.begun() < cut_at) {
      EXPECT_THAT(results, testing::Each(IsOk()));
      EXPECT_EQ(ContentsOf(*states_[1]), ContentsOf(*states_[0]));
      operations = source.begun();
    } else {
      EXPECT_THAT(results,
                  testing::Each(StatusIs(absl::StatusCode::kUnavailable)));
      EXPECT_FALSE(states_[1]->version().is_there());
    }
  }
  // The versions, three lists of numbers, six arrays, a table's ids and rows.
  EXPECT_EQ(operations, 12);
}

}  // namespace
}  // namespace parasol
