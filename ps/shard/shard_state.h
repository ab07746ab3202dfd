#ifndef PARASOL_PS_SHARD_SHARD_STATE_H_
#define PARASOL_PS_SHARD_SHARD_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "ps/journal/push_journal.h"
#include "ps/shard/shard_snapshot.h"

namespace parasol {

class FileDescriptor;  // storage/durable_file.h
class ParameterShard;  // ps/shard/parameter_shard.h

// A standby's shard itself, and the record of the shard's journal behind which
// it has nothing.
struct StandbyShard {
  std::shared_ptr<ParameterShard> shard;
  JournalEnd in_journal;
};

// The whole contents of a shard as one shard file (storage/FORMAT.md) on their
// way from one ps to another: in a folder of its own, which goes with the
// object. The folder is in memory (/dev/shm) if there is room, else among the
// system's temporary files. Not thread-safe. Errors are durable_file.h's, but
// never NotFound: try again.
class ShardState {
 public:
  // Bytes of a piece of ForEachPiece().
  static constexpr size_t kPieceBytes = 1 << 20;

  // Makes an empty one for the shard of `order`, to be appended to.
  static absl::StatusOr<ShardState> Create(const wire::LoadRequest& order);
  // Writes the contents of shard `shard` of `num_shards`, of about `bytes`.
  static absl::StatusOr<ShardState> Write(ShardSnapshot snapshot,
                                          uint32_t shard, uint32_t num_shards,
                                          uint64_t bytes);
  // Removes the folders that processes have left which were killed.
  static void RemoveStale();
  ~ShardState();
  ShardState(ShardState&& other) noexcept;
  ShardState& operator=(ShardState&&) = delete;

  // Appends to the file.
  absl::Status Append(absl::string_view bytes);
  // Calls `visit` with the file's bytes, piece by piece; returns its first
  // error.
  absl::Status ForEachPiece(
      absl::FunctionRef<absl::Status(absl::string_view)> visit) const;

  // The record of the shard's journal behind which the contents have nothing.
  void set_in_journal(const JournalEnd& end) { in_journal_ = end; }
  const JournalEnd& in_journal() const { return in_journal_; }

  // Makes the folder a checkpoint, of this one shard file, that a Load can name
  // (directory()). `manifest` lacks only the file.
  absl::Status MakeCheckpoint(durable::CheckpointManifest manifest);
  const std::string& directory() const { return directory_; }

 private:
  // Makes an empty one for about `bytes`.
  static absl::StatusOr<ShardState> MakeFor(uint64_t bytes);
  ShardState(std::string directory,
             std::unique_ptr<const FileDescriptor> folder);
  std::string path() const;

  std::string directory_;
  // The folder, locked as long as it is used.
  std::unique_ptr<const FileDescriptor> folder_;
  std::unique_ptr<const FileDescriptor> file_;  // null: not appended to
  uint64_t size_ = 0;
  uint32_t crc_ = 0;
  JournalEnd in_journal_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_SHARD_STATE_H_
