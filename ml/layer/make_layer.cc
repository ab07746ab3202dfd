#include "ml/layer/make_layer.h"

#include "absl/status/status.h"
#include "ml/layer/activation.h"
#include "ml/layer/add.h"
#include "ml/layer/batch_normalization.h"
#include "ml/layer/concatenate.h"
#include "ml/layer/conv2d.h"
#include "ml/layer/custom_layer.h"
#include "ml/layer/dense.h"
#include "ml/layer/dropout.h"
#include "ml/layer/embedding.h"
#include "ml/layer/embedding_bag.h"
#include "ml/layer/factorization_machine.h"
#include "ml/layer/flatten.h"
#include "ml/layer/layer_normalization.h"
#include "ml/layer/pad.h"
#include "ml/layer/pool.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<const Layer>> MakeLayer(
    const job::Layer& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width) {
  switch (spec.kind_case()) {
    case job::Layer::kDense:
      return MakeDense(spec.dense(), inputs);
    case job::Layer::kActivation:
      return MakeActivation(spec.activation(), inputs);
    case job::Layer::kFlatten:
      return MakeFlatten(inputs);
    case job::Layer::kConv2D:
      return MakeConv2D(spec.conv2d(), inputs);
    case job::Layer::kBatchNormalization:
      return MakeBatchNormalization(spec.batch_normalization(), inputs);
    case job::Layer::kDropout:
      return MakeDropout(spec.dropout(), inputs);
    case job::Layer::kAdd:
      return MakeAdd(inputs);
    case job::Layer::kConcatenate:
      return MakeConcatenate(spec.concatenate(), inputs);
    case job::Layer::kEmbedding:
      return MakeEmbedding(spec.embedding(), inputs, table_width);
    case job::Layer::kEmbeddingBag:
      return MakeEmbeddingBag(spec.embedding_bag(), inputs, table_width);
    case job::Layer::kFactorizationMachine:
      return MakeFactorizationMachine(inputs);
    case job::Layer::kLayerNormalization:
      return MakeLayerNormalization(spec.layer_normalization(), inputs);
    case job::Layer::kCustom:
      return MakeCustom(spec.custom(), inputs);
    case job::Layer::kMaxPool:
      return MakeMaxPool(spec.max_pool(), inputs);
    case job::Layer::kAveragePool:
      return MakeAveragePool(spec.average_pool(), inputs);
    case job::Layer::kGlobalAveragePool:
      return MakeGlobalAveragePool(inputs);
    case job::Layer::kPad:
      return MakePad(spec.pad(), inputs);
    default:
      return absl::InvalidArgumentError("has no kind: dense, activation, …");
  }
}

}  // namespace parasol
