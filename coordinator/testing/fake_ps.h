#ifndef PARASOL_COORDINATOR_TESTING_FAKE_PS_H_
#define PARASOL_COORDINATOR_TESTING_FAKE_PS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/uri/uri_path.h"
#include "cluster/client/ps_client.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {

// A ps without variables, for tests: it writes real, empty snapshot files,
// notes the loads that it is asked for, and fails when it is told to. Must
// outlive its clients. Thread-safe.
class FakePs {
 public:
  std::unique_ptr<PsClient> NewClient() {
    return std::make_unique<Client>(*this);
  }

  // Returns the loads that the ps was asked for, failed loads included.
  std::vector<wire::LoadRequest> loads() {
    absl::MutexLock lock(&mu_);
    return loads_;
  }
  int snapshots() {
    absl::MutexLock lock(&mu_);
    return snapshots_;
  }
  wire::SnapshotRequest last_snapshot() {
    absl::MutexLock lock(&mu_);
    return last_snapshot_;
  }
  // Makes every later snapshot end with `status`.
  void FailSnapshots(absl::Status status) {
    absl::MutexLock lock(&mu_);
    snapshot_status_ = std::move(status);
  }
  // Makes every load from `checkpoint` end with DataLoss.
  void CallDamaged(const std::string& checkpoint) {
    absl::MutexLock lock(&mu_);
    damaged_.insert(checkpoint);
  }
  // Makes every later load from `checkpoint` end with NotFound.
  void Miss(const std::string& checkpoint) {
    absl::MutexLock lock(&mu_);
    missed_.insert(checkpoint);
  }
  // Makes every later load from `checkpoint` end with NotFound and remove the
  // checkpoint.
  void Vanish(const std::string& checkpoint) {
    absl::MutexLock lock(&mu_);
    vanishing_.insert(checkpoint);
  }
  // Sets the numbers of updates with which it answers when a cut is chosen.
  void SetUpdates(int64_t min, int64_t max) {
    absl::MutexLock lock(&mu_);
    updates_.set_min_updates(min);
    updates_.set_max_updates(max);
  }
  // Has it call `seen` when a cut is chosen, before it answers.
  void OnPrepare(std::function<void()> seen) {
    absl::MutexLock lock(&mu_);
    on_prepare_ = std::move(seen);
  }
  // Makes later snapshots increments to the last one if they are asked to be
  // increments at all; or, without `knows`, whole ones.
  void KnowChanges(bool knows) {
    absl::MutexLock lock(&mu_);
    knows_changes_ = knows;
  }
  // Makes loads and snapshots block until they are cancelled.
  void Hang() {
    absl::MutexLock lock(&mu_);
    hangs_ = true;
  }

 private:
  class Client : public PsClient {
   public:
    explicit Client(FakePs& ps) : ps_(ps) {}

    absl::StatusOr<wire::LoadResponse> Load(
        const wire::LoadRequest& request) override {
      absl::MutexLock lock(&ps_.mu_);
      ps_.loads_.push_back(request);
      if (ps_.hangs_) return ps_.AwaitCancel();
      if (ps_.damaged_.contains(request.checkpoint())) {
        return absl::DataLossError(
            absl::StrCat(request.checkpoint(), " is damaged"));
      }
      if (ps_.vanishing_.contains(request.checkpoint())) {
        std::filesystem::remove_all(request.checkpoint());
        return absl::NotFoundError(request.checkpoint());
      }
      if (ps_.missed_.contains(request.checkpoint())) {
        return absl::NotFoundError(
            absl::StrCat(request.checkpoint(), " is not here"));
      }
      return wire::LoadResponse();
    }

    absl::StatusOr<wire::SnapshotResponse> Snapshot(
        const wire::SnapshotRequest& request) override {
      bool is_increment;
      {
        absl::MutexLock lock(&ps_.mu_);
        ++ps_.snapshots_;
        ps_.last_snapshot_ = request;
        if (ps_.hangs_) return ps_.AwaitCancel();
        if (!ps_.snapshot_status_.ok()) return ps_.snapshot_status_;
        is_increment = ps_.knows_changes_ && !request.since().empty();
      }
      auto writer = ShardWriter::Create(CheckpointStore::PathInWorking(
          request.directory(), request.file_name()));
      if (!writer.ok()) return writer.status();
      // No two files of a shard have the same bytes.
      (*writer)->SetJournal({.journal = 1, .segment = ps_.NextSegment()});
      if (is_increment) {
        auto base = ps_.FileOf(request);
        if (!base.ok()) return base.status();
        (*writer)->SetBase({base->bytes(), base->crc32c()});
      }
      auto file = (*writer)->Finish();
      if (!file.ok()) return file.status();
      wire::SnapshotResponse response;
      response.set_bytes(file->bytes());
      response.set_crc32c(file->crc32c());
      response.set_is_increment(is_increment);
      return response;
    }

    absl::StatusOr<wire::PrepareSnapshotResponse> PrepareSnapshot(
        const wire::PrepareSnapshotRequest&) override {
      absl::MutexLock lock(&ps_.mu_);
      if (ps_.on_prepare_) ps_.on_prepare_();
      return ps_.updates_;
    }

    void MoveTo(const std::string&, std::optional<int>) override {}
    void CancelCalls() override {
      absl::MutexLock lock(&ps_.mu_);
      ++ps_.cancels_;
    }

   private:
    FakePs& ps_;
  };

  // Returns the file since which a request asks for changes.
  static absl::StatusOr<durable::CheckpointFile> FileOf(
      const wire::SnapshotRequest& request) {
    const std::string root = ParentPath(request.directory());
    const size_t slash = request.since().find('/');
    auto manifest = CheckpointStore(root).ReadManifest(
        StepOfName(request.since().substr(0, slash)).value_or(-1));
    if (!manifest.ok()) return manifest.status();
    for (const durable::CheckpointFile& file : manifest->file()) {
      if (file.name() == request.since().substr(slash + 1)) return file;
    }
    return absl::InternalError(absl::StrCat("no file ", request.since()));
  }
  uint64_t NextSegment() {
    absl::MutexLock lock(&mu_);
    return ++segments_;
  }

  absl::Status AwaitCancel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int before = cancels_;
    auto cancelled = [this, before]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return cancels_ > before;
    };
    mu_.Await(absl::Condition(&cancelled));
    return absl::CancelledError("cancelled");
  }

  absl::Mutex mu_;
  std::vector<wire::LoadRequest> loads_ ABSL_GUARDED_BY(mu_);
  int snapshots_ ABSL_GUARDED_BY(mu_) = 0;
  wire::SnapshotRequest last_snapshot_ ABSL_GUARDED_BY(mu_);
  absl::Status snapshot_status_ ABSL_GUARDED_BY(mu_);
  wire::PrepareSnapshotResponse updates_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_prepare_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> damaged_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> missed_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> vanishing_ ABSL_GUARDED_BY(mu_);
  bool knows_changes_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t segments_ ABSL_GUARDED_BY(mu_) = 0;
  bool hangs_ ABSL_GUARDED_BY(mu_) = false;
  int cancels_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_TESTING_FAKE_PS_H_
