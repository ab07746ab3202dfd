#include "tool/best_flag.h"

#include "absl/flags/flag.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "ml/input/object/object_uri.h"

ABSL_FLAG(bool, best, false,
          "Of a directory of checkpoints: the one with the best evaluation "
          "(checkpoint.keep_best), which the file BEST names, not the newest. "
          "The same as DIR/BEST.");

namespace parasol {

std::string CheckpointByFlag(const std::string& path) {
  if (!absl::GetFlag(FLAGS_best) || DirectoryOfBest(path)) return path;
  return JoinedPath(path, kBestName);
}

}  // namespace parasol
