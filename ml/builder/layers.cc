#include "ml/builder/layers.h"

#include <utility>

#include "ml/builder/layer_fields.h"

namespace parasol::layers {
namespace {

void FillPool(const PoolOptions& options, job::Pool& pool) {
  pool.mutable_pool_size()->Add(options.pool_size.begin(),
                                options.pool_size.end());
  pool.mutable_stride()->Add(options.stride.begin(), options.stride.end());
  if (options.padding != job::PADDING_UNSPECIFIED) {
    pool.set_padding(options.padding);
  }
}

}  // namespace

Value Dense(const Value& x, const DenseOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_dense()->set_units(options.units);
  FillAffine(options, *layer.mutable_dense());
  return AddTo(x, std::move(layer));
}

Value Conv2D(const Value& x, const Conv2DOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::Conv2D& conv = *layer.mutable_conv2d();
  conv.set_filters(options.filters);
  FillWindow(options, conv);
  FillAffine(options, conv);
  return AddTo(x, std::move(layer));
}

Value Conv2DTranspose(const Value& x, const Conv2DOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::Conv2DTranspose& conv = *layer.mutable_conv2d_transpose();
  conv.set_filters(options.filters);
  FillWindow(options, conv);
  FillAffine(options, conv);
  return AddTo(x, std::move(layer));
}

Value DepthwiseConv2D(const Value& x, const DepthwiseConv2DOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  FillDepthwise(options, *layer.mutable_depthwise_conv2d());
  return AddTo(x, std::move(layer));
}

Value SeparableConv2D(const Value& x, const SeparableConv2DOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_separable_conv2d()->set_filters(options.filters);
  FillDepthwise(options, *layer.mutable_separable_conv2d());
  return AddTo(x, std::move(layer));
}

Value BatchNormalization(const Value& x,
                         const BatchNormalizationOptions& options) {
  const BatchNormalizationOptions defaults;
  job::Layer layer = NamedLayer(options.name);
  job::BatchNormalization& norm = *layer.mutable_batch_normalization();
  if (options.momentum != defaults.momentum) {
    norm.set_momentum(options.momentum);
  }
  if (options.epsilon != defaults.epsilon) norm.set_epsilon(options.epsilon);
  if (!options.center) norm.set_center(false);
  if (!options.scale) norm.set_scale(false);
  if (IsSet(options.gamma_initializer)) {
    *norm.mutable_gamma_initializer() = options.gamma_initializer;
  }
  return AddTo(x, std::move(layer));
}

Value LayerNormalization(const Value& x,
                         const LayerNormalizationOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::LayerNormalization& norm = *layer.mutable_layer_normalization();
  if (options.epsilon != LayerNormalizationOptions().epsilon) {
    norm.set_epsilon(options.epsilon);
  }
  if (!options.center) norm.set_center(false);
  if (!options.scale) norm.set_scale(false);
  return AddTo(x, std::move(layer));
}

Value GroupNormalization(const Value& x,
                         const GroupNormalizationOptions& options) {
  const GroupNormalizationOptions defaults;
  job::Layer layer = NamedLayer(options.name);
  job::GroupNormalization& norm = *layer.mutable_group_normalization();
  if (options.groups != defaults.groups) norm.set_groups(options.groups);
  if (options.epsilon != defaults.epsilon) norm.set_epsilon(options.epsilon);
  if (!options.center) norm.set_center(false);
  if (!options.scale) norm.set_scale(false);
  return AddTo(x, std::move(layer));
}

Value RmsNormalization(const Value& x, const RmsNormalizationOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::RmsNormalization& norm = *layer.mutable_rms_normalization();
  if (options.epsilon != RmsNormalizationOptions().epsilon) {
    norm.set_epsilon(options.epsilon);
  }
  return AddTo(x, std::move(layer));
}

Value MaxPool(const Value& x, const PoolOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  FillPool(options, *layer.mutable_max_pool());
  return AddTo(x, std::move(layer));
}

Value AveragePool(const Value& x, const PoolOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  FillPool(options, *layer.mutable_average_pool());
  return AddTo(x, std::move(layer));
}

Value Embedding(const Value& ids, const EmbeddingOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_embedding()->set_table(options.table);
  if (options.l2 != 0) layer.mutable_embedding()->set_l2(options.l2);
  return AddTo(ids, std::move(layer));
}

Value EmbeddingBag(const Value& ids, const EmbeddingBagOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::EmbeddingBag& bag = *layer.mutable_embedding_bag();
  bag.set_table(options.table);
  if (options.combiner != job::EmbeddingBag::COMBINER_UNSPECIFIED) {
    bag.set_combiner(options.combiner);
  }
  if (options.use_bias) bag.set_use_bias(true);
  if (options.l2 != 0) bag.set_l2(options.l2);
  return AddTo(ids, std::move(layer));
}

Value Pad(const Value& x, const PadOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::Pad& pad = *layer.mutable_pad();
  pad.mutable_before()->Add(options.before.begin(), options.before.end());
  pad.mutable_after()->Add(options.after.begin(), options.after.end());
  return AddTo(x, std::move(layer));
}

Value Cross(const Value& x0, const Value& x, const CrossOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::Cross& cross = *layer.mutable_cross();
  if (options.projection_dim != 0) {
    cross.set_projection_dim(options.projection_dim);
  }
  FillProduct(options, cross);
  return AddTo({x0, x}, std::move(layer));
}

Value DotInteraction(const Value& x, const DotInteractionOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::DotInteraction& interaction = *layer.mutable_dot_interaction();
  if (options.self_interaction) interaction.set_self_interaction(true);
  return AddTo(x, std::move(layer));
}

Value Dot(const Value& a, const Value& b, const DotOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::Dot& dot = *layer.mutable_dot();
  if (options.normalize) dot.set_normalize(true);
  return AddTo({a, b}, std::move(layer));
}

Value Custom(absl::Span<const Value> inputs, const CustomOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::CustomLayer& custom = *layer.mutable_custom();
  custom.set_type(options.type);
  custom.mutable_output_shape()->Add(options.output_shape.begin(),
                                     options.output_shape.end());
  for (const job::CustomVariable& variable : options.variables) {
    *custom.add_variable() = variable;
  }
  for (const auto& [name, value] : options.parameters) {
    job::CustomParameter& parameter = *custom.add_parameter();
    parameter.set_name(name);
    parameter.set_value(value);
  }
  return AddTo(inputs, std::move(layer));
}

Value Activation(const Value& x, job::Activation activation,
                 const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.set_activation(activation);
  return AddTo(x, std::move(layer));
}

Value Relu(const Value& x, const Named& options) {
  return Activation(x, job::RELU, options);
}

Value Flatten(const Value& x, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_flatten();
  return AddTo(x, std::move(layer));
}

Value GlobalAveragePool(const Value& x, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_global_average_pool();
  return AddTo(x, std::move(layer));
}

Value Dropout(const Value& x, double rate, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_dropout()->set_rate(rate);
  return AddTo(x, std::move(layer));
}

Value Add(absl::Span<const Value> inputs, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_add();
  return AddTo(inputs, std::move(layer));
}

Value Multiply(absl::Span<const Value> inputs, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_multiply();
  return AddTo(inputs, std::move(layer));
}

Value Reshape(const Value& x, absl::Span<const int64_t> shape,
              const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_reshape()->mutable_shape()->Add(shape.begin(), shape.end());
  return AddTo(x, std::move(layer));
}

Value Concatenate(absl::Span<const Value> inputs, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_concatenate();
  return AddTo(inputs, std::move(layer));
}

Value Concatenate(absl::Span<const Value> inputs, int64_t axis,
                  const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_concatenate()->set_axis(axis);
  return AddTo(inputs, std::move(layer));
}

Value FactorizationMachine(const Value& x, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_factorization_machine();
  return AddTo(x, std::move(layer));
}

Value WeightedSum(const Value& weights, const Value& rows,
                  const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_weighted_sum();
  return AddTo({weights, rows}, std::move(layer));
}

}  // namespace parasol::layers
