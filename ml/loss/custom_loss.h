#ifndef PARASOL_ML_LOSS_CUSTOM_LOSS_H_
#define PARASOL_ML_LOSS_CUSTOM_LOSS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/kernel/loss/loss_batch.h"
#include "ml/loss/loss_kind.h"
#include "proto/job.pb.h"

// Losses that users write (docs/examples/custom_model). Chief, ps and launcher
// need none of the code: only the programs that compute, worker, evaluator and
// the tool `parasol`, are linked with it.
namespace parasol {

// A loss of a user's own, for models with a given number of outputs. Immutable,
// thread-safe. One that goes example by example derives from ExampleLoss.
class CustomLoss {
 public:
  virtual ~CustomLoss() = default;

  // Returns the form of an example's label. Data are checked against it, class
  // weights need one of classes, and metrics go by it: outputs whose labels are
  // probabilities count as logits.
  virtual LabelForm label() const = 0;

  // Returns true if Compute() can be called with `device`. The default is a
  // device whose memory the host can read, a CPU.
  virtual bool RunsOn(const Device& device) const {
    return device.shares_host_memory();
  }

  // Writes the loss of each example of `batch` times its weight, and unless
  // out.gradient is null the gradient of the mean of these losses, which
  // divides by the number of examples and not by the sum of weights. Arrays are
  // float32, row-major, in the device's memory: outputs [examples, outputs],
  // labels [examples, label().width]. Enqueues on the compute stream and
  // returns; allocates nothing. A pass that a CUDA device has recorded replays
  // what was enqueued, and does not call this again.
  virtual absl::Status Compute(Device& device, const LossBatch& batch,
                               const LossResult& out) const = 0;
};

// A custom loss of which each example's part depends on this example alone,
// computed on the host.
class ExampleLoss : public CustomLoss {
 public:
  // Returns the loss of an example of weight 1, from the model's outputs and
  // the label, and unless `gradient` is empty writes its derivative by each
  // output there.
  virtual double Of(absl::Span<const float> outputs,
                    absl::Span<const float> labels,
                    absl::Span<float> gradient) const = 0;

  absl::Status Compute(Device& device, const LossBatch& batch,
                       const LossResult& out) const final;
};

// A function that makes the loss of a model with `outputs` outputs, at least 1.
//   InvalidArgument  the parameters or the outputs do not suit it: says why.
using CustomLossFactory =
    std::function<absl::StatusOr<std::unique_ptr<const CustomLoss>>(
        const job::Custom& spec, int64_t outputs)>;

// Registers a loss in this program as `type`, at namespace scope of its own
// file:
//
//   const CustomLossRegistration kRegistration("quantile", MakeQuantile);
//
// Two losses of one type are a bug. Only for use before main().
class CustomLossRegistration {
 public:
  CustomLossRegistration(absl::string_view type, CustomLossFactory factory);
};

// Returns the loss that `spec` names; null if this program does not have its
// code.
//   InvalidArgument  "<path>: …": the code refuses the parameters or outputs.
absl::StatusOr<std::shared_ptr<const CustomLoss>> MakeCustomLoss(
    const std::string& path, const job::Custom& spec, int64_t outputs);

// Returns FailedPrecondition with the types that this program has.
absl::Status LacksCustomLoss(absl::string_view type);

// The kind "custom" of a job's losses: what holds without the code.
extern const LossKind kCustomLossKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_CUSTOM_LOSS_H_
