#include "ml/tape/tape.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/tape_state.h"
#include "ml/tape/tensor_body.h"

namespace parasol {
namespace {

absl::Status CheckFloats(absl::string_view what,
                         absl::Span<const Tensor> list) {
  for (size_t i = 0; i < list.size(); ++i) {
    RETURN_IF_ERROR(list[i].status()) << what << " " << i;
    if (list[i].dtype() == DType::kFloat32) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", i, " is ", NameOf(list[i].dtype()),
                     "; gradients are of float32 by float32"));
  }
  return absl::OkStatus();
}

// Returns the gradients of what is sought by the targets.
absl::StatusOr<std::vector<Tensor>> Seeds(absl::Span<const Tensor> targets,
                                          absl::Span<const Tensor> given) {
  std::vector<Tensor> seeds(given.begin(), given.end());
  if (given.empty()) {
    for (const Tensor& target : targets) seeds.push_back(Ones(target.shape()));
  }
  if (seeds.size() != targets.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(seeds.size(), " output gradients for ", targets.size(),
                     " targets; give one for each, or none"));
  }
  RETURN_IF_ERROR(CheckFloats("output gradient", seeds));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (seeds[i].shape() == targets[i].shape()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "output gradient ", i, " has the shape ", seeds[i].shape().ToString(),
        "; its target has ", targets[i].shape().ToString()));
  }
  return seeds;
}

Tensor UnconnectedTo(size_t source) {
  return TensorAccess::Unconnected(static_cast<int64_t>(source));
}

void RemoveFromThread(const TapeState* state) {
  std::vector<TapeState*>& tapes = TapesOfThread();
  tapes.erase(std::remove(tapes.begin(), tapes.end(), state), tapes.end());
}

}  // namespace

GradientTape::GradientTape(const Options& options)
    : persistent_(options.persistent),
      state_(std::make_unique<TapeState>(options.watch_variables)) {
  TapesOfThread().push_back(state_.get());
}

GradientTape::~GradientTape() { End(); }

void GradientTape::Watch(const Tensor& x) { state_->Watch(x); }

std::vector<const void*> GradientTape::WatchedVariables() const {
  return state_->watched_leaves();
}

GradientTape::Pause::Pause(TapeState& state) : state_(state) { state_.Pause(); }
GradientTape::Pause::~Pause() { state_.Resume(); }

void GradientTape::End() { RemoveFromThread(state_.get()); }

void GradientTape::Reset() {
  state_->Reset();
  is_spent_ = false;
}

absl::StatusOr<std::vector<Tensor>> GradientTape::Gradient(
    absl::Span<const Tensor> targets, absl::Span<const Tensor> sources,
    const GradientOptions& options) {
  if (is_spent_) {
    return absl::FailedPreconditionError(
        "a tape that is not persistent gives gradients once; make it with "
        "{.persistent = true}");
  }
  RETURN_IF_ERROR(CheckFloats("target", targets));
  RETURN_IF_ERROR(CheckFloats("source", sources));
  ASSIGN_OR_RETURN(const std::vector<Tensor> seeds,
                   Seeds(targets, options.output_gradients));
  if (!persistent_) {
    End();
    is_spent_ = true;
  }
  const auto ready = [&options](size_t source,
                                const std::optional<Tensor>& gradient) {
    return options.ready(
        source, gradient.has_value() ? *gradient : UnconnectedTo(source));
  };
  TapeState::Seekers seekers = {.sources = sources, .ready = std::nullopt};
  if (options.ready != nullptr) seekers.ready.emplace(ready);
  ASSIGN_OR_RETURN(
      const std::vector<std::optional<Tensor>> found,
      state_->Gradient(targets, seeds, seekers, /*consume=*/!persistent_));
  if (!persistent_) state_->Reset();
  std::vector<Tensor> gradients;
  gradients.reserve(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    gradients.push_back(found[i].has_value() ? *found[i]
                        : options.unconnected == Unconnected::kZero
                            ? Zeros(sources[i].shape())
                            : UnconnectedTo(i));
  }
  return gradients;
}

Tensor GradientTape::Gradient(const Tensor& target, const Tensor& source,
                              const GradientOptions& options) {
  absl::StatusOr<std::vector<Tensor>> gradients =
      Gradient(absl::MakeConstSpan(&target, 1), absl::MakeConstSpan(&source, 1),
               options);
  if (!gradients.ok()) return Tensor::Error(gradients.status());
  return std::move(gradients->front());
}

Tensor Leaf(const void* key, const Tensor& value, bool trainable) {
  if (!value.status().ok()) return value;
  Tensor leaf = TensorAccess::View(value, value.shape(), key);
  if (!trainable) return leaf;
  for (TapeState* const tape : TapesOfThread()) {
    if (tape->watches_variables() && tape->is_recording()) tape->Watch(leaf);
  }
  return leaf;
}

Tensor StopGradient(const Tensor& x) {
  return x.status().ok() ? TensorAccess::View(x, x.shape()) : x;
}

}  // namespace parasol
