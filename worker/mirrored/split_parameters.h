#ifndef PARASOL_WORKER_MIRRORED_SPLIT_PARAMETERS_H_
#define PARASOL_WORKER_MIRRORED_SPLIT_PARAMETERS_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/collective/collective.h"
#include "parameters/device_parts.h"
#include "parameters/training_parameters.h"
#include "worker/mirrored/group_parameters.h"
#include "worker/mirrored/mirrored_state.h"
#include "worker/mirrored/table_pushes.h"

namespace parasol {

// The parameters of a worker whose group has the variables (GroupParameters),
// and ps the tables.
//
// Tables in step make the variables wait: a step of the variables is made when
// the ps have made the tables', never before. So tables are as far as the
// variables of any worker, or one step further, and then still have the rows
// before it. Rows of tables that are not in step are those that the ps have
// now.
//
// Thread-safe. Shutdown: Stop(), then the destructor.
class SplitParameters : public TrainingParameters, public DeviceParts {
 public:
  // `tables` are parameters without variables, of the job's tables in their
  // order, in step with the variables if `in_step`. All references must outlive
  // this object. `options.tables` is set here.
  SplitParameters(GroupParameters::Options options, MirroredState& state,
                  CollectiveEndpoint& endpoint,
                  std::unique_ptr<TrainingParameters> tables, bool in_step,
                  Clock& clock, MetricsRegistry& metrics);

  // Returns the part that the chief's answers are for.
  GroupParameters& variables() { return variables_; }

  using TrainingParameters::Pull;
  using TrainingParameters::Push;
  void Expect(const SyncStep& step, const DevicePart& part) override {
    variables_.Expect(step, part);
  }
  // A request is of variables or of rows.
  std::unique_ptr<Pending> Pull(PullRequest request) override;
  std::unique_ptr<Pending> Push(PushRequest request) override;
  // Returns the workers of the group, and the ps that owe an answer; while rows
  // are waited for, these ps alone. Gradients of a step that a new ps lacks are
  // pushed again only if it counts them once: there are no moves otherwise.
  Awaited Unanswered() const override;
  // Does what GroupParameters::Stop() does. Waits for ps end when that has
  // ended.
  void Stop() override { variables_.Stop(); }

 private:
  class RowPull;
  class StepPush;

  const std::unique_ptr<TrainingParameters> client_;
  TablePushes pushes_;
  GroupParameters variables_;
  // The pull of rows that was last waited for in vain; null: none.
  std::atomic<const RowPull*> awaited_rows_ = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_SPLIT_PARAMETERS_H_
