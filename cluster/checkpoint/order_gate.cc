#include "cluster/checkpoint/order_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

bool IsPlainName(absl::string_view name) {
  constexpr absl::string_view kSeparators("/\0", 2);
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(kSeparators) == absl::string_view::npos;
}

}  // namespace

OrderGate::OrderGate(std::string task, uint64_t incarnation)
    : task_(std::move(task)), incarnation_(incarnation) {}

void OrderGate::Registered(int64_t chief_epoch,
                           const std::string& checkpoint_directory) {
  absl::MutexLock lock(&mu_);
  if (chief_epoch < chief_epoch_) return;
  if (chief_epoch > chief_epoch_) number_ = 0;
  chief_epoch_ = chief_epoch;
  checkpoint_directory_ = checkpoint_directory;
}

absl::Status OrderGate::Admit(const wire::OrderHeader& order) {
  if (order.incarnation() != incarnation_) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the order is meant for process %016x, but %s is process %016x",
        order.incarnation(), task_, incarnation_));
  }
  absl::MutexLock lock(&mu_);
  if (order.chief_epoch() < chief_epoch_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the order is that of chief ", order.chief_epoch(), ", but ", task_,
        " obeys chief ", chief_epoch_, ", which has replaced it"));
  }
  if (order.chief_epoch() > chief_epoch_) number_ = 0;
  chief_epoch_ = order.chief_epoch();
  if (order.number() == 0) return absl::OkStatus();
  if (order.number() < number_) {
    return absl::FailedPreconditionError(
        absl::StrCat("order ", order.number(), " of chief ", chief_epoch_,
                     " comes late: ", task_, " has had order ", number_));
  }
  number_ = order.number();
  return absl::OkStatus();
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
  absl::string_view working = directory;
  if (absl::ConsumePrefix(&working, checkpoint_directory_) &&
      absl::ConsumePrefix(&working, "/") &&
      CheckpointStore::IsWorkingName(working)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", directory,
                   "\" is not a directory of a checkpoint being written in ",
                   checkpoint_directory_));
}

}  // namespace parasol
