#include "ml/loss/loss_kinds.h"

#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::UnorderedElementsAreArray;

TEST(LossKindsTest, EveryKindOfAJobsLossIsInTheListOnce) {
  const auto& kinds = *job::Loss::descriptor()->FindOneofByName("kind");
  std::vector<int> fields;
  for (int i = 0; i < kinds.field_count(); ++i) {
    fields.push_back(kinds.field(i)->number());
  }
  std::vector<int> listed;
  for (const LossKind* const kind : LossKinds()) listed.push_back(kind->field);
  EXPECT_THAT(listed, UnorderedElementsAreArray(fields));
}

TEST(LossKindsTest, EveryKindHasAFormOfLabelAndIsComputed) {
  for (const LossKind* const kind : LossKinds()) {
    EXPECT_NE(kind->label, nullptr) << "field " << kind->field;
    EXPECT_NE(kind->compute, nullptr) << "field " << kind->field;
  }
}

}  // namespace
}  // namespace parasol
