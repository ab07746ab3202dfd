// A real chief with stand-ins for 300 workers and 30 ps.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/resource_limits.h"
#include "base/status_matchers.h"
#include "cluster/client/chief_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/benchmark/stand_in/chief_process.h"
#include "tests/benchmark/stand_in/stand_in_control.h"
#include "tests/benchmark/stand_in/stand_in_service.h"

namespace parasol {
namespace {

using ::testing::Gt;
using ::testing::Lt;

constexpr int kWorkers = 300;
constexpr int kPs = 30;

class StandInTest : public testing::Test {
 protected:
  StandInTest() { RaiseDescriptorLimit(); }

  template <typename Condition>
  static void Await(const Condition& condition) {
    const absl::Time end = Clock::Real().Now() + absl::Minutes(2);
    while (!condition() && Clock::Real().Now() < end) {
      Clock::Real().Pause(absl::Milliseconds(20));
    }
    EXPECT_TRUE(condition());
  }
};

class StandInModesTest : public StandInTest,
                         public testing::WithParamInterface<std::string> {};

TEST_P(StandInModesTest, AChiefHasNoThreadAndLittleMemoryForEachWorker) {
  const StandInPs ps(kPs);
  // Fewer descriptors than tasks, as a shell gives them.
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<MeasuredChief> chief,
      MeasuredChief::Start({.binary = "chief/chief",
                            .directory = absl::StrCat(testing::TempDir(), "/",
                                                      GetParam().substr(0, 4)),
                            .workers = kWorkers,
                            .parameter_server = GetParam(),
                            .soft_descriptors = 128},
                           ps));
  const auto client = ChiefClient::Create(chief->address(), absl::Seconds(5));
  Await([&] { return client->GetStatus().ok(); });
  const ProcessUse alone = chief->use();
  const StandInTasks tasks({.chief_address = chief->address(),
                            .workers = kWorkers,
                            .ps = &ps,
                            .num_ps = kPs});
  // In lockstep most workers' claims wait at any time.
  Await([&] { return tasks.steps() > 5 * kWorkers; });
  const ProcessUse use = chief->use();
  EXPECT_THAT(use.descriptors, Gt(kWorkers + kPs));
  EXPECT_THAT(use.threads, Lt(50));
  EXPECT_THAT((use.resident_bytes - alone.resident_bytes) / (kWorkers + kPs),
              Lt(600'000));
  EXPECT_EQ(chief->process().Poll(), std::nullopt);
}

TEST_F(StandInTest, APsHasNoThreadAndLittleMemoryForEachStream) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<MeasuredPs> ps,
      MeasuredPs::Start("ps/ps", absl::StrCat(testing::TempDir(), "/ps")));
  ProcessUse alone;
  {
    const StandInStreams first(ps->address(), ps->incarnation(), 1);
    Await([&] { return first.open() == 1; });
    alone = ps->use();
  }
  const StandInStreams streams(ps->address(), ps->incarnation(), kWorkers);
  Await([&] { return streams.open() == kWorkers; });
  const ProcessUse use = ps->use();
  EXPECT_THAT(use.descriptors, Gt(kWorkers));
  EXPECT_THAT(use.threads - alone.threads, Lt(8));
  EXPECT_THAT((use.resident_bytes - alone.resident_bytes) / kWorkers,
              Lt(600'000));
}

INSTANTIATE_TEST_SUITE_P(Modes, StandInModesTest,
                         testing::Values("bounded_staleness { bound: 0 }",
                                         "asynchronous {}"),
                         [](const auto& info) {
                           return info.param.substr(0, 4);
                         });

}  // namespace
}  // namespace parasol
