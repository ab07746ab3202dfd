#include "cluster/job/validate_layer.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/layer_defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A model with this layer, and a table "t".
job::Model ModelOf(const std::string& layer) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("layer { ", layer, " } sparse_table { name: 't' }"), &model))
      << layer;
  FillLayer(0, *model.mutable_layer(0));
  return model;
}

TEST(ValidateLayerTest, TheBordersOfRangesAreIn) {
  for (const char* layer :
       {"dense { units: 1 }",
        "dense { units: 2147483647 kernel_l2: 0 }",
        "activation: SOFTMAX",
        "flatten {}",
        "add {}",
        "global_average_pool {}",
        "factorization_machine {}",
        "conv2d { filters: 1 kernel_size: 1 }",
        "conv2d { filters: 1 kernel_size: 32768 kernel_size: 1 stride: 32768 }",
        "max_pool {}",
        "average_pool { pool_size: 1 stride: 1 stride: 2 }",
        "batch_normalization { momentum: 0 epsilon: 1 }",
        "batch_normalization { momentum: 1 }",
        "layer_normalization {}",
        "conv1d { filters: 1 kernel_size: 2 padding: CAUSAL }",
        "depthwise_conv2d { kernel_size: [2, 3] dilation_rate: [1, 2] }",
        "separable_conv2d { filters: 2 kernel_size: 3 }",
        "conv2d_transpose { filters: 2 kernel_size: 3 stride: 2 }",
        "group_normalization { groups: -1 }",
        "rms_normalization {}",
        "lstm { units: 3 bidirectional: CONCAT }",
        "gru { units: 3 recurrent_initializer { glorot_uniform {} } }",
        "multi_head_attention { num_heads: 2 key_dim: 3 }",
        "positional_embedding { sinusoidal: true }",
        "global_average_pool1d {}",
        "global_max_pool1d {}",
        "dropout { rate: 0 }",
        "dropout { rate: 0.999 }",
        "concatenate { axis: 0 }",
        "embedding { table: 't' }",
        "embedding_bag { table: 't' l2: 0.1 }",
        "pad { before: 0 before: 1 after: 0 after: 2 }",
        "custom { type: 'c' output_shape: 1 variable { name: 'v' } }"}) {
    SCOPED_TRACE(layer);
    EXPECT_OK(ValidateLayer(0, ModelOf(layer)).first());
  }
}

