#ifndef PARASOL_STORAGE_CHECKPOINT_H_
#define PARASOL_STORAGE_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"

// Checkpoints on disk; the format is storage/FORMAT.md. A checkpoint is a
// directory "ckpt-<step, 12 digits>" that never changes once it has that name.
namespace parasol {

// Which array of a variable: its value, or one of the optimizer's slots.
inline constexpr int kValueArray = 0;  // slot i is array 1 + i

// Which worker pushes a shard has applied: see ps/dedup_window.h.
struct DedupEntry {
  uint64_t worker_incarnation = 0;
  std::string window;  // opaque here
};

// One shard's file of a checkpoint. Not thread-safe.
class ShardWriter {
 public:
  //   Unavailable, PermissionDenied, ResourceExhausted  names the path.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(
      const std::string& path);
  virtual ~ShardWriter() = default;

  // Elements [first, first + values.size()) of the flattened variable's array.
  // Calls must come in ascending order of (variable, array, first).
  // `updates` is the number of updates that these elements have had.
  virtual absl::Status AddElements(absl::string_view variable, int array,
                                   int64_t first, int64_t updates,
                                   absl::Span<const float> values) = 0;

  // After all elements, in ascending order of worker incarnation. `shard` of
  // `num_shards` wrote it: a window means nothing to another sharding.
  virtual absl::Status AddDedup(uint32_t shard, uint32_t num_shards,
                                const DedupEntry& entry) = 0;

  // Writes what is left and fsyncs. The file's size and crc32c.
  virtual absl::StatusOr<durable::CheckpointFile> Finish() = 0;
};

// Reads a complete checkpoint. Thread-safe.
class CheckpointReader {
 public:
  // Verifies the manifest, and every file's size and crc32c.
  //   NotFound           no such directory or no manifest in it.
  //   DataLoss           something is truncated or altered: names the file.
  //   FailedPrecondition a format_version that is not known here.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& directory);
  virtual ~CheckpointReader() = default;

  virtual const durable::CheckpointManifest& manifest() const = 0;

  // Fills `out` with elements [first, first + out.size()) of the variable's
  // array, whatever shards wrote them. Returns the largest number of updates
  // among the entries that were read.
  //   NotFound  the variable, or some of the elements, are not there.
  virtual absl::StatusOr<int64_t> ReadElements(
      absl::string_view variable, int array, int64_t first,
      absl::Span<float> out) const = 0;

  // What shard `shard` of `num_shards` had written; empty for another sharding.
  virtual absl::StatusOr<std::vector<DedupEntry>> ReadDedup(
      uint32_t shard, uint32_t num_shards) const = 0;
};

// The checkpoints of one job under one directory. Only the chief writes here;
// ps write into the directory that Begin() made; the evaluator reads.
class CheckpointStore {
 public:
  // Makes the directory where it is missing and checks that it can be written.
  //   PermissionDenied, NotFound, …  names the directory.
  static absl::StatusOr<CheckpointStore> OpenForWriting(
      const std::string& directory);
  // For readers: the directory need not exist yet.
  explicit CheckpointStore(std::string directory);

  const std::string& directory() const { return directory_; }

  // Steps of the complete checkpoints, ascending. Unfinished ones (".tmp-…")
  // are not among them. Reads names only.
  absl::StatusOr<std::vector<int64_t>> ListSteps() const;
  std::string PathOf(int64_t step) const;

  // Reads and checks the manifest alone.
  absl::StatusOr<durable::CheckpointManifest> ReadManifest(int64_t step) const;

  // The newest checkpoint that passes CheckpointReader::Open's verification; a
  // damaged one is logged and passed over. nullopt: there is none.
  absl::StatusOr<std::optional<int64_t>> NewestIntact() const;

  // A fresh directory for the shards' files of the checkpoint at `step`.
  absl::StatusOr<std::string> Begin(int64_t step);
  // The commit point: writes the manifest (with its own checksum), fsyncs,
  // renames `working_directory` to PathOf(step), fsyncs the parent. An earlier
  // checkpoint of the same step is replaced.
  absl::Status Commit(const std::string& working_directory,
                      const durable::CheckpointManifest& manifest);
  // Removes the directory of a checkpoint that failed.
  void Abandon(const std::string& working_directory);

  // Removes the oldest so that at most `max_to_keep` stay (0: keep all), and
  // what crashed writers left behind.
  absl::Status Prune(int max_to_keep);

 private:
  std::string directory_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKPOINT_H_
