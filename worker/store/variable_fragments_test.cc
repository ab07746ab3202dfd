#include "worker/store/variable_fragments.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

using Fragments = std::vector<std::vector<size_t>>;

std::vector<VariableSpec> VariablesOf(const std::vector<int64_t>& sizes) {
  std::vector<VariableSpec> variables;
  for (const int64_t size : sizes) {
    variables.emplace_back().shape = {size};
  }
  return variables;
}

TEST(SplitIntoFragmentsTest, EqualLayersAreDealtOutInTurn) {
  // Kernels and biases of six layers.
  const auto variables =
      VariablesOf({90, 5, 90, 5, 90, 5, 90, 5, 90, 5, 90, 5});
  EXPECT_THAT(
      SplitIntoFragments(variables, 3),
      IsOkAndHolds(Fragments{{7, 6, 1, 0}, {9, 8, 3, 2}, {11, 10, 5, 4}}));
}

TEST(SplitIntoFragmentsTest, ALargeVariableStandsAlone) {
  EXPECT_THAT(SplitIntoFragments(VariablesOf({10, 4, 100, 6, 20}), 2),
              IsOkAndHolds(Fragments{{2}, {4, 3, 1, 0}}));
}

TEST(SplitIntoFragmentsTest, FrozenVariablesAreInNone) {
  auto variables = VariablesOf({10, 50, 10});
  variables[1].frozen = true;
  EXPECT_THAT(SplitIntoFragments(variables, 2),
              IsOkAndHolds(Fragments{{0}, {2}}));
  EXPECT_THAT(SplitIntoFragments(variables, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("fragments: 3 fragments of whole variables, "
                                 "but only 2 of the model's change")));
}

}  // namespace
}  // namespace parasol
