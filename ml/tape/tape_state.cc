#include "ml/tape/tape_state.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/custom_operation.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/tensor_body.h"

namespace parasol {
namespace {

using Wanted = absl::InlinedVector<bool, 4, TensorAllocator<bool>>;

// The gradient of a custom operation's gradient, for tapes around the one that
// computes it.
std::shared_ptr<const CustomOperation> WithoutGradient(
    const std::string& name) {
  auto operation = std::make_shared<CustomOperation>();
  operation->name = absl::StrCat("gradient of ", name);
  operation->gradient =
      [name](const CustomGradientCall&) -> absl::StatusOr<std::vector<Tensor>> {
    return absl::UnimplementedError(
        absl::StrCat(name,
                     " has no second derivative: its gradient can't be part of "
                     "what a gradient is taken of"));
  };
  return operation;
}

absl::Status CheckGradients(absl::Span<const Tensor> inputs,
                            absl::Span<const bool> wanted,
                            absl::Span<const Tensor> gradients) {
  if (gradients.size() != inputs.size()) {
    return absl::InternalError(absl::StrCat(gradients.size(),
                                            " gradients were given for ",
                                            inputs.size(), " inputs"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted[i] || !gradients[i].status().ok() ||
        gradients[i].shape() == inputs[i].shape()) {
      continue;
    }
    return absl::InternalError(
        absl::StrCat("the gradient by input ", i, " has the shape ",
                     gradients[i].shape().ToString(), "; the input has ",
                     inputs[i].shape().ToString()));
  }
  return absl::OkStatus();
}

// Computes what no tape may follow, and tells the tapes of it as of one
// operation.
absl::StatusOr<std::vector<Tensor>> OpaqueGradient(
    const TapeOperation& operation, const CustomGradientCall& call) {
  std::vector<Tensor> gradients;
  if (TapesOfThread().empty()) return operation.custom->gradient(call);
  {
    NoTapes no_tapes;
    ASSIGN_OR_RETURN(gradients,
                     operation.custom->gradient(
                         {.d_outputs = call.d_outputs, .wanted = call.wanted}));
  }
  for (Tensor& gradient : gradients) {
    gradient = TensorAccess::View(gradient, gradient.shape());
  }
  std::vector<Tensor> inputs(operation.inputs.begin(), operation.inputs.end());
  inputs.insert(inputs.end(), call.d_outputs.begin(), call.d_outputs.end());
  RecordCustom(inputs, gradients, WithoutGradient(operation.custom->name));
  return gradients;
}

using Written = absl::FunctionRef<void(size_t input, const Tensor& gradient)>;

absl::Status GiveCustom(const TapeOperation& operation, Written written,
                        GradientCall& call) {
  const CustomGradientCall custom_call{.d_outputs = call.d_outputs(),
                                       .wanted = call.wanted(),
                                       .written = written};
  const CustomOperation& custom = *operation.custom;
  ASSIGN_OR_RETURN(std::vector<Tensor> gradients,
                   custom.is_twice_differentiable
                       ? custom.gradient(custom_call)
                       : OpaqueGradient(operation, custom_call));
  RETURN_IF_ERROR(CheckGradients(operation.inputs, call.wanted(), gradients));
  for (int i = 0; i < call.inputs(); ++i) {
    if (call.wants(i)) call.Give(i, std::move(gradients[i]));
  }
  return absl::OkStatus();
}

absl::Status Give(const TapeOperation& operation, Written written,
                  GradientCall& call) {
  if (operation.custom != nullptr) {
    RETURN_IF_ERROR(GiveCustom(operation, written, call));
  } else if (operation.kind->gradient != nullptr) {
    operation.kind->gradient(call);
  }
  for (const std::optional<Tensor>& gradient : call.gradients()) {
    if (!gradient.has_value()) continue;
    RETURN_IF_ERROR(gradient->status());
  }
  return absl::OkStatus();
}

void AddTo(std::optional<Tensor>& sum, Tensor gradient) {
  sum = sum.has_value() ? Add(*sum, gradient) : std::move(gradient);
}

// Returns the operation without the elements that its gradient does not read.
TapeOperation ForTape(const TapeOperation& operation) {
  TapeOperation kept = operation;
  if (kept.kind == nullptr) return kept;
  if (!kept.kind->gradient_reads_inputs) {
    for (Tensor& input : kept.inputs) {
      input = TensorAccess::WithoutElements(input);
    }
  }
  if (!kept.kind->gradient_reads_output) {
    kept.outputs[0] = TensorAccess::WithoutElements(kept.outputs[0]);
  }
  return kept;
}

}  // namespace

// Sources whose gradients are complete: no record before the present one reads
// them. Does nothing if nobody waits for them.
class TapeState::CompleteSources {
 public:
  CompleteSources(const TapeState& state, const Seekers& seekers,
                  const Places& places, const Sums& sums)
      : seekers_(seekers), places_(places), sums_(sums) {
    if (!seekers.ready) return;
    reads_.resize(sums.size());
    is_told_.resize(sums.size());
    for (const Recorded& record : state.records_) CountReads(record, 1);
  }

