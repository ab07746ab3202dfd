#ifndef PARASOL_CLUSTER_CHECKPOINT_WARM_MATCH_H_
#define PARASOL_CLUSTER_CHECKPOINT_WARM_MATCH_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/warm_source.h"
#include "proto/job.pb.h"

namespace parasol {

// The part of a source that a job's variables and tables begin with.
struct WarmMatch {
  // Indices in the source's lists, in the order of the contents'; nullopt: the
  // job excludes it.
  std::vector<std::optional<size_t>> variables = {};
  std::vector<std::optional<size_t>> tables = {};
  // Names of the source that the job takes nothing of.
  std::vector<std::string> left = {};
};

// Finds what `warm_start` says for a job whose checkpoints have `contents`.
//   InvalidArgument  names all that is not there, with the names that are most
//                    like it, or that has another shape or width, and maps and
//                    excludes that mean nothing of the job.
absl::StatusOr<WarmMatch> MatchWarmStart(const job::WarmStart& warm_start,
                                         const CheckpointContents& contents,
                                         const WarmSource& source);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_WARM_MATCH_H_
