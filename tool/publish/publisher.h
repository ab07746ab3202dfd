#ifndef PARASOL_TOOL_PUBLISH_PUBLISHER_H_
#define PARASOL_TOOL_PUBLISH_PUBLISHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"
#include "storage/tensor_files/tensor_reader.h"
#include "tool/publish/published_directory.h"
#include "tool/publish/published_version.h"
#include "tool/publish/state_delta.h"

namespace parasol {

// A checkpoint as a version.
struct Publication {
  PublishedVersion version = {};
  // True if the version was there already, with these bytes.
  bool was_there = false;
  // Bytes of the version's tensors as they are in files, of the whole state,
  // and of the state's bytes that are not the base's; 0 without a base.
  uint64_t file_bytes = 0;
  uint64_t state_bytes = 0;
  uint64_t changed_bytes = 0;
};

// Returns a line for people: "/out/weight_v000002: step 200, xor on …".
std::string Describe(const Publication& publication,
                     const std::string& directory);

// Publishes checkpoints of one run in a directory, one after the other: each as
// the whole state or as a delta on the version before, whichever is smallest.
// The memory that this needs does not grow with the model, but with its largest
// tensor that --layout=pytorch moves: that is in memory whole, twice.
// Move-only; not thread-safe.
class Publisher {
 public:
  struct Options {
    std::string directory;
    // kFloat32, or kBfloat16 to round values to that.
    ElementType type = ElementType::kFloat32;
    // True for a PyTorch state_dict's names and layouts (NewPyTorchWriter()).
    bool pytorch_layout = false;
    // Versions from one whole one to the next, at most; 1: each one is whole.
    int full_every = 10;
    // Versions that stay, besides those that they build on; 0: all.
    int max_to_keep = 0;
  };

  // Takes the directory. Fails as PublishedDirectory::Open() does, and with
  //   InvalidArgument  its versions have another type or layout.
  static absl::StatusOr<Publisher> Open(const Options& options);

  // Returns the step of the newest version; -1: there is none.
  int64_t newest_step() const;

  // Returns OK if the checkpoint in directory `checkpoint`, which has
  // `manifest`, may come after the newest version. Reads nothing.
  //   InvalidArgument     it is of another run than the versions.
  //   FailedPrecondition  the newest version is of a later step.
  absl::Status CheckFits(const std::string& checkpoint,
                         const durable::CheckpointManifest& manifest) const;

  // Publishes the checkpoint in directory `checkpoint`. Verifies all its files.
  //   InvalidArgument     it is of another run than the versions.
  //   FailedPrecondition  the newest version is of a later step, or of this
  //                       step with other bytes.
  //   any other           as for reading checkpoints (CheckpointReader) and
  //                       writing files, and as for
  //                       PublishedDirectory::Commit(); nothing is published,
  //                       and this may be called again.
  // What fails once the version has its name is a line in the log.
  absl::StatusOr<Publication> Publish(const std::string& checkpoint);

 private:
  Publisher(Options options, PublishedDirectory directory)
      : options_(std::move(options)), directory_(std::move(directory)) {}

  absl::Status WriteState(const std::string& checkpoint,
                          const CheckpointReader& reader);
  // Returns the newest version's state for a delta on it; null, with `why`, if
  // the next version must be whole.
  std::unique_ptr<TensorReader> OpenBase(const TensorReader& state,
                                         std::string& why) const;
  absl::StatusOr<Publication> PublishState(const std::string& checkpoint,
                                           const CheckpointReader& reader);
  // Publishes `state` as the smallest form on `base`, the newest version's
  // state, or without one, if that is null, as `why_whole` says.
  absl::StatusOr<Publication> PublishOn(
      TensorReader* base, const std::string& checkpoint,
      const durable::CheckpointManifest& manifest, TensorReader& state,
      std::string why_whole);
  // Stages the smallest form of the version, and says in it which one that is.
  absl::Status StageSmallest(TensorReader& state, TensorReader* base,
                             const StateComparison& comparison,
                             const std::string& staged,
                             PublishedVersion& version);
  absl::Status StageDelta(VersionFormat format, TensorReader& state,
                          TensorReader& base, const StateComparison& comparison,
                          const std::string& staged, uint64_t& smallest,
                          PublishedVersion& version);

  Options options_;
  PublishedDirectory directory_;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_PUBLISHER_H_
