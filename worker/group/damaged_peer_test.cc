// Peers that give what is no state and no rows.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/memory_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/group/encoded_rows.h"
#include "worker/group/gradient_packs.h"
#include "worker/group/group_parameters.h"
#include "worker/group/state/group_state.h"
#include "worker/group/step_group.h"
#include "worker/group/testing/assignments.h"
#include "worker/group/testing/group_fixture.h"

namespace parasol {
namespace {

// As often as five groups in a row that end for a fault of the job.
constexpr int kTimes = 7;

// Worker 0, which has no replicas, and worker 1, which has all and is played by
// the test.
class DamagedPeerTest : public testing::Test {
 protected:
  DamagedPeerTest() : state_(group_testing::MakeState()) {
    group_testing::Initialize(*state_);
    GroupParameters::Options options;
    options.task.set_role("worker");
    options.task.set_incarnation(100);
    options.replicas = 3;
    options.bytes_per_pack = kBytesPerPack;
    options.report_delay = absl::ZeroDuration();
    parameters_ = std::make_unique<GroupParameters>(options, *state_, *own_,
                                                    Clock::Real(), metrics_);
  }
  ~DamagedPeerTest() override { parameters_->Stop(); }

  // Makes the next group of both; returns the peer's place in it.
  std::unique_ptr<Collective> Meet() {
    assignments_.Assign({{0, {}}, {1, {0, 1, 2}}});
    const wire::ClaimStepsResponse answer = assignments_.Claim(0);
    parameters_->Hear(answer);
    return peer_->Join(GroupOf(answer, 101).collective, absl::Seconds(60))
        .value();
  }
  // Gives worker 0 `state` for a version and `rows` for the rows of the step.
  absl::Status Give(Collective& group, absl::string_view state,
                    absl::string_view rows) {
    const auto ignore = [](const absl::Status&) {};
    std::vector<std::string> gathered;
    group.AllGather(state, &gathered, ignore);
    RETURN_IF_ERROR(group.Await());
    const GradientPacks packs =
        GradientPacks::Of(state_->variables(), kBytesPerPack);
    for (size_t i = 0; i < packs.count(); ++i) {
      const std::vector<float> values(packs.elements(i), 1);
      std::vector<float> sum(packs.elements(i));
      group.AllReduce({{0, values}, {1, values}, {2, values}},
                      absl::MakeSpan(sum), ignore);
      RETURN_IF_ERROR(group.Await());
    }
    group.AllGather(rows, &gathered, ignore);
    RETURN_IF_ERROR(group.Await());
    // Worker 0 has taken them when it begins the next step.
    const std::vector<float> values(packs.elements(0));
    std::vector<float> sum(packs.elements(0));
    group.AllReduce({{0, values}, {1, values}, {2, values}},
                    absl::MakeSpan(sum), ignore);
    return group.Await();
  }

  static constexpr int64_t kBytesPerPack = 1 << 20;
  const std::unique_ptr<GroupState> state_;
  MemoryNetwork network_;
  const std::unique_ptr<CollectiveEndpoint> own_ = network_.MakeEndpoint("h:0");
  const std::unique_ptr<CollectiveEndpoint> peer_ =
      network_.MakeEndpoint("h:1");
  MetricsRegistry metrics_;
  group_testing::Assignments assignments_;
  std::unique_ptr<GroupParameters> parameters_;
};

std::string NoRows() {
  return EncodeRows(0, {}, {}) + EncodeRows(1, {}, {}) + EncodeRows(2, {}, {});
}

std::string VersionOf(const GroupState& state) {
  const int64_t numbers[] = {state.version().step, state.version().epoch, 0};
  return {reinterpret_cast<const char*>(numbers), sizeof(numbers)};
}

TEST_F(DamagedPeerTest, WhatIsNoVersionEndsTheGroupAndNotTheWorker) {
  for (int i = 0; i < kTimes; ++i) {
    const std::unique_ptr<Collective> group = Meet();
    EXPECT_THAT(Give(*group, "no version", ""),
                StatusIs(absl::StatusCode::kUnavailable,
                         testing::HasSubstr("says its step in 10 bytes")));
  }
  EXPECT_OK(state_->steps().ended());
}

TEST_F(DamagedPeerTest, WhatAreNoRowsEndsTheGroupAndMakesNoStep) {
  for (int i = 0; i < kTimes; ++i) {
    const std::unique_ptr<Collective> group = Meet();
    EXPECT_THAT(Give(*group, VersionOf(*state_), NoRows().substr(1)),
                StatusIs(absl::StatusCode::kUnavailable,
                         testing::HasSubstr("gradients of rows from a peer")));
  }
  EXPECT_OK(state_->steps().ended());
  EXPECT_EQ(state_->version().step, 0);
  const std::unique_ptr<Collective> group = Meet();
  EXPECT_OK(Give(*group, VersionOf(*state_), NoRows()));
  EXPECT_EQ(state_->version().step, 1);
  EXPECT_OK(state_->steps().ended());
}

}  // namespace
}  // namespace parasol
