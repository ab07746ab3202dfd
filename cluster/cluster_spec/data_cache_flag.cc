#include "cluster/cluster_spec/data_cache_flag.h"

#include "absl/flags/flag.h"
#include "cluster/object/store_files.h"
#include "ml/input/object/object_cache.h"

ABSL_FLAG(std::string, data_cache_dir, "",
          "Where copies of data of object stores and web servers are kept, for "
          "all processes of the machine that are given the same directory, and "
          "files of "
          "checkpoints there on their way. Empty: "
          "parasol-data-cache-UID in $TMPDIR, or /tmp.");

namespace parasol {

void ApplyDataCacheFlag() {
  ObjectCache::OfProcess().SetDirectory(absl::GetFlag(FLAGS_data_cache_dir));
  UseObjectStores();
}

}  // namespace parasol