  // Tells of the sources that no record reads.
  absl::Status TellUnread() {
    if (!seekers_.ready) return absl::OkStatus();
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] != kNoPlace && reads_[places_[i]] > 0) continue;
      RETURN_IF_ERROR((*seekers_.ready)(
          i, places_[i] == kNoPlace ? std::nullopt : sums_[places_[i]]));
    }
    return absl::OkStatus();
  }

  // Returns true if the present record alone is still to add to the gradient
  // by a place, and once.
  bool IsLastRead(int place) const {
    return seekers_.ready && reads_[place] == 1;
  }
  bool is_told(int place) const { return seekers_.ready && is_told_[place]; }

  // Tells of a place whose gradient is complete.
  absl::Status Tell(int place) {
    is_told_[place] = true;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] != place) continue;
      RETURN_IF_ERROR((*seekers_.ready)(i, sums_[place]));
    }
    return absl::OkStatus();
  }

  // Ends a record: tells of what only it has read.
  absl::Status End(const Recorded& record) {
    if (!seekers_.ready) return absl::OkStatus();
    CountReads(record, -1);
    for (const int place : record.inputs) {
      if (place == kNoPlace || reads_[place] > 0 || is_told_[place]) continue;
      RETURN_IF_ERROR(Tell(place));
    }
    return absl::OkStatus();
  }

 private:
  void CountReads(const Recorded& record, int change) {
    for (const int place : record.inputs) {
      if (place != kNoPlace) reads_[place] += change;
    }
  }

  const Seekers& seekers_;
  const Places& places_;
  const Sums& sums_;
  // Two lists with an entry for each place: in how many inputs of records it
  // is, down to the present one; whether it was told of.
  std::vector<int, TensorAllocator<int>> reads_;
  Marks is_told_;
};

void TapeState::Watch(const Tensor& x) {
  if (!x.status().ok() || x.dtype() != DType::kFloat32) return;
  const TensorBody& body = TensorAccess::Body(x);
  if (PlaceOfTensor(x) == kNoPlace) {
    if (body.leaf != nullptr) {
      by_leaf_[body.leaf] = places_;
      watched_leaves_.push_back(body.leaf);
    }
    by_id_[body.id] = places_++;
  } else if (body.leaf != nullptr) {
    by_id_[body.id] = PlaceOfTensor(x);
  }
}

void TapeState::Reset() {
  by_id_.clear();
  by_leaf_.clear();
  watched_leaves_.clear();
  records_.clear();
  places_ = 0;
}

int TapeState::PlaceOfTensor(const Tensor& x) const {
  const TensorBody& body = TensorAccess::Body(x);
  if (const auto known = by_id_.find(body.id); known != by_id_.end()) {
    return known->second;
  }
  if (body.leaf == nullptr) return kNoPlace;
  const auto leaf = by_leaf_.find(body.leaf);
  return leaf == by_leaf_.end() ? kNoPlace : leaf->second;
}

bool TapeState::Follows(absl::Span<const Tensor> inputs) const {
  return absl::c_any_of(inputs, [this](const Tensor& input) {
    return PlaceOfTensor(input) != kNoPlace;
  });
}

void TapeState::Record(const TapeOperation& operation) {
  Recorded& record = records_.emplace_back();
  record.operation = ForTape(operation);
  for (const Tensor& input : operation.inputs) {
    record.inputs.push_back(PlaceOfTensor(input));
  }
  record.first_output = places_;
  for (const Tensor& output : operation.outputs) {
    by_id_[TensorAccess::Body(output).id] = places_++;
  }
}

