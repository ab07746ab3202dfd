#include "loop/peers/kept_state.h"

#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/peers/copied_values.h"
#include "loop/peers/testing/small_program.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::vector<float> ValuesOf(GroupState& state) {
  std::vector<float> all;
  EXPECT_OK(state.Read([&all](ParameterStore& store) {
    for (size_t i = 0; i < store.num_variables(); ++i) {
      for (int array = 0; array < store.variables().num_arrays(i); ++array) {
        const auto values = store.variables().Read(i, array);
        all.insert(all.end(), values->begin(), values->end());
      }
      all.push_back(static_cast<float>(store.variables().updates()[i]));
    }
    return absl::OkStatus();
  }));
  return all;
}

TEST(KeptStateTest, AStateIsTakenWithItsValuesAndItsStep) {
  SmallProgram program({});
  GroupState state(program.store(), Clock::Real());
  auto loaded = state.MakeParameters();
  ASSERT_OK(loaded);
  ASSERT_OK(CopyValues(program.store().variables(), (*loaded)->variables()));
  const std::vector<float> slot = {1, 2, 3};
  ASSERT_OK((*loaded)->variables().Write(0, 1, slot));
  (*loaded)->variables().SetUpdates(1, 7);
  state.Replace(*std::move(loaded), {.step = 12, .epoch = 1});
  const auto kept = KeepState(state);
  ASSERT_OK(kept);

  GroupState other(program.store(), Clock::Real());
  ASSERT_OK(TakeKeptState(kept->get(), other));
  EXPECT_EQ(other.version(), state.version());
  EXPECT_EQ(ValuesOf(other), ValuesOf(state));
}

TEST(KeptStateTest, AStateOfOtherVariablesIsRefused) {
  SmallProgram program({});
  GroupState state(program.store(), Clock::Real());
  state.Load(*state.MakeParameters(), 3);
  const auto kept = KeepState(state);
  ASSERT_OK(kept);
  SmallProgram larger({.elements = 4});
  GroupState other(larger.store(), Clock::Real());
  EXPECT_THAT(TakeKeptState(kept->get(), other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("of other variables")));
  EXPECT_FALSE(other.version().is_there());
}

TEST(KeptStateTest, AFileThatIsCutIsRefused) {
  SmallProgram program({});
  GroupState state(program.store(), Clock::Real());
  state.Load(*state.MakeParameters(), 3);
  const auto kept = KeepState(state);
  ASSERT_OK(kept);
  ASSERT_EQ(ftruncate(kept->get(), 70), 0);
  GroupState other(program.store(), Clock::Real());
  EXPECT_THAT(
      TakeKeptState(kept->get(), other),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("end too early")));
}

TEST(KeptStateTest, WithoutAStateThereIsNothingToKeep) {
  SmallProgram program({});
  GroupState state(program.store(), Clock::Real());
  EXPECT_THAT(KeepState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace parasol
