#include "ml/optimizer/lion.h"

#include <cmath>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/plain_table.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

// The paper's Algorithm 2, in double.
TEST(LionTest, IsTheAlgorithmOfThePaper) {
  job::Lion spec;
  spec.set_learning_rate(.01);
  spec.set_weight_decay(.5);
  ASSERT_OK_AND_ASSIGN(const auto lion, MakeLion(spec, /*schedule=*/{}));
  EXPECT_THAT(lion->slot_names(), ElementsAre("m"));
  TestTable table(*lion, {1, -2, 0});
  double w[] = {1, -2, 0};
  double m[] = {0, 0, 0};
  for (int step = 0; step < 20; ++step) {
    std::vector<float> gradient;
    for (int i = 0; i < 3; ++i) {
      const auto g = static_cast<float>(std::sin(3 * step + i) * (i + .1));
      gradient.push_back(g);
      const double c = .9 * m[i] + .1 * g;
      w[i] -= .01 * ((c > 0) - (c < 0) + .5 * w[i]);
      m[i] = .99 * m[i] + .01 * g;
    }
    table.Apply(*lion, step, gradient);
    EXPECT_THAT(table.value,
                ElementsAre(FloatNear(w[0], 1e-6), FloatNear(w[1], 1e-6),
                            FloatNear(w[2], 1e-6)));
    EXPECT_THAT(table.slots[0],
                ElementsAre(FloatNear(m[0], 1e-6), FloatNear(m[1], 1e-6),
                            FloatNear(m[2], 1e-6)));
  }
}

TEST(LionTest, WithoutAMomentumItStandsAndANanStays) {
  ASSERT_OK_AND_ASSIGN(const auto lion, MakeLion(job::Lion(), /*schedule=*/{}));
  TestTable table(*lion, {1, 1});
  table.Apply(*lion, 0, {0, std::nanf("")});
  EXPECT_EQ(table.value[0], 1);
  EXPECT_TRUE(std::isnan(table.value[1]));
}

TEST(LionTest, ParametersOutOfRangeAreNamed) {
  job::Lion spec;
  spec.set_weight_decay(-1);
  EXPECT_THAT(MakeLion(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lion.weight_decay is -1")));
}

}  // namespace
}  // namespace parasol
