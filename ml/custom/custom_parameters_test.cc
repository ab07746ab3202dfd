#include "ml/custom/custom_parameters.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CustomParameters Given(
    const std::vector<std::pair<std::string, std::string>>& values) {
  job::Custom spec;
  for (const auto& [name, value] : values) {
    job::CustomParameter& parameter = *spec.add_parameter();
    parameter.set_name(name);
    parameter.set_value(value);
  }
  return CustomParameters(spec.parameter());
}

TEST(CustomParametersTest, AValueIsReadOrItsDefault) {
  CustomParameters parameters = Given({{"tau", " 0.25 "}, {"link", "log"}});
  EXPECT_EQ(parameters.Number("tau", .5, 0, 1), .25);
  EXPECT_EQ(parameters.Number("width", 3, 1, 9), 3);
  EXPECT_EQ(parameters.Text("link", "none"), "log");
  EXPECT_EQ(parameters.Text("mode", "mean"), "mean");
  EXPECT_OK(parameters.CheckAllRead());
}

TEST(CustomParametersTest, ANumberOutOfItsRangeIsNamed) {
  for (const std::string value : {"1.5", "nan", "many", "", "-0.1"}) {
    SCOPED_TRACE(value);
    CustomParameters parameters = Given({{"tau", value}});
    parameters.Number("tau", .5, 0, 1);
    EXPECT_THAT(parameters.CheckAllRead(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("tau is \"" + value +
                                   "\", not a number from 0 to 1")));
  }
}

TEST(CustomParametersTest, AParameterThatNobodyReadsIsNamed) {
  CustomParameters parameters = Given({{"tao", "1"}});
  parameters.Number("tau", .5, 0, 1);
  EXPECT_THAT(parameters.CheckAllRead(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"tao\" is not known (known are: tau)"),
                             HasSubstr("did you mean \"tau\"?"))));
}

TEST(CustomParametersTest, OneThatIsGivenTwiceIsNamed) {
  CustomParameters parameters = Given({{"tau", "1"}, {"tau", "0"}});
  parameters.Number("tau", .5, 0, 1);
  EXPECT_THAT(parameters.CheckAllRead(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"tau\" is given twice")));
}

}  // namespace
}  // namespace parasol
