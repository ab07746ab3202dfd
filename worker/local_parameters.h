#ifndef PARASOL_WORKER_LOCAL_PARAMETERS_H_
#define PARASOL_WORKER_LOCAL_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/client/parameter_client.h"
#include "ml/layer/variable_spec.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"
#include "storage/shard_writer.h"
#include "worker/local_rows.h"

namespace parasol {

// The variables and sparse tables of a worker that has no cluster, in the
// worker's memory. The interface, the optimizers and the checkpoints are those
// of a ps. A push is applied, and a pull copied, before the call returns. Not
// thread-safe.
class LocalParameters : public ParameterClient {
 public:
  // Creates the variables with their initial values, and the job's tables
  // without rows.
  //   InvalidArgument  an optimizer or an initializer can't be used.
  static absl::StatusOr<std::unique_ptr<LocalParameters>> Create(
      const std::vector<VariableSpec>& variables, const job::Job& job);

  using ParameterClient::Pull;
  using ParameterClient::Push;
  std::unique_ptr<Pending> Pull(PullRequest request) override;
  std::unique_ptr<Pending> Push(PushRequest request) override;
  // Returns FailedPrecondition: a worker without a cluster has no shards.
  absl::Status Update(const wire::GetPlacementResponse& placement) override;
  void Stop() override {}

  // Write values, slots and update counts to a checkpoint, and read them back.
  // Restore() takes a checkpoint of any cluster, whatever its number of shards.
  absl::Status Save(ShardWriter& writer) const;
  absl::Status Restore(const CheckpointReader& checkpoint);
  // Adds the variables and tables to the manifest, in the order of the job.
  void Describe(durable::CheckpointManifest& manifest) const;

 private:
  struct Variable {
    VariableSpec spec;
    std::vector<float> value;
    std::vector<std::vector<float>> slots;
    int64_t updates = 0;
  };

  LocalParameters() = default;
  absl::Status AddVariable(const VariableSpec& spec, uint64_t seed);
  const Optimizer& OptimizerOf(const VariableSpec& spec) const {
    return spec.trained ? *of_trained_ : *of_others_;
  }
  void Apply(const Gradient& gradient);

  std::unique_ptr<const Optimizer> of_trained_;
  std::unique_ptr<const Optimizer> of_others_;
  std::vector<Variable> variables_;
  std::vector<std::unique_ptr<LocalRows>> tables_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_PARAMETERS_H_
