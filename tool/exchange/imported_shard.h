#ifndef PARASOL_TOOL_EXCHANGE_IMPORTED_SHARD_H_
#define PARASOL_TOOL_EXCHANGE_IMPORTED_SHARD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "proto/job.pb.h"
#include "storage/shard_writer.h"
#include "storage/tensor_files/tensor_reader.h"
#include "tool/exchange/import_match.h"

namespace parasol {

// Writes the tensors that `match` has found in `reader` as a checkpoint's only
// file, piece by piece. Everything has had `updates` updates. Slots that the
// tensors lack have their initial values. Fails as reading and writing do, and
// with
//   InvalidArgument  an optimizer of the job can't be used.
absl::Status WriteImportedShard(TensorReader& reader, const ImportMatch& match,
                                const CheckpointContents& contents,
                                const job::Job& job, int64_t updates,
                                ShardWriter& writer);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_IMPORTED_SHARD_H_
