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
#include "cluster/job/learning_rate_field.h"
#include "ml/optimizer/learning_rate.h"
#include "storage/shard_entry.h"
#include "worker/store/batch_part.h"
#include "worker/store/host_variables.h"
#include "worker/store/wrapped_model.h"

namespace parasol {
namespace {

// A batch that waits for its local steps: each stages its own part.
class WholeBatch : public StagedBatch {
 public:
  absl::Span<const Rows> rows() const override { return {}; }

  const Batch* batch = nullptr;
};

// The inner optimizer's learning rate, if it has a schedule.
class InnerRate {
 public:
  static absl::StatusOr<std::optional<InnerRate>> Of(
      const job::Optimizer& inner) {
    if (!inner.has_learning_rate_schedule()) return std::nullopt;
    ASSIGN_OR_RETURN(LearningRate rate,
                     LearningRate::Create(InitialLearningRate(inner),
                                          inner.learning_rate_schedule()));
    return InnerRate(std::move(rate));
  }

  // Gives the optimizer the rate of an update, and no schedule.
  void Set(int64_t update, job::Optimizer& inner) const {
    inner.clear_learning_rate_schedule();
    SetInitialLearningRate(rate_.At(update), inner);
  }

 private:
  explicit InnerRate(LearningRate rate) : rate_(std::move(rate)) {}

  LearningRate rate_;
};

class LocalStepsModel : public WrappedModel {
 public:
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      std::unique_ptr<Model> model, const job::Job& job,
      LocalStepsOptions options) {
    job::Job inner = JobOfLocalSteps(job);
    ASSIGN_OR_RETURN(std::optional<InnerRate> rate,
                     InnerRate::Of(inner.optimizer()));
    std::unique_ptr<LocalStepsModel> local(new LocalStepsModel(
        std::move(model), std::move(inner), std::move(rate),
        job.parameter_server().local_steps().steps(), std::move(options)));
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

  absl::Status Upload(size_t index) override {
    const absl::Span<const float> pulled = model().HostValue(index);
    begin_[index].assign(pulled.begin(), pulled.end());
    has_moved_[index] = false;
    return model().Upload(index);
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    const Batch& batch = *static_cast<WholeBatch&>(staged).batch;
    RETURN_IF_ERROR(UseVariablesOf(batch.shard));
    for (size_t i = 0; i < begin_.size(); ++i) {
      RETURN_IF_ERROR(local_->Write(i, kValueArray, begin_[i]));
    }
    BatchResult result;
    const int64_t examples = inner_.train().batch_size();
    for (int64_t first = 0; first < batch.size; first += examples) {
      const int64_t step = first / examples;
      if (options_.cancelled()) {
        return absl::CancelledError("stopped between two local steps");
      }
      CopyPart(batch, first, std::min(examples, batch.size - first), part_);
      RETURN_IF_ERROR(UseRateOf(batch.number * steps_ + step));
      RETURN_IF_ERROR(UploadLocal(/*all=*/step > 0));
      ASSIGN_OR_RETURN(const BatchResult of_step, RunStep(SeedOf(seed, step)),
                       _ << "local step " << step);
      result.Add(of_step);
    }
    RETURN_IF_ERROR(GiveDifferences(sinks));
    return result;
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    RETURN_IF_ERROR(
        model().Stage(*static_cast<WholeBatch&>(staged).batch, *staged_));
    return model().Evaluate(*staged_);
  }

 private:
  LocalStepsModel(std::unique_ptr<Model> model, job::Job inner,
                  std::optional<InnerRate> rate, int64_t steps,
                  LocalStepsOptions options)
      : WrappedModel(std::move(model)),
        inner_(std::move(inner)),
        steps_(steps),
        options_(std::move(options)),
        rate_(std::move(rate)),
        staged_(this->model().NewStagedBatch()),
        begin_(this->variables().size()),
        has_moved_(begin_.size()) {
    for (size_t i = 0; i < begin_.size(); ++i) {
      begin_[i].resize(this->variables()[i].elements());
    }
    for (auto& side : differences_) side.resize(begin_.size());
  }

  // Two steps must not drop the same elements of different examples. The
  // multiplier is as in PassExecutor, for another number.
  static uint64_t SeedOf(uint64_t seed, int64_t step) {
    return seed + static_cast<uint64_t>(step) * 0xD1B54A32D192ED03;
  }

  // Makes the variables and slots of a shard the ones that steps update.
  absl::Status UseVariablesOf(int shard) {
    std::unique_ptr<HostVariables>& of_shard = of_shards_[shard];
    if (of_shard == nullptr) {
      ASSIGN_OR_RETURN(of_shard, HostVariables::Create(variables(), inner_));
      RETURN_IF_ERROR(of_shard->Initialize(inner_.seed()));
    }
    local_ = of_shard.get();
    return absl::OkStatus();
  }

  absl::Status UseRateOf(int64_t update) {
    if (!rate_) return absl::OkStatus();
    rate_->Set(update, *inner_.mutable_optimizer());
    return local_->UseOptimizers(inner_);
  }

  // Makes the local values the ones that the next pass reads: of `all`
  // variables, or of those that the model has from the last batch's steps, as
  // several replicas may begin with one upload.
  absl::Status UploadLocal(bool all) {
    for (size_t i = 0; i < variables().size(); ++i) {
      if (variables()[i].frozen || !(all || has_moved_[i])) continue;
      has_moved_[i] = all;
      ASSIGN_OR_RETURN(const absl::Span<const float> values,
                       local_->Read(i, kValueArray));
      std::copy(values.begin(), values.end(), model().HostValue(i).begin());
      RETURN_IF_ERROR(model().Upload(i)) << variables()[i].name;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> RunStep(uint64_t seed) {
    RETURN_IF_ERROR(model().Stage(part_, *staged_));
    const auto update = [this](size_t variable,
                               absl::Span<const float> gradient) {
      local_->Apply(variable, /*first=*/0, gradient);
      local_->CountUpdate(variable);
    };
    const auto no_rows = [](size_t, absl::Span<const uint64_t>,
                            absl::Span<const float>) {
      LOG(FATAL) << "local steps have no tables";
    };
    return model().Gradients(*staged_, seed,
                             {.variable = update, .rows = no_rows});
  }

  // In the order of a backward pass, the last layer's first.
  absl::Status GiveDifferences(const GradientSinks& sinks) {
    std::swap(differences_[0], differences_[1]);
    for (size_t i = variables().size(); i-- > 0;) {
      const VariableSpec& variable = variables()[i];
      if (variable.frozen) continue;
      const float share = variable.trained ? 1 : options_.statistics_share;
      ASSIGN_OR_RETURN(const absl::Span<const float> end,
                       local_->Read(i, kValueArray));
      std::vector<float>& difference = differences_[0][i];
      difference.resize(end.size());
      for (size_t j = 0; j < end.size(); ++j) {
        difference[j] = share * (begin_[i][j] - end[j]);
      }
      sinks.variable(i, difference);
    }
    return absl::OkStatus();
  }

  job::Job inner_;
  const int64_t steps_;  // of an exchange
  const LocalStepsOptions options_;
  std::optional<InnerRate> rate_;
  std::map<int, std::unique_ptr<HostVariables>> of_shards_;
  HostVariables* local_ = nullptr;  // the one that steps update
  std::unique_ptr<StagedBatch> staged_;
  Batch part_;
  // The values that were uploaded last, of each variable.
  std::vector<std::vector<float>> begin_;
  // True for each variable of which the model has a local value.
  std::vector<bool> has_moved_;
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
