#ifndef PARASOL_ML_BUILDER_SEQUENCE_LAYERS_H_
#define PARASOL_ML_BUILDER_SEQUENCE_LAYERS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "ml/builder/layers.h"
#include "ml/builder/model_builder.h"
#include "proto/job.pb.h"

// Functions for layers over [steps, channels], like layers.h. `inputs` of a
// layer that takes a mask are the steps, and the mask [steps] if there is one.
namespace parasol::layers {

struct Conv1DOptions {
  int64_t filters = 0;
  int64_t kernel_size = 0;
  int64_t stride = 1;
  job::Padding padding = job::PADDING_UNSPECIFIED;
  int64_t dilation_rate = 1;
  bool use_bias = true;
  job::Activation activation = job::ACTIVATION_UNSPECIFIED;
  job::Initializer kernel_initializer = {};
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
Value Conv1D(const Value& x, const Conv1DOptions& options);

struct RecurrentOptions {
  int64_t units = 0;
  bool return_sequences = false;
  bool go_backwards = false;
  job::Bidirectional::Merge bidirectional = job::Bidirectional::ONE_DIRECTION;
  bool use_bias = true;
  job::Initializer kernel_initializer = {};
  job::Initializer recurrent_initializer = {};
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double recurrent_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
// Options without a bias_initializer give an Lstm's forget gate a bias of 1.
Value Lstm(absl::Span<const Value> inputs, const RecurrentOptions& options);
Value Gru(absl::Span<const Value> inputs, const RecurrentOptions& options);

struct MultiHeadAttentionOptions {
  int64_t num_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;   // 0: key_dim
  int64_t output_dim = 0;  // 0: the queries' width
  bool causal = false;
  bool masked = false;  // the last input is a mask
  double dropout = 0;
  bool use_bias = true;
  job::Initializer kernel_initializer = {};
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
// `inputs`: queries, values, keys and a mask, of which the first is needed.
Value MultiHeadAttention(absl::Span<const Value> inputs,
                         const MultiHeadAttentionOptions& options);

struct PositionalEmbeddingOptions {
  bool sinusoidal = false;
  double max_wavelength = 10000;
  job::Initializer initializer = {};
  std::string name = {};
};
Value PositionalEmbedding(const Value& x,
                          const PositionalEmbeddingOptions& options = {});

Value GlobalAveragePool1D(absl::Span<const Value> inputs,
                          const Named& options = {});
Value GlobalMaxPool1D(absl::Span<const Value> inputs,
                      const Named& options = {});

}  // namespace parasol::layers

#endif  // PARASOL_ML_BUILDER_SEQUENCE_LAYERS_H_
