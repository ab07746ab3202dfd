#include "tool/exchange/keras_checkpoint.h"

#include <initializer_list>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::IsSupersetOf;
using ::testing::Pair;

// The model of storage/tensor_files/testdata/make_files.py.
durable::CheckpointManifest TwoLayers() {
  durable::CheckpointManifest manifest;
  manifest.mutable_job()->mutable_optimizer()->mutable_adam();
  for (const char* name :
       {"hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"}) {
    durable::CheckpointVariable& variable = *manifest.add_variable();
    variable.set_name(name);
    for (const char* slot : {"m", "v"}) variable.add_slot(slot);
  }
  return manifest;
}

// Keys that TensorFlow gave the same variables.
TEST(KerasCheckpointTest, KeysAreTensorFlows) {
  EXPECT_THAT(
      KerasCheckpointOf(TwoLayers()).keys,
      IsSupersetOf(
          {Pair("Adam/iter", "optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE"),
           Pair("hidden/kernel",
                "model/layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE"),
           Pair("logits/bias",
                "model/layer_with_weights-1/bias/.ATTRIBUTES/VARIABLE_VALUE"),
           Pair("Adam/logits/bias/v",
                "model/layer_with_weights-1/bias/.OPTIMIZER_SLOT/optimizer/v/"
                ".ATTRIBUTES/VARIABLE_VALUE")}));
}

TEST(KerasCheckpointTest, SlotsBelongToTheirVariables) {
  const auto graph = KerasCheckpointOf(TwoLayers()).graph;
  int slots = 0;
  for (const auto& node : graph.nodes()) {
    for (const auto& slot : node.slot_variables()) {
      const auto name = [&](int id) {
        return graph.nodes(id).attributes(0).full_name();
      };
      EXPECT_EQ(name(slot.slot_variable_node_id()),
                "Adam/" + name(slot.original_variable_node_id()) + "/" +
                    slot.slot_name());
      ++slots;
    }
  }
  EXPECT_EQ(slots, 8);
}

TEST(KerasCheckpointTest, DotsAndSlashesOfNamesAreEscaped) {
  durable::CheckpointManifest manifest;
  manifest.add_variable()->set_name("block/conv/a.b");
  manifest.add_variable()->set_name("temperature");
  EXPECT_THAT(
      KerasCheckpointOf(manifest).keys,
      IsSupersetOf(
          {Pair("block/conv/a.b",
                "model/layer_with_weights-0/a..b/.ATTRIBUTES/VARIABLE_VALUE"),
           Pair("temperature",
                "model/temperature/.ATTRIBUTES/VARIABLE_VALUE")}));
}

}  // namespace
}  // namespace parasol
