#ifndef PARASOL_WORKER_MIRRORED_HYBRID_PARAMETERS_H_
#define PARASOL_WORKER_MIRRORED_HYBRID_PARAMETERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/parameter_client.h"
#include "cluster/collective/collective.h"
#include "proto/chief.pb.h"
#include "worker/mirrored/mirrored_parameters.h"
#include "worker/mirrored/mirrored_state.h"
#include "worker/mirrored/table_pushes.h"

namespace parasol {

// The parameters of a worker under the hybrid strategy: variables as in
// MirroredParameters, tables on ps.
//
// Tables in step make the variables wait: a step of the variables is made when
// the ps have made the tables', never before. So tables are as far as the
// variables of any worker, or one step further, and then still have the rows
// before it. Rows of tables that are not in step are those that the ps have
// now.
//
// Thread-safe. Shutdown: Stop(), then the destructor.
class HybridParameters : public ParameterClient {
 public:
  // `tables` is a client without variables, of the job's tables in their order.
  // All references must outlive this object. `options.tables` is set here.
  HybridParameters(MirroredParameters::Options options, MirroredState& state,
                   CollectiveEndpoint& endpoint,
                   std::unique_ptr<ParameterClient> tables, Clock& clock,
                   MetricsRegistry& metrics);

  // Returns the part that the chief's answers are for.
  MirroredParameters& variables() { return variables_; }

  using ParameterClient::Pull;
  using ParameterClient::Push;
  void Expect(const SyncStep& step, const DevicePart& part) override {
    variables_.Expect(step, part);
  }
  // A request is of variables or of rows.
  std::unique_ptr<Pending> Pull(PullRequest request) override;
  std::unique_ptr<Pending> Push(PushRequest request) override;
  absl::Status Update(const wire::GetPlacementResponse& placement) override {
    return client_->Update(placement);
  }
  // Gradients of a step that a new ps lacks are pushed again only if it counts
  // them once.
  int64_t moves() const override {
    return pushes_.in_step() ? client_->moves() : 0;
  }
  void ShardsAreLoading(absl::Span<const int> shards) override {
    client_->ShardsAreLoading(shards);
  }
  absl::Time last_loading() const override;
  // Returns the workers of the group, and the ps that owe an answer; while rows
  // are waited for, these ps alone.
  std::vector<std::string> Unanswered() const override;
  // Does what MirroredParameters::Stop() does. Waits for ps end when that has
  // ended.
  void Stop() override { variables_.Stop(); }

 private:
  class RowPull;
  class StepPush;

  const std::unique_ptr<ParameterClient> client_;
  TablePushes pushes_;
  MirroredParameters variables_;
  // The pull of rows that was last waited for in vain; null: none.
  std::atomic<const RowPull*> awaited_rows_ = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_HYBRID_PARAMETERS_H_
