#include "ml/optimizer/nadam.h"

#include <cmath>
#include <cstdint>
#include <memory>

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

// The value after one update that has seen `iterations`, by Keras's loop.
float KerasStep(double decay, double beta_1, int64_t iterations) {
  double product = 1;
  double mu = 0;
  for (int64_t i = 1; i <= iterations + 1; ++i) {
    mu = beta_1 * (1 - .5 * std::pow(.96, decay * i));
    product *= mu;
  }
  const double next =
      beta_1 * (1 - .5 * std::pow(.96, decay * (iterations + 2)));
  const double v_prime = .001 / (1 - std::pow(.999, iterations + 1));
  const double ahead =
      (1 - mu) / (1 - product) + next * (1 - beta_1) / (1 - product * next);
  return -ahead / (std::sqrt(v_prime) + 1e-7);
}

TEST(NadamTest, ProductsOfMomentaAreThoseOfAnyStep) {
  struct Case {
    double decay;
    double beta_1;
  };
  for (const Case c : {Case{.004, .9}, Case{0, .9}, Case{.3, .999999},
                       Case{1000, .9999}, Case{5, 0}}) {
    job::Nadam spec;
    spec.set_learning_rate(1);
    spec.set_schedule_decay(c.decay);
    spec.set_beta_1(c.beta_1);
    ASSERT_OK_AND_ASSIGN(const auto nadam, MakeNadam(spec, /*schedule=*/{}));
    for (const int64_t iterations : {0, 1, 2, 50, 5000, 100000}) {
      SCOPED_TRACE(testing::Message() << c.decay << " " << iterations);
      TestTable table(*nadam, {0});
      table.Apply(*nadam, iterations, {1});
      const float want = KerasStep(c.decay, c.beta_1, iterations);
      EXPECT_THAT(table.value,
                  ElementsAre(FloatNear(want, 1e-5f * std::abs(want))));
    }
  }
}

TEST(NadamTest, LeavesTheValuesOfOtherRows) {
  ASSERT_OK_AND_ASSIGN(const auto nadam,
                       MakeNadam(job::Nadam(), /*schedule=*/{}));
  EXPECT_THAT(nadam->slot_names(), ElementsAre("m", "v"));
  EXPECT_EQ(nadam->other_rows(), Optimizer::OtherRows::kSlots);
}

TEST(NadamTest, ParametersOutOfRangeAreNamed) {
  job::Nadam spec;
  spec.set_schedule_decay(-1);
  EXPECT_THAT(MakeNadam(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nadam.schedule_decay is -1")));
}

}  // namespace
}  // namespace parasol
