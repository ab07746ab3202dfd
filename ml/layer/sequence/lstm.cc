#include "ml/layer/sequence/lstm.h"

#include <string>

#include "absl/status/status.h"
#include "ml/layer/sequence/recurrent_layer.h"

namespace parasol {
namespace {

void FillDefaults(job::Lstm& spec) {
  FillRecurrent(spec);
  const bool has_initializer =
      spec.bias_initializer().kind_case() != job::Initializer::KIND_NOT_SET;
  PARASOL_SET_DEFAULT(spec, unit_forget_bias, !has_initializer);
  if (!has_initializer && spec.unit_forget_bias()) {
    spec.mutable_bias_initializer()->mutable_unit_forget();
  }
  FillBiasInitializer(*spec.mutable_bias_initializer());
}

absl::Status CheckRanges(const std::string& path, const job::Lstm& spec) {
  RETURN_IF_ERROR(CheckRecurrent(path, spec));
  if (spec.bias_initializer().has_unit_forget()) return absl::OkStatus();
  if (spec.unit_forget_bias()) {
    return Fault(absl::StrCat(path, ".unit_forget_bias"),
                 "true, but bias_initializer is set: leave one of them out");
  }
  RETURN_IF_ERROR(CheckBiasInitializer(spec.bias_initializer()))
      << path << ".bias_initializer";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeLstm(
    const job::Lstm& spec, absl::Span<const LayerInput> inputs) {
  job::Lstm filled = spec;
  FillDefaults(filled);
  return MakeRecurrent(FormOf(RecurrentCell::kLstm, filled), inputs);
}

constinit const LayerKind kLstmKind = {
    .field = job::Layer::kLstm,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_lstm()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.lstm());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeLstm(layer.lstm(), inputs); },
};

}  // namespace parasol
