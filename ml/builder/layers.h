#ifndef PARASOL_ML_BUILDER_LAYERS_H_
#define PARASOL_ML_BUILDER_LAYERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ml/builder/model_builder.h"
#include "proto/job.pb.h"

// One function for each kind of layer of a job file, with the same name. Each
// adds a layer to the builder that its input belongs to and returns the layer's
// output. Options that are not set have the job file's defaults (docs/job.md).
namespace parasol::layers {

struct DenseOptions {
  int64_t units = 0;
  bool use_bias = true;
  job::Activation activation = job::ACTIVATION_UNSPECIFIED;
  job::Initializer kernel_initializer = {};
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
Value Dense(const Value& x, const DenseOptions& options);

struct Conv2DOptions {
  int64_t filters = 0;
  std::vector<int64_t> kernel_size = {};
  std::vector<int64_t> stride = {};
  job::Padding padding = job::PADDING_UNSPECIFIED;
  bool use_bias = true;
  job::Activation activation = job::ACTIVATION_UNSPECIFIED;
  job::Initializer kernel_initializer = {};
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
Value Conv2D(const Value& x, const Conv2DOptions& options);
Value Conv2DTranspose(const Value& x, const Conv2DOptions& options);

struct DepthwiseConv2DOptions {
  std::vector<int64_t> kernel_size = {};
  std::vector<int64_t> stride = {};
  job::Padding padding = job::PADDING_UNSPECIFIED;
  int64_t depth_multiplier = 1;
  std::vector<int64_t> dilation_rate = {};
  bool use_bias = true;
  job::Activation activation = job::ACTIVATION_UNSPECIFIED;
  job::Initializer kernel_initializer = {};
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
Value DepthwiseConv2D(const Value& x, const DepthwiseConv2DOptions& options);

struct SeparableConv2DOptions {
  int64_t filters = 0;
  std::vector<int64_t> kernel_size = {};
  std::vector<int64_t> stride = {};
  job::Padding padding = job::PADDING_UNSPECIFIED;
  int64_t depth_multiplier = 1;
  std::vector<int64_t> dilation_rate = {};
  bool use_bias = true;
  job::Activation activation = job::ACTIVATION_UNSPECIFIED;
  job::Initializer kernel_initializer = {};  // both kernels
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
Value SeparableConv2D(const Value& x, const SeparableConv2DOptions& options);

struct BatchNormalizationOptions {
  double momentum = .99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  job::Initializer gamma_initializer = {};
  std::string name = {};
};
Value BatchNormalization(const Value& x,
                         const BatchNormalizationOptions& options = {});

struct LayerNormalizationOptions {
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  std::string name = {};
};
Value LayerNormalization(const Value& x,
                         const LayerNormalizationOptions& options = {});

struct GroupNormalizationOptions {
  int64_t groups = 32;  // -1: one for each channel
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  std::string name = {};
};
Value GroupNormalization(const Value& x,
                         const GroupNormalizationOptions& options = {});

struct RmsNormalizationOptions {
  double epsilon = 1e-6;
  std::string name = {};
};
Value RmsNormalization(const Value& x,
                       const RmsNormalizationOptions& options = {});

struct PoolOptions {
  std::vector<int64_t> pool_size = {};
  std::vector<int64_t> stride = {};
  job::Padding padding = job::PADDING_UNSPECIFIED;
  std::string name = {};
};
Value MaxPool(const Value& x, const PoolOptions& options);
Value AveragePool(const Value& x, const PoolOptions& options);

struct EmbeddingOptions {
  std::string table = {};  // added by ModelBuilder::SparseTable()
  double l2 = 0;
  std::string name = {};
};
Value Embedding(const Value& ids, const EmbeddingOptions& options);

struct EmbeddingBagOptions {
  std::string table = {};  // added by ModelBuilder::SparseTable()
  job::EmbeddingBag::Combiner combiner =
      job::EmbeddingBag::COMBINER_UNSPECIFIED;
  bool use_bias = false;
  double l2 = 0;
  std::string name = {};
};
Value EmbeddingBag(const Value& ids, const EmbeddingBagOptions& options);

struct PadOptions {
  // Numbers of zeros, one for each axis of an example.
  std::vector<int64_t> before = {};
  std::vector<int64_t> after = {};
  std::string name = {};
};
Value Pad(const Value& x, const PadOptions& options);

// A layer registered by a CustomLayerRegistration (ml/layer/custom_layer.h).
struct CrossOptions {
  int64_t projection_dim = 0;  // rank of the kernel; 0: full
  bool use_bias = true;
  job::Initializer kernel_initializer = {};
  job::Initializer bias_initializer = {};
  double kernel_l2 = 0;
  double bias_l2 = 0;
  std::string name = {};
};
Value Cross(const Value& x0, const Value& x, const CrossOptions& options = {});

struct DotInteractionOptions {
  bool self_interaction = false;
  std::string name = {};
};
Value DotInteraction(const Value& x, const DotInteractionOptions& options = {});

struct DotOptions {
  bool normalize = false;
  std::string name = {};
};
Value Dot(const Value& a, const Value& b, const DotOptions& options = {});

struct CustomOptions {
  std::string type = {};
  std::vector<int64_t> output_shape = {};
  std::vector<job::CustomVariable> variables = {};
  std::map<std::string, std::string> parameters = {};
  std::string name = {};
};
Value Custom(absl::Span<const Value> inputs, const CustomOptions& options);

struct Named {
  std::string name = {};
};
Value Activation(const Value& x, job::Activation activation,
                 const Named& options = {});
Value Relu(const Value& x, const Named& options = {});
Value Flatten(const Value& x, const Named& options = {});
Value GlobalAveragePool(const Value& x, const Named& options = {});
Value Dropout(const Value& x, double rate, const Named& options = {});
Value Add(absl::Span<const Value> inputs, const Named& options = {});
Value Multiply(absl::Span<const Value> inputs, const Named& options = {});
// One axis may be -1.
Value Reshape(const Value& x, absl::Span<const int64_t> shape,
              const Named& options = {});
// Concatenates the inputs over the last axis.
Value Concatenate(absl::Span<const Value> inputs, const Named& options = {});
Value Concatenate(absl::Span<const Value> inputs, int64_t axis,
                  const Named& options = {});
Value FactorizationMachine(const Value& x, const Named& options = {});
// `weights` [n] and `rows` [n, width].
Value WeightedSum(const Value& weights, const Value& rows,
                  const Named& options = {});

}  // namespace parasol::layers

#endif  // PARASOL_ML_BUILDER_LAYERS_H_