TEST(ValidateLayerTest, AValueOutsideItsRangeIsNamedWithItsField) {
  struct Case {
    std::string layer;
    std::string fault;  // behind "model.layer[0]"
  };
  const Case cases[] = {
      {"", ": no kind"},
      {"name: '' flatten {}", ".name: is not set"},
      {"dense {}", ".dense.units: is not set"},
      {"dense { units: 0 }", ".dense.units: 0 is not in 1 to 2147483647"},
      {"dense { units: 1 kernel_l2: -1 }", ".dense.kernel_l2: -1 is negative"},
      {"dense { units: 1 bias_l2: nan }", ".dense.bias_l2: nan"},
      {"dense { units: 1 bias_initializer { constant { value: inf } } }",
       ".dense.bias_initializer: constant.value: inf"},
      {"conv2d { kernel_size: 3 }", ".conv2d.filters: is not set"},
      {"conv2d { filters: -1 kernel_size: 3 }", ".conv2d.filters: -1"},
      {"conv2d { filters: 1 }", ".conv2d.kernel_size: is not set"},
      {"conv2d { filters: 1 kernel_size: 3 kernel_size: 0 }",
       ".conv2d.kernel_size[1]: 0"},
      {"conv2d { filters: 1 kernel_size: [3, 3, 3] }",
       ".conv2d.kernel_size: 3 numbers"},
      {"conv2d { filters: 1 kernel_size: 3 stride: 0 }",
       ".conv2d.stride[0]: 0"},
      {"conv2d { filters: 1 kernel_size: 3 kernel_initializer { random_normal "
       "{ stddev: -1 } } }",
       ".conv2d.kernel_initializer: random_normal.stddev: -1"},
      {"max_pool { pool_size: 0 }", ".max_pool.pool_size[0]: 0"},
      {"average_pool { stride: -1 }", ".average_pool.stride[0]: -1"},
      {"batch_normalization { momentum: 1.5 }",
       ".batch_normalization.momentum: 1.5 is not in 0 to 1"},
      {"batch_normalization { momentum: nan }",
       ".batch_normalization.momentum: nan"},
      {"batch_normalization { epsilon: 0 }", ".batch_normalization.epsilon: 0"},
      {"batch_normalization { gamma_initializer { constant { value: nan } } }",
       ".batch_normalization.gamma_initializer: constant.value: nan"},
      {"conv2d { filters: 1 kernel_size: 3 padding: CAUSAL }",
       ".conv2d.padding: CAUSAL is for conv1d"},
      {"max_pool { padding: CAUSAL }", ".max_pool.padding: CAUSAL"},
      {"conv1d { kernel_size: 3 }", ".conv1d.filters: is not set"},
      {"conv1d { filters: 1 }", ".conv1d.kernel_size: is not set"},
      {"conv1d { filters: 1 kernel_size: 3 dilation_rate: 0 }",
       ".conv1d.dilation_rate: 0"},
      {"depthwise_conv2d {}", ".depthwise_conv2d.kernel_size: is not set"},
      {"depthwise_conv2d { kernel_size: 3 depth_multiplier: 0 }",
       ".depthwise_conv2d.depth_multiplier: 0"},
      {"separable_conv2d { kernel_size: 3 }",
       ".separable_conv2d.filters: is not set"},
      {"separable_conv2d { filters: 1 kernel_size: 3 dilation_rate: 0 }",
       ".separable_conv2d.dilation_rate[0]: 0"},
      {"conv2d_transpose { filters: 1 kernel_size: 3 padding: CAUSAL }",
       ".conv2d_transpose.padding: CAUSAL"},
      {"group_normalization { groups: 0 }", ".group_normalization.groups: 0"},
      {"rms_normalization { epsilon: 0 }", ".rms_normalization.epsilon: 0"},
      {"lstm { return_sequences: true }", ".lstm.units: is not set"},
      {"lstm { units: 2 bias_initializer { orthogonal {} } }",
       ".lstm.bias_initializer: orthogonal"},
      {"lstm { units: 2 recurrent_l2: -1 }", ".lstm.recurrent_l2: -1"},
      {"gru { units: 0 }", ".gru.units: 0"},
      {"gru { units: 2 bias_initializer { unit_forget {} } }",
       ".gru.bias_initializer: unit_forget"},
      {"gru { units: 2 go_backwards: true bidirectional: AVE }",
       ".gru.go_backwards: true"},
      {"multi_head_attention { key_dim: 2 }",
       ".multi_head_attention.num_heads: is not set"},
      {"multi_head_attention { num_heads: 2 }",
       ".multi_head_attention.key_dim: is not set"},
      {"multi_head_attention { num_heads: 2 key_dim: 2 dropout: 1 }",
       ".multi_head_attention.dropout: 1"},
      {"positional_embedding { max_wavelength: -1 }",
       ".positional_embedding.max_wavelength: -1"},
      {"dense { units: 1 bias_initializer { orthogonal {} } }",
       ".dense.bias_initializer: orthogonal"},
      {"dense { units: 1 kernel_initializer { unit_forget {} } }",
       ".dense.kernel_initializer: unit_forget"},
      {"layer_normalization { epsilon: -1 }",
       ".layer_normalization.epsilon: -1 is not in 1.17549e-38 to 1"},
      {"layer_normalization { epsilon: 1e-46 }",
       ".layer_normalization.epsilon: 1e-46 is not in"},
      {"batch_normalization { epsilon: 1e-39 }",
       ".batch_normalization.epsilon: 1e-39 is not in"},
      {"dropout {}", ".dropout.rate: is not set"},
      {"dropout { rate: 1 }", ".dropout.rate: 1 is not at least 0 and below 1"},
      {"dropout { rate: nan }", ".dropout.rate: nan"},
      {"concatenate { axis: -2 }", ".concatenate.axis: -2"},
      {"embedding {}", ".embedding.table: is not set"},
      {"embedding { table: 'x\\n' }",
       ".embedding.table: \"x\\n\" is the name of no model.sparse_table"},
      {"embedding { table: 't' l2: -1 }", ".embedding.l2: -1"},
      {"embedding_bag { table: 'x' }", ".embedding_bag.table: \"x\""},
      {"pad { before: 1 }", ".pad: before has 1 numbers and after 0"},
      {"pad { before: -1 after: 1 }", ".pad.before[0]: -1"},
      {"custom { output_shape: 1 }", ".custom.type: is not set"},
      {"custom { type: 'c' }", ".custom.output_shape: is not set"},
      {"custom { type: 'c' output_shape: 0 }", ".custom.output_shape[0]: 0"},
      {"custom { type: 'c' output_shape: 1 variable { shape: 1 } }",
       ".custom.variable[0].name: is not set"},
      {"custom { type: 'c' output_shape: 1 variable { name: 'v' shape: 0 } }",
       ".custom.variable[0].shape[0]: 0"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.layer);
    EXPECT_THAT(
        ValidateLayer(0, ModelOf(c.layer)).first(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(StartsWith(absl::StrCat("model.layer[0]", c.fault)),
                       Not(HasSubstr("\n")))));
  }
}

}  // namespace
}  // namespace parasol
