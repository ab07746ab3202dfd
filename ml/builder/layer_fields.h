#ifndef PARASOL_ML_BUILDER_LAYER_FIELDS_H_
#define PARASOL_ML_BUILDER_LAYER_FIELDS_H_

#include <string>
#include <utility>

#include "absl/types/span.h"
#include "ml/builder/model_builder.h"
#include "proto/job.pb.h"

// The parts of which the functions of layers.h and sequence_layers.h consist.
namespace parasol::layers {

inline job::Layer NamedLayer(const std::string& name) {
  job::Layer layer;
  if (!name.empty()) layer.set_name(name);
  return layer;
}

inline Value AddTo(const Value& x, job::Layer layer) {
  return x.builder->AddLayer(std::move(layer), {x});
}

// Adds a layer with several inputs, which belongs to the builder of the first.
inline Value AddTo(absl::Span<const Value> inputs, job::Layer layer) {
  return inputs.front().builder->AddLayer(std::move(layer), inputs);
}

inline bool IsSet(const job::Initializer& initializer) {
  return initializer.kind_case() != job::Initializer::KIND_NOT_SET;
}

// Copies the fields that layers with a kernel and a bias have in common.
template <typename Options, typename Message>
void FillProduct(const Options& options, Message& message) {
  if (!options.use_bias) message.set_use_bias(false);
  if (IsSet(options.kernel_initializer)) {
    *message.mutable_kernel_initializer() = options.kernel_initializer;
  }
  if (IsSet(options.bias_initializer)) {
    *message.mutable_bias_initializer() = options.bias_initializer;
  }
  if (options.kernel_l2 != 0) message.set_kernel_l2(options.kernel_l2);
  if (options.bias_l2 != 0) message.set_bias_l2(options.bias_l2);
}

// Copies those, and an activation.
template <typename Options, typename Message>
void FillAffine(const Options& options, Message& message) {
  FillProduct(options, message);
  if (options.activation != job::ACTIVATION_UNSPECIFIED) {
    message.set_activation(options.activation);
  }
}

// Copies the fields of a window over images.
template <typename Options, typename Message>
void FillWindow(const Options& options, Message& message) {
  message.mutable_kernel_size()->Add(options.kernel_size.begin(),
                                     options.kernel_size.end());
  message.mutable_stride()->Add(options.stride.begin(), options.stride.end());
  if (options.padding != job::PADDING_UNSPECIFIED) {
    message.set_padding(options.padding);
  }
}

// Copies the fields that the two depthwise convolutions have in common.
template <typename Options, typename Message>
void FillDepthwise(const Options& options, Message& message) {
  FillWindow(options, message);
  if (options.depth_multiplier != 1) {
    message.set_depth_multiplier(options.depth_multiplier);
  }
  message.mutable_dilation_rate()->Add(options.dilation_rate.begin(),
                                       options.dilation_rate.end());
  FillAffine(options, message);
}

}  // namespace parasol::layers

#endif  // PARASOL_ML_BUILDER_LAYER_FIELDS_H_
