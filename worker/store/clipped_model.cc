#include "worker/store/clipped_model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/clip.h"
#include "worker/store/wrapped_model.h"

namespace parasol {
namespace {

using ::google::protobuf::util::MessageDifferencer;

bool HasLimits(const job::Optimizer& optimizer) {
  return optimizer.has_clipvalue() || optimizer.has_clipnorm() ||
         optimizer.has_global_clipnorm();
}

void ClipAlone(const job::Optimizer& limits, absl::Span<float> gradient) {
  if (limits.has_clipvalue()) ClipByValue(limits.clipvalue(), gradient);
  if (limits.has_clipnorm()) ClipByNorm(limits.clipnorm(), gradient);
}

class ClippedModel : public WrappedModel {
 public:
  ClippedModel(std::unique_ptr<Model> model, const job::Job& job)
      : WrappedModel(std::move(model)), job_(job), limits_({job.optimizer()}) {
    for (const VariableSpec& spec : variables()) {
      limits_of_.push_back(LimitsOf(OptimizerOfVariable(spec.name, job)));
    }
    for (Clipped& side : clipped_) {
      side.variables.resize(variables().size());
      side.tables.resize(tables().size());
    }
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    std::swap(clipped_[0], clipped_[1]);
    const bool together = std::any_of(
        limits_.begin(), limits_.end(),
        [](const job::Optimizer& of) { return of.has_global_clipnorm(); });
    std::vector<size_t> variables;
    std::vector<Rows> rows;
    const auto take_variable = [&](size_t variable,
                                   absl::Span<const float> gradient) {
      if (!model().variables()[variable].trained) {
        return sinks.variable(variable, gradient);
      }
      const absl::Span<float> clipped = ClipVariable(variable, gradient);
      if (!together) return sinks.variable(variable, clipped);
      variables.push_back(variable);
    };
    const auto take_rows = [&](size_t table, absl::Span<const uint64_t> ids,
                               absl::Span<const float> gradients) {
      const absl::Span<float> clipped = ClipTable(table, gradients);
      if (!together) return sinks.rows(table, ids, clipped);
      rows.push_back({table, ids});
    };
    ASSIGN_OR_RETURN(
        const BatchResult result,
        model().Gradients(staged, seed,
                          {.variable = take_variable, .rows = take_rows}));
    if (together) ClipTogether(variables);
    for (const size_t variable : variables) {
      sinks.variable(variable, clipped_[0].variables[variable]);
    }
    for (const Rows& of : rows) {
      sinks.rows(of.table, of.ids, clipped_[0].tables[of.table]);
    }
    return result;
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    return model().Evaluate(staged);
  }

 private:
  struct Rows {
    size_t table = 0;
    absl::Span<const uint64_t> ids;
  };
  struct Clipped {
    std::vector<std::vector<float>> variables;
    std::vector<std::vector<float>> tables;
  };

  bool HasOwnOptimizer(size_t table) const {
    return job_.model().sparse_table(table).has_optimizer();
  }

  absl::Span<float> ClipVariable(size_t variable,
                                 absl::Span<const float> gradient) {
    std::vector<float>& clipped = clipped_[0].variables[variable];
    clipped.assign(gradient.begin(), gradient.end());
    ClipAlone(limits_[limits_of_[variable]], absl::MakeSpan(clipped));
    return absl::MakeSpan(clipped);
  }

  // All rows of a table are one gradient. One that has an optimizer of its own
  // has its limits, and shares none with others.
  absl::Span<float> ClipTable(size_t table, absl::Span<const float> gradients) {
    std::vector<float>& clipped = clipped_[0].tables[table];
    clipped.assign(gradients.begin(), gradients.end());
    if (!HasOwnOptimizer(table)) {
      ClipAlone(job_.optimizer(), absl::MakeSpan(clipped));
      return absl::MakeSpan(clipped);
    }
    const job::Optimizer& own = job_.model().sparse_table(table).optimizer();
    ClipAlone(own, absl::MakeSpan(clipped));
    if (own.has_global_clipnorm()) {
      const std::array<absl::Span<float>, 1> all = {absl::MakeSpan(clipped)};
      ClipByGlobalNorm(own.global_clipnorm(), all);
    }
    return absl::MakeSpan(clipped);
  }

  void ClipTogether(absl::Span<const size_t> variables) {
    std::vector<std::vector<absl::Span<float>>> gradients(limits_.size());
    for (const size_t variable : variables) {
      gradients[limits_of_[variable]].push_back(
          absl::MakeSpan(clipped_[0].variables[variable]));
    }
    for (size_t table = 0; table < clipped_[0].tables.size(); ++table) {
      if (HasOwnOptimizer(table)) continue;
      gradients[0].push_back(absl::MakeSpan(clipped_[0].tables[table]));
    }
    for (size_t i = 0; i < limits_.size(); ++i) {
      if (!limits_[i].has_global_clipnorm() || gradients[i].empty()) continue;
      ClipByGlobalNorm(limits_[i].global_clipnorm(), gradients[i]);
    }
  }

  // Returns the place in `limits_` of an optimizer, which it adds if none is
  // equal.
  size_t LimitsOf(const job::Optimizer& optimizer) {
    const auto known = std::find_if(
        limits_.begin(), limits_.end(), [&](const job::Optimizer& other) {
          return MessageDifferencer::Equals(other, optimizer);
        });
    if (known != limits_.end()) return known - limits_.begin();
    limits_.push_back(optimizer);
    return limits_.size() - 1;
  }

  const job::Job job_;
  // The optimizers of variables: the job's, then other ones. All variables of
  // one of them have a common norm.
  std::vector<job::Optimizer> limits_;
  std::vector<size_t> limits_of_;  // index: variable
  // Gradients of this step and of the last one: they live as long as the
  // model's own.
  std::array<Clipped, 2> clipped_;
};

}  // namespace

std::unique_ptr<Model> ClipGradients(std::unique_ptr<Model> model,
                                     const job::Job& job) {
  bool any = HasLimits(job.optimizer());
  for (const job::Layer& layer : job.model().layer()) {
    any |= HasLimits(layer.optimizer());
  }
  for (const job::SparseTable& table : job.model().sparse_table()) {
    any |= HasLimits(table.optimizer());
  }
  if (!any) return model;
  return std::make_unique<ClippedModel>(std::move(model), job);
}

}  // namespace parasol
