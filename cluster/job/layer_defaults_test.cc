#include "cluster/job/layer_defaults.h"

#include <string>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

job::Layer Parse(const std::string& text) {
  job::Layer layer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layer))
      << text;
  return layer;
}

TEST(FillLayerTest, IsAsKeras) {
  const std::string affine =
      " use_bias: true activation: ACTIVATION_UNSPECIFIED"
      " kernel_initializer { glorot_uniform {} } bias_initializer { zeros {} }"
      " kernel_l2: 0 bias_l2: 0 ";
  const std::pair<std::string, std::string> cases[] = {
      {"dense {}", "name: 'dense_3' dense {" + affine + "}"},
      {"conv2d {}",
       "name: 'conv2d_3' conv2d { stride: 1 padding: VALID" + affine + "}"},
      {"conv1d {}", "name: 'conv1d_3' conv1d { stride: 1 padding: VALID" +
                        affine + "dilation_rate: 1 }"},
      {"depthwise_conv2d {}",
       "name: 'depthwise_conv2d_3' depthwise_conv2d { stride: 1 padding: VALID "
       "depth_multiplier: 1 dilation_rate: 1" +
           affine + "}"},
      {"separable_conv2d {}",
       "name: 'separable_conv2d_3' separable_conv2d { stride: 1 padding: VALID "
       "depth_multiplier: 1 dilation_rate: 1" +
           affine + "}"},
      {"conv2d_transpose {}",
       "name: 'conv2d_transpose_3' conv2d_transpose { stride: 1 padding: "
       "VALID" +
           affine + "}"},
      {"group_normalization {}",
       "name: 'group_normalization_3' group_normalization { groups: 32 "
       "epsilon: 0.001 center: true scale: true }"},
      {"rms_normalization {}",
       "name: 'rms_normalization_3' rms_normalization { epsilon: 1e-6 }"},
      {"lstm {}",
       "name: 'lstm_3' lstm { return_sequences: false go_backwards: false "
       "bidirectional: ONE_DIRECTION use_bias: true unit_forget_bias: true "
       "kernel_initializer { glorot_uniform {} } "
       "recurrent_initializer { orthogonal {} } "
       "bias_initializer { unit_forget {} } "
       "kernel_l2: 0 recurrent_l2: 0 bias_l2: 0 }"},
      {"lstm { bias_initializer { constant { value: 1 } } }",
       "name: 'lstm_3' lstm { return_sequences: false go_backwards: false "
       "bidirectional: ONE_DIRECTION use_bias: true unit_forget_bias: false "
       "kernel_initializer { glorot_uniform {} } "
       "recurrent_initializer { orthogonal {} } "
       "bias_initializer { constant { value: 1 } } "
       "kernel_l2: 0 recurrent_l2: 0 bias_l2: 0 }"},
      {"gru {}",
       "name: 'gru_3' gru { return_sequences: false go_backwards: false "
       "bidirectional: ONE_DIRECTION use_bias: true "
       "kernel_initializer { glorot_uniform {} } "
       "recurrent_initializer { orthogonal {} } bias_initializer { zeros {} } "
       "kernel_l2: 0 recurrent_l2: 0 bias_l2: 0 }"},
      {"multi_head_attention { num_heads: 2 key_dim: 3 }",
       "name: 'multi_head_attention_3' multi_head_attention { num_heads: 2 "
       "key_dim: 3 value_dim: 3 output_dim: 0 causal: false masked: false "
       "dropout: 0 use_bias: true kernel_initializer { glorot_uniform {} } "
       "bias_initializer { zeros {} } kernel_l2: 0 bias_l2: 0 }"},
      {"positional_embedding {}",
       "name: 'positional_embedding_3' positional_embedding { "
       "sinusoidal: false max_wavelength: 10000 "
       "initializer { glorot_uniform {} } }"},
      {"activation: RELU", "name: 'activation_3' activation: RELU"},
      {"flatten {}", "name: 'flatten_3' flatten {}"},
      {"batch_normalization {}",
       "name: 'batch_normalization_3' batch_normalization { momentum: 0.99 "
       "epsilon: 0.001 center: true scale: true gamma_initializer { constant { "
       "value: 1 } } }"},
      {"layer_normalization {}",
       "name: 'layer_normalization_3' layer_normalization { epsilon: 0.001 "
       "center: true scale: true }"},
      {"max_pool {}",
       "name: 'max_pool_3' max_pool { pool_size: 2 stride: 2 padding: VALID }"},
      {"average_pool { pool_size: 3 pool_size: 4 padding: SAME }",
       "name: 'average_pool_3' average_pool { pool_size: 3 pool_size: 4 "
       "stride: 3 stride: 4 padding: SAME }"},
      {"global_average_pool {}",
       "name: 'global_average_pool_3' global_average_pool {}"},
      {"dropout { rate: 0.5 }", "name: 'dropout_3' dropout { rate: 0.5 }"},
      {"add {}", "name: 'add_3' add {}"},
      {"concatenate {}", "name: 'concatenate_3' concatenate { axis: -1 }"},
      {"embedding {}", "name: 'embedding_3' embedding { l2: 0 }"},
      {"embedding_bag {}",
       "name: 'embedding_bag_3' embedding_bag { combiner: SUM use_bias: false "
       "l2: 0 }"},
      {"factorization_machine {}",
       "name: 'factorization_machine_3' factorization_machine {}"},
      {"pad {}", "name: 'pad_3' pad {}"},
      {"custom { variable {} }",
       "name: 'custom_3' custom { variable { initializer { glorot_uniform {} } "
       "} }"},
  };
  for (const auto& [given, want] : cases) {
    job::Layer layer = Parse(given);
    FillLayer(3, layer);
    EXPECT_EQ(layer.DebugString(), Parse(want).DebugString());
    FillLayer(4, layer);
    EXPECT_EQ(layer.DebugString(), Parse(want).DebugString())
        << "applied twice";
  }
}

TEST(FillLayerTest, WhatIsSetStays) {
  for (const std::string text :
       {"name: 'n' conv2d { filters: 1 kernel_size: 2 stride: 3 padding: SAME "
        "use_bias: false activation: GELU kernel_initializer { he_normal {} } "
        "bias_initializer { random_uniform { minval: 0 maxval: 1 } } "
        "kernel_l2: 1 bias_l2: 2 }",
        "name: 'n' batch_normalization { momentum: 0 epsilon: 1 center: false "
        "scale: false gamma_initializer { zeros {} } }",
        "name: 'n' layer_normalization { epsilon: 1 center: false scale: false "
        "}",
        "name: 'n' max_pool { pool_size: 3 stride: 1 padding: SAME }",
        "name: 'n' concatenate { axis: 0 }",
        "name: 'n' embedding_bag { table: 't' combiner: MEAN use_bias: true "
        "l2: 1 }"}) {
    job::Layer layer = Parse(text);
    FillLayer(0, layer);
    EXPECT_EQ(layer.DebugString(), Parse(text).DebugString());
  }
}

}  // namespace
}  // namespace parasol