TapeState::Marks TapeState::MarkDependants(
    absl::Span<const int> sources) const {
  Marks marks(places_, false);
  for (const int place : sources) {
    if (place != kNoPlace) marks[place] = true;
  }
  for (const Recorded& record : records_) {
    const bool depends = absl::c_any_of(record.inputs, [&](int place) {
      return place != kNoPlace && marks[place];
    });
    if (!depends) continue;
    for (size_t i = 0; i < record.operation.outputs.size(); ++i) {
      marks[record.first_output + i] = true;
    }
  }
  return marks;
}

absl::Status TapeState::Propagate(const Recorded& record,
                                  const Marks& dependants,
                                  const Marks& is_source,
                                  CompleteSources& complete, Sums& sums) const {
  const TapeOperation& operation = record.operation;
  TensorList d_outputs;
  bool is_reached = false;
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    is_reached |= sums[record.first_output + i].has_value();
  }
  Wanted wanted;
  bool wants = false;
  for (const int place : record.inputs) {
    wanted.push_back(place != kNoPlace && dependants[place]);
    wants |= wanted.back();
  }
  if (!is_reached || !wants) return absl::OkStatus();
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    std::optional<Tensor>& sum = sums[record.first_output + i];
    d_outputs.push_back(sum.has_value() ? *sum
                                        : Zeros(operation.outputs[i].shape()));
    if (!is_source[record.first_output + i]) sum.reset();
  }
  GradientCall call(operation, d_outputs, wanted);
  absl::Status told;
  const auto written = [&](size_t input, const Tensor& gradient) {
    const int place = record.inputs[input];
    if (!wanted[input] || !complete.IsLastRead(place) || !told.ok()) return;
    AddTo(sums[place], gradient);
    told = complete.Tell(place);
  };
  RETURN_IF_ERROR(Give(operation, written, call))
      << "gradient of " << operation.name();
  RETURN_IF_ERROR(told);
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::optional<Tensor>& gradient = call.gradients()[i];
    if (!wanted[i] || !gradient.has_value()) continue;
    if (complete.is_told(record.inputs[i])) continue;
    AddTo(sums[record.inputs[i]], *std::move(gradient));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::optional<Tensor>>> TapeState::Gradient(
    absl::Span<const Tensor> targets, absl::Span<const Tensor> seeds,
    const Seekers& seekers, bool consume) {
  Places source_places;
  Marks is_source(places_, false);
  for (const Tensor& source : seekers.sources) {
    const int place = PlaceOfTensor(source);
    source_places.push_back(place);
    if (place != kNoPlace) is_source[place] = true;
  }
  const Marks dependants = MarkDependants(source_places);
  Sums sums(places_);
  for (size_t i = 0; i < targets.size(); ++i) {
    const int place = PlaceOfTensor(targets[i]);
    if (place != kNoPlace && dependants[place]) AddTo(sums[place], seeds[i]);
  }
  CompleteSources complete(*this, seekers, source_places, sums);
  RETURN_IF_ERROR(complete.TellUnread());
  for (size_t i = records_.size(); i-- > 0;) {
    RETURN_IF_ERROR(
        Propagate(records_[i], dependants, is_source, complete, sums));
    RETURN_IF_ERROR(complete.End(records_[i]));
    if (consume) records_.pop_back();
  }
  std::vector<std::optional<Tensor>> gradients;
  gradients.reserve(seekers.sources.size());
  for (const int place : source_places) {
    gradients.push_back(place == kNoPlace ? std::nullopt : sums[place]);
  }
  return gradients;
}

std::vector<TapeState*>& TapesOfThread() {
  thread_local std::vector<TapeState*> tapes;
  return tapes;
}

void RecordOnTapes(const TapeOperation& operation) {
  for (TapeState* const tape : TapesOfThread()) {
    if (tape->is_recording() && tape->Follows(operation.inputs)) {
      tape->Record(operation);
    }
  }
}

bool IsRecorded(absl::Span<const Tensor> inputs) {
  return absl::c_any_of(TapesOfThread(), [&](const TapeState* tape) {
    return tape->is_recording() && tape->Follows(inputs);
  });
}

void RecordCustom(absl::Span<const Tensor> inputs,
                  absl::Span<const Tensor> outputs,
                  std::shared_ptr<const CustomOperation> operation) {
  if (!IsRecorded(inputs)) return;
  TapeOperation record;
  record.custom = std::move(operation);
  record.inputs.assign(inputs.begin(), inputs.end());
  record.outputs.assign(outputs.begin(), outputs.end());
  RecordOnTapes(record);
}

}  // namespace parasol
