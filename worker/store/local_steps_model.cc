#include "worker/store/local_steps_model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/shard_entry.h"
#include "worker/store/batch_part.h"
#include "worker/store/host_variables.h"
#include "worker/store/inner_rate.h"
#include "worker/store/outer_gradient.h"
#include "worker/store/variable_fragments.h"
#include "worker/store/wrapped_model.h"

namespace parasol {
namespace {

// A batch that waits for its local steps: each stages its own part.
class WholeBatch : public StagedBatch {
 public:
  absl::Span<const Rows> rows() const override { return {}; }

  const Batch* batch = nullptr;
};

// What a shard's local steps have: values and slots.
struct LocalState {
  std::unique_ptr<HostVariables> variables;
  // For each variable, true from its difference until its next values.
  std::vector<bool> is_given = {};
  // The values then, if steps are made meanwhile.
  std::vector<std::vector<float>> given = {};
};

class LocalStepsModel : public WrappedModel {
 public:
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      std::unique_ptr<Model> model, const job::Job& job,
      LocalStepsOptions options) {
    job::Job inner = JobOfLocalSteps(job);
    ASSIGN_OR_RETURN(std::optional<InnerRate> rate,
                     InnerRate::Of(inner.optimizer()));
    const job::LocalSteps& spec = job.parameter_server().local_steps();
    ASSIGN_OR_RETURN(
        std::vector<std::vector<size_t>> fragments,
        SplitIntoFragments(model->variables(), std::max(1, spec.fragments())));
    std::unique_ptr<LocalStepsModel> local(
        new LocalStepsModel(std::move(model), std::move(inner), std::move(rate),
                            spec, std::move(fragments), std::move(options)));
    // What is wrong with the optimizer is told before anybody waits.
    RETURN_IF_ERROR(
        HostVariables::Create(local->variables(), local->inner_).status());
    return local;
  }

  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<WholeBatch>();
  }

  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    if (batch.size == 0) {
      return absl::InvalidArgumentError("the batch has no examples");
    }
    static_cast<WholeBatch&>(staged).batch = &batch;
    return absl::OkStatus();
  }

  std::vector<std::vector<size_t>> fragments() const override {
    return streams_ ? fragments_ : std::vector<std::vector<size_t>>();
  }

  // New values may be on their way while the others are used.
  absl::Span<float> HostValue(size_t index) override {
    return streams_ ? absl::MakeSpan(coming_[index]) : model().HostValue(index);
  }

  absl::Status Upload(size_t index) override {
    if (streams_) {
      has_come_[index] = true;
      std::swap(coming_[index], come_[index]);
      std::copy(come_[index].begin(), come_[index].end(),
                model().HostValue(index).begin());
    } else {
      const absl::Span<const float> pulled = model().HostValue(index);
      begin_[index].assign(pulled.begin(), pulled.end());
    }
    has_moved_[index] = false;
    return model().Upload(index);
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    const Batch& batch = *static_cast<WholeBatch&>(staged).batch;
    RETURN_IF_ERROR(TakeWhatHasCome());
    RETURN_IF_ERROR(UseStateOf(batch.shard));
    const int64_t parts = static_cast<int64_t>(fragments_.size());
    const int64_t part = static_cast<int64_t>(staged.pass);
    const int64_t examples = inner_.train().batch_size();
    const int64_t steps = (batch.size + examples - 1) / examples;
    const int64_t begin = part * steps / parts;
    const int64_t end = (part + 1) * steps / parts;
    BatchResult result;
    bool is_given = false;
    std::swap(differences_[0], differences_[1]);
    for (int64_t step = begin; step < end; ++step) {
      if (step == std::max(begin, end - overlap_)) {
        RETURN_IF_ERROR(GiveDifferences(fragments_[part], sinks));
        is_given = true;
      }
      if (options_.cancelled()) {
        if (part > 0 || is_given) break;
        return absl::CancelledError("stopped between two local steps");
      }
      const int64_t first = step * examples;
      CopyPart(batch, first, std::min(examples, batch.size - first), part_);
      RETURN_IF_ERROR(UseRateOf(batch.number * steps_ + step));
      RETURN_IF_ERROR(UploadLocal(/*all=*/streams_ || step > 0));
      ASSIGN_OR_RETURN(const BatchResult of_step, RunStep(SeedOf(seed, step)),
                       _ << "local step " << step);
      result.Add(of_step);
    }
    if (!is_given) {
      RETURN_IF_ERROR(GiveDifferences(fragments_[part], sinks));
    }
    return result;
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    RETURN_IF_ERROR(
        model().Stage(*static_cast<WholeBatch&>(staged).batch, *staged_));
    return model().Evaluate(*staged_);
  }

 private:
  LocalStepsModel(std::unique_ptr<Model> model, job::Job inner,
                  std::optional<InnerRate> rate, const job::LocalSteps& spec,
                  std::vector<std::vector<size_t>> fragments,
                  LocalStepsOptions options)
      : WrappedModel(std::move(model)),
        inner_(std::move(inner)),
        steps_(spec.steps()),
        overlap_(spec.overlap_steps()),
        fragments_(std::move(fragments)),
        streams_(fragments_.size() > 1 || overlap_ > 0),
        options_(std::move(options)),
        rate_(std::move(rate)),
        staged_(this->model().NewStagedBatch()),
        begin_(this->variables().size()),
        coming_(streams_ ? begin_.size() : 0),
        come_(coming_.size()),
        has_come_(begin_.size()),
        has_moved_(begin_.size()) {
    for (size_t i = 0; i < begin_.size(); ++i) {
      begin_[i].resize(this->variables()[i].elements());
      if (!streams_) continue;
      coming_[i].resize(begin_[i].size());
      come_[i].resize(begin_[i].size());
    }
    for (auto& side : differences_) side.resize(begin_.size());
  }

  // Two steps must not drop the same elements of different examples. The
  // multiplier is as in PassExecutor, for another number.
  static uint64_t SeedOf(uint64_t seed, int64_t step) {
    return seed + static_cast<uint64_t>(step) * 0xD1B54A32D192ED03;
  }

  // Makes the values that were uploaded those that all states go on with.
  absl::Status TakeWhatHasCome() {
    for (size_t i = 0; i < has_come_.size(); ++i) {
      if (!has_come_[i]) continue;
      has_come_[i] = false;
      for (auto& [shard, state] : states_) {
        RETURN_IF_ERROR(Move(i, state)) << variables()[i].name;
      }
      std::swap(begin_[i], come_[i]);
    }
    return absl::OkStatus();
  }

  // Brings a state to a variable's new values, with what it has changed since
  // its difference, or, if it has given none, since the values before. The
  // values of before change nothing, to the bit.
  absl::Status Move(size_t variable, LocalState& state) {
    ASSIGN_OR_RETURN(const absl::Span<const float> local,
                     state.variables->Read(variable, kValueArray));
    std::vector<float>& given = state.given[variable];
    moved_ = come_[variable];
    if (!state.is_given[variable]) {
      for (size_t j = 0; j < moved_.size(); ++j) {
        moved_[j] = local[j] + (moved_[j] - begin_[variable][j]);
      }
    } else if (!given.empty()) {
      for (size_t j = 0; j < moved_.size(); ++j) {
        moved_[j] += local[j] - given[j];
      }
    }
    state.is_given[variable] = false;
    given.clear();
    return state.variables->Write(variable, kValueArray, moved_);
  }

  // Makes the variables and slots of a shard the ones that steps update.
  absl::Status UseStateOf(int shard) {
    LocalState& state = states_[shard];
    const bool is_new = state.variables == nullptr;
    if (is_new) {
      ASSIGN_OR_RETURN(state.variables,
                       HostVariables::Create(variables(), inner_));
      RETURN_IF_ERROR(state.variables->Initialize(inner_.seed()));
      state.is_given.resize(begin_.size());
      state.given.resize(begin_.size());
    }
    state_ = &state;
    if (streams_ && !is_new) return absl::OkStatus();
    for (size_t i = 0; i < begin_.size(); ++i) {
      RETURN_IF_ERROR(state.variables->Write(i, kValueArray, begin_[i]));
    }
    return absl::OkStatus();
  }

  absl::Status UseRateOf(int64_t update) {
    if (!rate_) return absl::OkStatus();
    rate_->Set(update, *inner_.mutable_optimizer());
    return state_->variables->UseOptimizers(inner_);
  }

  // Makes the local values the ones that the next pass reads: of `all`
  // variables, or of those that the model has from the last batch's steps, as
  // several replicas may begin with one upload.
  absl::Status UploadLocal(bool all) {
    for (size_t i = 0; i < variables().size(); ++i) {
      if (variables()[i].frozen || !(all || has_moved_[i])) continue;
      has_moved_[i] = all;
      ASSIGN_OR_RETURN(const absl::Span<const float> values,
                       state_->variables->Read(i, kValueArray));
      std::copy(values.begin(), values.end(), model().HostValue(i).begin());
      RETURN_IF_ERROR(model().Upload(i)) << variables()[i].name;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> RunStep(uint64_t seed) {
    RETURN_IF_ERROR(model().Stage(part_, *staged_));
    const auto update = [this](size_t variable,
                               absl::Span<const float> gradient) {
      state_->variables->Apply(variable, /*first=*/0, gradient);
      state_->variables->CountUpdate(variable);
    };
    const auto no_rows = [](size_t, absl::Span<const uint64_t>,
                            absl::Span<const float>) {
      LOG(FATAL) << "local steps have no tables";
    };
    return model().Gradients(*staged_, seed,
                             {.variable = update, .rows = no_rows});
  }

  // Gives the differences of a fragment, in the order of a backward pass, the
  // last layer's first.
  absl::Status GiveDifferences(const std::vector<size_t>& fragment,
                               const GradientSinks& sinks) {
    for (const size_t i : fragment) {
      const VariableSpec& variable = variables()[i];
      const float share = variable.trained ? 1 : options_.statistics_share;
      ASSIGN_OR_RETURN(const absl::Span<const float> end,
                       state_->variables->Read(i, kValueArray));
      std::vector<float>& difference = differences_[0][i];
      WriteOuterGradient(begin_[i], end, share, difference);
      state_->is_given[i] = true;
      if (overlap_ > 0) state_->given[i].assign(end.begin(), end.end());
      sinks.variable(i, difference);
    }
    return absl::OkStatus();
  }

  job::Job inner_;
  const int64_t steps_;    // of an exchange
  const int64_t overlap_;  // of these, while a fragment is on its way
  const std::vector<std::vector<size_t>> fragments_;
  const bool streams_;  // states keep their values
  const LocalStepsOptions options_;
  std::optional<InnerRate> rate_;
  std::map<int, LocalState> states_;  // key: shard
  LocalState* state_ = nullptr;       // the one that steps update
  std::unique_ptr<StagedBatch> staged_;
  Batch part_;
  // The values that all have, of each variable, as they were uploaded last.
  std::vector<std::vector<float>> begin_;
  // Those that are pulled, and those that were uploaded since the last pass.
  std::vector<std::vector<float>> coming_, come_;
  std::vector<bool> has_come_;
  // True for each variable of which the model has a local value.
  std::vector<bool> has_moved_;
  std::vector<float> moved_;  // memory
  // The differences of this batch and of the one before, which live as long as
  // a model's gradients.
  std::array<std::vector<std::vector<float>>, 2> differences_;
};

}  // namespace

job::Job JobOfLocalSteps(const job::Job& job) {
  if (!job.parameter_server().has_local_steps()) return job;
  job::Job inner = job;
  const job::LocalSteps& local = job.parameter_server().local_steps();
  *inner.mutable_optimizer() = local.inner();
  inner.mutable_train()->set_batch_size(local.batch_size());
  inner.mutable_parameter_server()->clear_local_steps();
  return inner;
}

absl::StatusOr<std::unique_ptr<Model>> TakeLocalSteps(
    std::unique_ptr<Model> model, const job::Job& job,
    LocalStepsOptions options) {
  if (!job.parameter_server().has_local_steps()) return model;
  return LocalStepsModel::Create(std::move(model), job, std::move(options));
}

}  // namespace parasol
