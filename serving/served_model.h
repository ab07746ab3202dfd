#ifndef PARASOL_SERVING_SERVED_MODEL_H_
#define PARASOL_SERVING_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/checkpoint/model/checkpoint_model.h"
#include "ml/input/feature/batch.h"
#include "ml/input/format/given_examples.h"
#include "ml/loss/output_link.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"
#include "serving/model_runner.h"
#include "serving/model_signature.h"
#include "serving/serving_metrics.h"

namespace parasol {

// The signature that gives the outputs of `parasol predict`, and the signature
// that gives probabilities; the names of their outputs, unless the model names
// its own.
inline constexpr char kDefaultSignature[] = "serving_default";
inline constexpr char kProbabilitySignature[] = "probabilities";
inline constexpr char kDefaultOutput[] = "outputs";
inline constexpr char kProbabilityOutput[] = "probabilities";

// One version of a model, in memory, that answers requests. Thread-safe.
class ServedModel {
 public:
  struct Options {
    CheckpointModel::Options model = {};
    // Changes of the checkpoint's job ("eval.batch_size=100").
    std::vector<std::string> overrides = {};
    BatchLimits batches = {};
  };

  // The parts that a version is made of.
  struct Parts {
    GivenExamples form;
    Graph graph = {};
    ModelRunner::Compute compute = {};  // computes the graph's outputs
    int64_t version = 0;                // the global step
    // The time at which its checkpoint was begun.
    absl::Time written = absl::InfinitePast();
    // The checkpoint's values; null if others compute the outputs.
    std::shared_ptr<const CheckpointModel> values = nullptr;
  };

  // Loads the checkpoint in `directory`. If it is the one of `served`, which
  // may be null, with increments, both share the rows that have not changed,
  // and the others alone are read. `clock` and `metrics` must outlive the
  // model.
  //   InvalidArgument  the job can't be served: it has no data set whose form
  //                    examples could have.
  //   any other        as for JobOfCheckpoint() and CheckpointModel.
  static absl::StatusOr<std::shared_ptr<ServedModel>> Load(
      const std::string& directory, const Options& options, Clock& clock,
      ServingMetrics& metrics, const ServedModel* served = nullptr);

  // `clock` and `metrics` must outlive the model.
  ServedModel(Parts parts, const BatchLimits& batches, Clock& clock,
              ServingMetrics& metrics);

  // The global step of the checkpoint.
  int64_t version() const { return parts_.version; }
  // The time at which the checkpoint was begun.
  absl::Time written() const { return parts_.written; }
  // True if it shares rows with the version before it.
  bool shares_rows() const {
    return parts_.values != nullptr && parts_.values->shares_rows();
  }
  const GivenExamples& form() const { return parts_.form; }

  // Returns what the model takes and gives.
  ModelSignature Signature(const std::string& model) const;
  // Returns a signature's outputs, in the model's order. An empty name means
  // the default signature.
  //   InvalidArgument  there is no such signature: lists those that there are.
  absl::StatusOr<std::vector<SignatureOutput>> OutputsOf(
      absl::string_view signature) const;

  // Returns the outputs [batch.size, elements of all outputs] of a batch that
  // form() has made, for a signature that OutputsOf() knows. Blocks.
  //   InvalidArgument  an example is not one of the model: names it.
  //   any other        as for ModelRunner::Predict().
  absl::StatusOr<std::vector<float>> Predict(absl::string_view signature,
                                             Batch batch, absl::Time deadline);

 private:
  // The outputs of the model, each called `name` if it has no name.
  std::vector<SignatureOutput> Outputs(absl::string_view name) const;

  const Parts parts_;
  const std::vector<OutputLink> links_;  // one for each output
  ModelRunner runner_;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_SERVED_MODEL_H_
