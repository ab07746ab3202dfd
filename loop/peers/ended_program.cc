#include "loop/peers/ended_program.h"

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "cluster/checkpoint/final_checkpoint.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"

namespace parasol {

bool LoadEndedProgram(const std::string& directory, int64_t iterations,
                      ParameterStore& store) {
  const std::optional<durable::CheckpointManifest> newest =
      NewestManifest(directory);
  if (!newest || !newest->final() || newest->global_step() < iterations) {
    return false;
  }
  const std::string path =
      CheckpointStore(directory).PathOf(newest->global_step());
  const absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
      CheckpointReader::Open(path);
  const absl::Status restored =
      reader.ok() ? store.Restore(**reader) : reader.status();
  if (!restored.ok()) {
    LOG(WARNING) << path << ": " << restored.message();
    return false;
  }
  LOG(INFO) << "the other processes are gone, and " << path
            << " is the program's last checkpoint: nothing is left to do";
  return true;
}

}  // namespace parasol
