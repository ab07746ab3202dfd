#include "cluster/checkpoint/order_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_owner.h"

namespace parasol {
namespace {

// Far more orders than a chief gives in its life.
constexpr int64_t kMaxOrders = int64_t{1} << 32;

}  // namespace

OrderGate::OrderGate(std::string task, uint64_t incarnation)
    : task_(std::move(task)), incarnation_(incarnation) {}

void OrderGate::Registered(int64_t chief_epoch,
                           const std::string& checkpoint_directory) {
  absl::MutexLock lock(&mu_);
  if (chief_epoch < chief_epoch_) return;
  if (chief_epoch > chief_epoch_) number_ = 0;
  chief_epoch_ = chief_epoch;
  registered_epoch_ = chief_epoch;
  checkpoint_directory_ = checkpoint_directory;
}

absl::StatusOr<std::string> OrderGate::AwaitDirectory(
    const wire::OrderHeader& order, Clock& clock, absl::Duration limit) const {
  absl::MutexLock lock(&mu_);
  const auto is_known = [this, &order]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return registered_epoch_ >= order.chief_epoch();
  };
  if (!clock.AwaitWithTimeout(mu_, absl::Condition(&is_known), limit)) {
    return absl::UnavailableError(absl::StrCat(
        task_, " has not heard from chief ", order.chief_epoch(),
        " which directory is for checkpoints; it hears it as it registers"));
  }
  return checkpoint_directory_;
}

absl::Status OrderGate::Check(const wire::OrderHeader& order) const {
  if (order.incarnation() != incarnation_) {
    // Its number is what the one who asks would have to know.
    return absl::FailedPreconditionError(absl::StrFormat(
        "the order is meant for process %016x, and %s is another one",
        order.incarnation(), task_));
  }
  if (order.chief_epoch() < 0 || order.chief_epoch() > kMaxChiefEpoch) {
    return absl::InvalidArgumentError(
        absl::StrCat("the order is that of chief ", order.chief_epoch(),
                     ": chiefs have numbers from 1 to ", kMaxChiefEpoch));
  }
  if (order.number() < 0 || order.number() > kMaxOrders) {
    return absl::InvalidArgumentError(
        absl::StrCat("the order has the number ", order.number(),
                     ": they are from 1 to ", kMaxOrders));
  }
  absl::MutexLock lock(&mu_);
  return CheckNewest(order);
}

absl::Status OrderGate::Accept(const wire::OrderHeader& order) {
  RETURN_IF_ERROR(Check(order));
  absl::MutexLock lock(&mu_);
  // Again: another one may have come meanwhile.
  RETURN_IF_ERROR(CheckNewest(order));
  if (order.chief_epoch() > chief_epoch_) number_ = 0;
  chief_epoch_ = order.chief_epoch();
  number_ = std::max(number_, order.number());
  return absl::OkStatus();
}

absl::Status OrderGate::CheckNewest(const wire::OrderHeader& order) const {
  if (order.chief_epoch() < chief_epoch_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the order is that of chief ", order.chief_epoch(), ", but ", task_,
        " obeys chief ", chief_epoch_, ", which has replaced it"));
  }
  const bool is_late = order.chief_epoch() == chief_epoch_ &&
                       order.number() != 0 && order.number() < number_;
  if (!is_late) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("order ", order.number(), " of chief ", chief_epoch_,
                   " comes late: ", task_, " has had order ", number_));
}

absl::Status OrderGate::CheckSnapshotFile(const std::string& directory,
                                          const std::string& name) const {
  if (!IsPlainName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name,
        "\" is not a file name: it is empty, begins with '.' or has a '/'"));
  }
  absl::MutexLock lock(&mu_);
  if (checkpoint_directory_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(task_,
                     " has not heard from the chief which directory is for "
                     "checkpoints"));
  }
  const std::string working = LastName(directory);
  const std::string expected =
      IsUri(checkpoint_directory_)
          ? JoinedPath(checkpoint_directory_, working)
          : absl::StrCat(checkpoint_directory_, "/", working);
  if (directory == expected && CheckpointStore::IsWorkingName(working)) {
    // In a store it lies beside files of complete checkpoints.
    const bool is_own =
        !IsUri(directory) ||
        absl::EndsWith(name, CheckpointStore::NameInWorking(directory, ".sst"));
    if (is_own) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is not a name for a file of ", directory));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", directory,
                   "\" is not a directory of a checkpoint being written in ",
                   checkpoint_directory_));
}

}  // namespace parasol
