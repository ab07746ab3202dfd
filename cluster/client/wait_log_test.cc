#include "cluster/client/wait_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Optional;

const absl::Time kStart = absl::FromUnixSeconds(1000);

wire::HeartbeatResponse State(wire::JobPhase phase,
                              const std::string& missing = "",
                              const std::string& trouble = "") {
  wire::HeartbeatResponse state;
  state.set_phase(phase);
  if (!missing.empty()) state.add_missing_task(missing);
  state.set_trouble(trouble);
  return state;
}

// Returns the line after the state has lasted for `duration`.
std::optional<std::string> LineAfter(const wire::HeartbeatResponse& state,
                                     absl::Duration duration) {
  WaitLog log;
  log.Line(state, kStart);
  return log.Line(state, kStart + duration);
}

TEST(WaitLogTest, AMissingTaskIsNamedWithTheTimeItIsMissed) {
  const auto state = State(wire::TRAINING, "ps/1");
  EXPECT_EQ(LineAfter(state, absl::Seconds(9)), std::nullopt);
  EXPECT_EQ(LineAfter(state, absl::Milliseconds(10500)),
            "waiting for ps/1, since 10s (TRAINING)");
}

TEST(WaitLogTest, TheLastCheckpointIsNamedWithWhatKeepsItBack) {
  EXPECT_EQ(LineAfter(State(wire::FINISHING), absl::Minutes(6)),
            "waiting for the chief to write the last checkpoint, since 6m "
            "(FINISHING)");
  EXPECT_EQ(LineAfter(State(wire::FINISHING, "", "ps/0: disk full"),
                      absl::Seconds(10)),
            "waiting for the chief to write the last checkpoint, since 10s "
            "(FINISHING): ps/0: disk full");
}

TEST(WaitLogTest, ATrainingJobThatMissesNobodyWaitsForNothing) {
  EXPECT_EQ(LineAfter(State(wire::TRAINING), absl::Hours(1)), std::nullopt);
  EXPECT_EQ(LineAfter(State(wire::COMPLETE), absl::Hours(1)), std::nullopt);
}

TEST(WaitLogTest, AnotherWaitCountsFromItsOwnBegin) {
  WaitLog log;
  log.Line(State(wire::WAITING_FOR_PS, "ps/1"), kStart);
  log.Line(State(wire::LOADING), kStart + absl::Seconds(60));
  EXPECT_EQ(log.Line(State(wire::LOADING), kStart + absl::Seconds(69)),
            std::nullopt);
  EXPECT_THAT(log.Line(State(wire::LOADING), kStart + absl::Seconds(70)),
              Optional(std::string("waiting for the ps to load the variables, "
                                   "since 10s (LOADING)")));
}

TEST(WaitLogTest, LinesComeEveryTenSeconds) {
  WaitLog log;
  int lines = 0;
  for (int second = 0; second <= 60; ++second) {
    const auto line =
        log.Line(State(wire::LOADING), kStart + absl::Seconds(second));
    lines += line.has_value();
  }
  EXPECT_EQ(lines, 6);
}

}  // namespace
}  // namespace parasol
