#include "ps/shard/write_shard.h"

#include <fcntl.h>

#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/rows/row_checkpoint.h"
#include "cluster/rows/row_snapshot.h"
#include "ps/dense/array_pool.h"
#include "ps/shard/dedup_window.h"
#include "storage/durable_file.h"
#include "storage/shard_entry.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

// The chunks of one variable, all of them array by array.
absl::Status WriteVariable(absl::Span<ShardSnapshot::Chunk> chunks,
                           ShardWriter& writer) {
  const int arrays = 1 + chunks[0].contents.slots.size();
  for (int array = kValueArray; array < arrays; ++array) {
    for (ShardSnapshot::Chunk& chunk : chunks) {
      ArrayRef& values = array == kValueArray ? chunk.contents.value
                                              : chunk.contents.slots[array - 1];
      RETURN_IF_ERROR(
          writer.AddElements(chunk.variable, array, chunk.first_element,
                             chunk.contents.updates, values.span()));
      values = ArrayRef();
    }
  }
  return absl::OkStatus();
}

absl::Status WriteVariables(ShardSnapshot& snapshot, ShardWriter& writer) {
  for (size_t first = 0, last = 0; first < snapshot.chunks.size();
       first = last) {
    while (last < snapshot.chunks.size() &&
           snapshot.chunks[last].variable == snapshot.chunks[first].variable) {
      ++last;
    }
    RETURN_IF_ERROR(WriteVariable(
        absl::MakeSpan(snapshot.chunks).subspan(first, last - first), writer));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<durable::CheckpointFile> WriteShard(ShardSnapshot snapshot,
                                                   uint32_t shard,
                                                   uint32_t num_shards,
                                                   const std::string& path) {
  // A file that is there is another's. In a store it has a name of its own.
  if (!IsUri(path)) {
    RETURN_IF_ERROR(
        FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
            .status());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                   ShardWriter::Create(path));
  writer->SetWriter({shard, num_shards});
  if (snapshot.journal.has_value()) writer->SetJournal(*snapshot.journal);
  if (snapshot.base.has_value()) writer->SetBase(*snapshot.base);
  RETURN_IF_ERROR(WriteRemoved(snapshot.tables, *writer));
  RETURN_IF_ERROR(WriteVariables(snapshot, *writer));
  RETURN_IF_ERROR(WriteTables(absl::MakeSpan(snapshot.tables), *writer));
  for (const auto& [incarnation, window] : snapshot.dedup) {
    RETURN_IF_ERROR(writer->AddDedup(
        shard, num_shards,
        {.worker_incarnation = incarnation, .window = window.Serialize()}));
  }
  return writer->Finish();
}

}  // namespace parasol
