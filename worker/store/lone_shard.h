#ifndef PARASOL_WORKER_STORE_LONE_SHARD_H_
#define PARASOL_WORKER_STORE_LONE_SHARD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/shard_writer.h"

namespace parasol {

// The values of a process that trains alone: to its LoneChief they are the only
// shard. Used by one thread, between two steps.
class LoneShard {
 public:
  virtual ~LoneShard() = default;

  // Reads the values of the checkpoint at this path, or makes initial ones if
  // it is empty, with the learning rate in the place of the job's. After an
  // error that may pass it is called again.
  virtual absl::Status Load(const std::string& checkpoint,
                            std::optional<double> rate) = 0;
  // Writes values, slots and update counts to a checkpoint's only file.
  virtual absl::Status Save(ShardWriter& writer) const = 0;

  // Returns the number of replicas that train in step; 0: one trains on its
  // own, as a worker of asynchronous training does.
  virtual int replicas_in_step() const = 0;
  // Return the number of examples in the training set, and in each shard of it
  // that a replica has.
  virtual int64_t train_examples() const = 0;
  virtual absl::StatusOr<std::vector<int64_t>> ShardExamples() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_LONE_SHARD_H_
