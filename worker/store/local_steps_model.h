#ifndef PARASOL_WORKER_STORE_LOCAL_STEPS_MODEL_H_
#define PARASOL_WORKER_STORE_LOCAL_STEPS_MODEL_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the job of local steps: with their optimizer and batch size, and no
// local steps of its own. `job` itself if it has none. Its defaults are filled
// in.
job::Job JobOfLocalSteps(const job::Job& job);

struct LocalStepsOptions {
  // Factor of the differences of variables that are not trained (moving means):
  // the part of it that one of several workers adds whose differences are not
  // averaged.
  float statistics_share = 1;
  // Asked before each local step, on the thread that computes: true ends the
  // pass with Cancelled, or, once a part of the batch's difference was given,
  // without further steps: what is exchanged in part is completed.
  std::function<bool()> cancelled = [] { return false; };
};

// Returns a model whose gradient is the *outer gradient* of local steps
// (DiLoCo, arXiv 2311.08105; local SGD): Gradients() begins with the values
// that were uploaded, makes a step with the inner optimizer for each
// local_steps.batch_size examples of its batch, the last ones perhaps fewer,
// and gives the difference: the values that were uploaded - the values after
// the last step, in float32.
//
// The inner optimizer's slots stay in this object from batch to batch of a
// shard (Batch::shard); a new object, or a shard's first batch, begins with
// their initial values. The mean of a named output's losses
// is over the examples of the whole batch that count for it. A schedule of its
// learning rate goes by the batch's number, not by the steps that this object
// has made: local step i of batch n has the rate of update
// n * local_steps.steps + i.
//
// A batch has, where there are several fragments or local_steps.overlap_steps
// (Streaming DiLoCo, arXiv 2501.18512), a pass for each of fragments(), with an
// equal share of its steps. A pass gives its fragment's difference
// overlap_steps before its end and makes these steps meanwhile. Values, too,
// then stay from batch to batch of a shard: new ones of a variable take the
// place of those that the last difference was of, and what steps have changed
// since is added. So each change is in one difference. A shard that has given
// no difference of a variable since its last new values keeps all that it has
// changed.
//
// Values and slots are in host memory. `model` has no tables, and its
// Gradients() clips and cuts batches as `job`'s local steps want it.
//   InvalidArgument  this program lacks the inner optimizer's code, or the
//                    model has fewer variables than fragments.
// Returns `model` itself if the job has no local steps.
absl::StatusOr<std::unique_ptr<Model>> TakeLocalSteps(
    std::unique_ptr<Model> model, const job::Job& job,
    LocalStepsOptions options = {});

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_LOCAL_STEPS_MODEL_H_
