#include "ml/layer/kinds/layer_kinds.h"

#include "absl/status/status.h"
#include "ml/layer/activation.h"
#include "ml/layer/add.h"
#include "ml/layer/batch_normalization.h"
#include "ml/layer/concatenate.h"
#include "ml/layer/conv2d.h"
#include "ml/layer/convolution/conv1d.h"
#include "ml/layer/convolution/conv2d_transpose.h"
#include "ml/layer/convolution/depthwise_conv2d.h"
#include "ml/layer/convolution/separable_conv2d.h"
#include "ml/layer/custom_layer.h"
#include "ml/layer/dense.h"
#include "ml/layer/dropout.h"
#include "ml/layer/embedding.h"
#include "ml/layer/embedding_bag.h"
#include "ml/layer/flatten.h"
#include "ml/layer/interaction/cross.h"
#include "ml/layer/interaction/dot.h"
#include "ml/layer/interaction/dot_interaction.h"
#include "ml/layer/interaction/factorization_machine.h"
#include "ml/layer/interaction/weighted_sum.h"
#include "ml/layer/layer_normalization.h"
#include "ml/layer/multiply.h"
#include "ml/layer/normalization/group_normalization.h"
#include "ml/layer/normalization/rms_normalization.h"
#include "ml/layer/pad.h"
#include "ml/layer/pool.h"
#include "ml/layer/reshape.h"
#include "ml/layer/sequence/global_step_pool.h"
#include "ml/layer/sequence/gru.h"
#include "ml/layer/sequence/lstm.h"
#include "ml/layer/sequence/multi_head_attention.h"
#include "ml/layer/sequence/positional_embedding.h"

namespace parasol {
namespace {

constexpr const LayerKind* kKinds[] = {
    &kActivationKind,
    &kAddKind,
    &kAveragePoolKind,
    &kBatchNormalizationKind,
    &kConcatenateKind,
    &kConv1DKind,
    &kConv2DKind,
    &kConv2DTransposeKind,
    &kCrossKind,
    &kCustomKind,
    &kDenseKind,
    &kDepthwiseConv2DKind,
    &kDotInteractionKind,
    &kDotKind,
    &kDropoutKind,
    &kEmbeddingBagKind,
    &kEmbeddingKind,
    &kFactorizationMachineKind,
    &kFlattenKind,
    &kGlobalAveragePool1DKind,
    &kGlobalAveragePoolKind,
    &kGlobalMaxPool1DKind,
    &kGroupNormalizationKind,
    &kGruKind,
    &kLayerNormalizationKind,
    &kLstmKind,
    &kMaxPoolKind,
    &kMultiHeadAttentionKind,
    &kMultiplyKind,
    &kPadKind,
    &kPositionalEmbeddingKind,
    &kReshapeKind,
    &kRmsNormalizationKind,
    &kSeparableConv2DKind,
    &kWeightedSumKind,
};

}  // namespace

absl::Span<const LayerKind* const> LayerKinds() { return kKinds; }

const LayerKind* KindOf(const job::Layer& layer) {
  for (const LayerKind* const kind : kKinds) {
    if (kind->field == layer.kind_case()) return kind;
  }
  return nullptr;
}

std::string KindNameOf(const job::Layer& layer) {
  const auto* const field =
      job::Layer::descriptor()->FindFieldByNumber(layer.kind_case());
  return field == nullptr ? "" : field->name();
}

absl::StatusOr<std::unique_ptr<const Layer>> MakeLayer(
    const job::Layer& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width) {
  const LayerKind* const kind = KindOf(spec);
  if (kind == nullptr) {
    return absl::InvalidArgumentError("has no kind: dense, activation, …");
  }
  return kind->make(spec, inputs, table_width);
}

}  // namespace parasol
