#include "cluster/check/idle_settings.h"

#include <cstdint>
#include <string>

#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

job::Job JobOf(const std::string& text) {
  const auto job = ParseJob(text, "j.textproto");
  EXPECT_OK(job);
  return *job;
}

TEST(IdleSettingsTest, RatesThatAreZeroAsFloat32AreNamed) {
  EXPECT_THAT(
      ZeroRateWarnings(JobOf(
          "optimizer { adagrad { learning_rate: 1e-50 } } model { layer { "
          "optimizer { sgd { learning_rate: 0 } } } sparse_table { name: 't' "
          "optimizer { sgd { learning_rate: 1e-40 } } } }")),
      ElementsAre(HasSubstr("optimizer.adagrad.learning_rate: is 1e-50, 0 as "
                            "float32: "),
                  HasSubstr("model.layer[0].optimizer.sgd.learning_rate: is "
                            "0: ")));
  EXPECT_THAT(ZeroRateWarnings(JobOf("optimizer { adam {} }")), IsEmpty());
}

TEST(IdleSettingsTest, AnAdmissionThatNoIdReachesIsNamed) {
  const job::Job job = JobOf(
      "model { sparse_table { name: 'a' admission { min_count: 21 } } "
      "sparse_table { name: 'b' admission { min_count: 20 } } sparse_table { "
      "name: 'c' } }");
  EXPECT_THAT(AdmissionWarnings(job.model(), {10, 10, 1}, /*epochs=*/2),
              ElementsAre(HasSubstr(
                  "model.sparse_table[0].admission.min_count: is 21, but no id "
                  "of table \"a\" comes more than 20 times in 2 epochs")));
  EXPECT_THAT(AdmissionWarnings(job.model(), {10, 10, 1}, /*epochs=*/3),
              IsEmpty());
  EXPECT_THAT(AdmissionWarnings(job.model(), {INT64_MAX, 0, 1}, INT64_MAX),
              IsEmpty())
      << "too many to count, or none";
  EXPECT_THAT(AdmissionWarnings(job.model(), {}, /*epochs=*/1), IsEmpty());
}

}  // namespace
}  // namespace parasol
