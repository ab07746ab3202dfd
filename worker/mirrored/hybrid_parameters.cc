#include "worker/mirrored/hybrid_parameters.h"

#include <algorithm>
#include <utility>

#include "cluster/job/strategy.h"

namespace parasol {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

MirroredParameters::Options WithTables(MirroredParameters::Options options,
                                       TablePushes& pushes) {
  options.tables = &pushes;
  return options;
}

}  // namespace

// A pull of rows, which ends when the worker's last step may not go on.
class HybridParameters::RowPull : public Pending {
 public:
  RowPull(HybridParameters& parameters, std::unique_ptr<Pending> rows)
      : parameters_(parameters), rows_(std::move(rows)) {}

  absl::Status Wait() override {
    while (!rows_->WaitFor(kPollInterval)) {
      parameters_.variables_.AbortIfStopping();
    }
    return rows_->Wait();
  }
  bool WaitFor(absl::Duration limit) override { return rows_->WaitFor(limit); }
  // Updates that are not made in step say nothing of steps.
  Outcome outcome() const override {
    return parameters_.pushes_.in_step() ? rows_->outcome() : Outcome();
  }

 private:
  HybridParameters& parameters_;
  const std::unique_ptr<Pending> rows_;
};

HybridParameters::HybridParameters(MirroredParameters::Options options,
                                   MirroredState& state,
                                   CollectiveEndpoint& endpoint,
                                   std::unique_ptr<ParameterClient> tables,
                                   Clock& clock, MetricsRegistry& metrics)
    : client_(std::move(tables)),
      pushes_(*client_, state.job().model().sparse_table_size(),
              HasTablesInStep(state.job()), clock),
      variables_(WithTables(std::move(options), pushes_), state, endpoint,
                 clock, metrics) {}

std::unique_ptr<ParameterClient::Pending> HybridParameters::Pull(
    PullRequest request) {
  if (request.rows.empty()) return variables_.Pull(std::move(request));
  if (!pushes_.in_step()) request.min_updates = 0;
  return std::make_unique<RowPull>(*this, client_->Pull(std::move(request)));
}

std::unique_ptr<ParameterClient::Pending> HybridParameters::Push(
    PushRequest request) {
  pushes_.Add(*request.sync, request.rows);
  request.rows.clear();
  return variables_.Push(std::move(request));
}

absl::Time HybridParameters::last_loading() const {
  return std::max(variables_.last_loading(), client_->last_loading());
}

std::vector<std::string> HybridParameters::Unanswered() const {
  std::vector<std::string> names = variables_.Unanswered();
  for (std::string& name : client_->Unanswered()) {
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace parasol
