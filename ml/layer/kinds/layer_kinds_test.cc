#include "ml/layer/kinds/layer_kinds.h"

#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::UnorderedElementsAreArray;

TEST(LayerKindsTest, EveryKindOfAJobsLayersIsInTheListOnce) {
  const auto& kinds = *job::Layer::descriptor()->FindOneofByName("kind");
  std::vector<int> fields;
  for (int i = 0; i < kinds.field_count(); ++i) {
    fields.push_back(kinds.field(i)->number());
  }
  std::vector<int> listed;
  for (const LayerKind* const kind : LayerKinds()) {
    listed.push_back(kind->field);
  }
  EXPECT_THAT(listed, UnorderedElementsAreArray(fields));
}

TEST(LayerKindsTest, EveryKindMakesLayers) {
  for (const LayerKind* const kind : LayerKinds()) {
    EXPECT_NE(kind->make, nullptr) << "field " << kind->field;
  }
}

TEST(LayerKindsTest, ALayersKindIsTheOneOfItsField) {
  job::Layer layer;
  EXPECT_EQ(KindOf(layer), nullptr);
  EXPECT_EQ(KindNameOf(layer), "");
  layer.mutable_batch_normalization();
  ASSERT_NE(KindOf(layer), nullptr);
  EXPECT_EQ(KindOf(layer)->field, job::Layer::kBatchNormalization);
  EXPECT_EQ(KindNameOf(layer), "batch_normalization");
}

}  // namespace
}  // namespace parasol
