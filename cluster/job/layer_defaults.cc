#include "cluster/job/layer_defaults.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/job/set_default.h"

namespace parasol {
namespace {

// As a job file calls it.
std::string KindOf(const job::Layer& layer) {
  const auto* kind =
      job::Layer::descriptor()->FindFieldByNumber(layer.kind_case());
  return kind == nullptr ? "layer" : kind->name();
}

bool IsChosen(const job::Initializer& initializer) {
  return initializer.kind_case() != job::Initializer::KIND_NOT_SET;
}

void FillKernel(job::Initializer& initializer) {
  if (!IsChosen(initializer)) initializer.mutable_glorot_uniform();
  FillInitializer(initializer);
}

void FillBias(job::Initializer& initializer) {
  if (!IsChosen(initializer)) initializer.mutable_zeros();
  FillInitializer(initializer);
}

// What dense and conv2d have in common.
template <typename Affine>
void FillAffine(Affine& affine) {
  SET_DEFAULT(affine, use_bias, true);
  SET_DEFAULT(affine, activation, job::ACTIVATION_UNSPECIFIED);
  FillKernel(*affine.mutable_kernel_initializer());
  FillBias(*affine.mutable_bias_initializer());
  SET_DEFAULT(affine, kernel_l2, 0);
  SET_DEFAULT(affine, bias_l2, 0);
}

template <typename Window>
void FillPadding(Window& window) {
  if (window.padding() == job::PADDING_UNSPECIFIED) {
    window.set_padding(job::VALID);
  }
}

void FillConv2D(job::Conv2D& conv2d) {
  FillAffine(conv2d);
  FillPadding(conv2d);
  if (conv2d.stride().empty()) conv2d.add_stride(1);
}

void FillPool(job::Pool& pool) {
  FillPadding(pool);
  if (pool.pool_size().empty()) pool.add_pool_size(2);
  if (pool.stride().empty()) *pool.mutable_stride() = pool.pool_size();
}

void FillBatchNormalization(job::BatchNormalization& normalization) {
  SET_DEFAULT(normalization, momentum, 0.99);
  SET_DEFAULT(normalization, epsilon, 0.001);
  SET_DEFAULT(normalization, center, true);
  SET_DEFAULT(normalization, scale, true);
  job::Initializer& gamma = *normalization.mutable_gamma_initializer();
  if (!IsChosen(gamma)) gamma.mutable_constant()->set_value(1);
  FillInitializer(gamma);
}

void FillLayerNormalization(job::LayerNormalization& normalization) {
  SET_DEFAULT(normalization, epsilon, 0.001);
  SET_DEFAULT(normalization, center, true);
  SET_DEFAULT(normalization, scale, true);
}

void FillEmbeddingBag(job::EmbeddingBag& bag) {
  if (bag.combiner() == job::EmbeddingBag::COMBINER_UNSPECIFIED) {
    bag.set_combiner(job::EmbeddingBag::SUM);
  }
  SET_DEFAULT(bag, use_bias, false);
  SET_DEFAULT(bag, l2, 0);
}

void FillCustomLayer(job::CustomLayer& custom) {
  for (job::CustomVariable& variable : *custom.mutable_variable()) {
    FillKernel(*variable.mutable_initializer());
  }
}

}  // namespace

void FillInitializer(job::Initializer& initializer) {
  switch (initializer.kind_case()) {
    case job::Initializer::kConstant:
      SET_DEFAULT(*initializer.mutable_constant(), value, 0.0f);
      break;
    case job::Initializer::kRandomNormal:
      SET_DEFAULT(*initializer.mutable_random_normal(), mean, 0.0f);
      SET_DEFAULT(*initializer.mutable_random_normal(), stddev, 0.05f);
      break;
    case job::Initializer::kRandomUniform:
      SET_DEFAULT(*initializer.mutable_random_uniform(), minval, -0.05f);
      SET_DEFAULT(*initializer.mutable_random_uniform(), maxval, 0.05f);
      break;
    case job::Initializer::kZeros:
    case job::Initializer::kGlorotUniform:
    case job::Initializer::kHeNormal:
    case job::Initializer::KIND_NOT_SET:
      break;
  }
}

void FillLayer(int position, job::Layer& layer) {
  SET_DEFAULT(layer, name, absl::StrCat(KindOf(layer), "_", position));
  switch (layer.kind_case()) {
    case job::Layer::kDense:
      return FillAffine(*layer.mutable_dense());
    case job::Layer::kConv2D:
      return FillConv2D(*layer.mutable_conv2d());
    case job::Layer::kBatchNormalization:
      return FillBatchNormalization(*layer.mutable_batch_normalization());
    case job::Layer::kMaxPool:
      return FillPool(*layer.mutable_max_pool());
    case job::Layer::kAveragePool:
      return FillPool(*layer.mutable_average_pool());
    case job::Layer::kConcatenate:
      SET_DEFAULT(*layer.mutable_concatenate(), axis, -1);
      break;
    case job::Layer::kEmbedding:
      SET_DEFAULT(*layer.mutable_embedding(), l2, 0);
      break;
    case job::Layer::kEmbeddingBag:
      return FillEmbeddingBag(*layer.mutable_embedding_bag());
    case job::Layer::kLayerNormalization:
      return FillLayerNormalization(*layer.mutable_layer_normalization());
    case job::Layer::kCustom:
      return FillCustomLayer(*layer.mutable_custom());
    case job::Layer::kActivation:
    case job::Layer::kFlatten:
    case job::Layer::kGlobalAveragePool:
    case job::Layer::kDropout:
    case job::Layer::kAdd:
    case job::Layer::kFactorizationMachine:
    case job::Layer::kPad:
    case job::Layer::KIND_NOT_SET:
      break;
  }
}

}  // namespace parasol
