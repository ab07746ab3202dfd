#include "ml/layer/sequence/gru.h"

#include <string>

#include "absl/status/status.h"
#include "ml/layer/sequence/recurrent_layer.h"

namespace parasol {
namespace {

void FillDefaults(job::Gru& spec) {
  FillRecurrent(spec);
  FillBiasInitializer(*spec.mutable_bias_initializer());
}

absl::Status CheckRanges(const std::string& path, const job::Gru& spec) {
  RETURN_IF_ERROR(CheckRecurrent(path, spec));
  RETURN_IF_ERROR(CheckBiasInitializer(spec.bias_initializer()))
      << path << ".bias_initializer";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeGru(
    const job::Gru& spec, absl::Span<const LayerInput> inputs) {
  job::Gru filled = spec;
  FillDefaults(filled);
  return MakeRecurrent(FormOf(RecurrentCell::kGru, filled), inputs);
}

constinit const LayerKind kGruKind = {
    .field = job::Layer::kGru,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_gru()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.gru());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeGru(layer.gru(), inputs); },
};

}  // namespace parasol
