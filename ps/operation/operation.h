#ifndef PARASOL_PS_OPERATION_OPERATION_H_
#define PARASOL_PS_OPERATION_OPERATION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/protocol_limits.h"
#include "proto/parameter.pb.h"
#include "ps/operation/inline_function.h"

namespace parasol {

// One message of a stream: its operations, each with its own payloads.
// Immutable.
class ReceivedMessage {
 public:
  // `header` and the memory that `payloads` point into must outlive the
  // message.
  //   InvalidArgument  more than kMaxOperationsPerMessage operations, or a
  //                    number of payloads other than what the operations have
  //                    together.
  static absl::StatusOr<ReceivedMessage> Create(
      const wire::RequestHeader& header, std::vector<PayloadView> payloads);
  static absl::StatusOr<ReceivedMessage> Create(
      wire::RequestHeader&& header, std::vector<PayloadView> payloads) = delete;

  const std::string& run_id() const { return header_->run_id(); }
  uint64_t worker_incarnation() const { return header_->worker_incarnation(); }
  // The sequence up to which the worker's pushes were acknowledged; 0: unknown.
  uint64_t acknowledged() const { return header_->acknowledged(); }
  // The layout and the ps process that the message is meant for; 0: any.
  uint64_t layout() const { return header_->layout(); }
  uint64_t ps_incarnation() const { return header_->ps_incarnation(); }

  // True if the worker has sent another message right behind this one.
  bool more() const { return header_->more(); }

  size_t size() const { return header_->operation_size(); }
  const wire::Operation& operation(size_t i) const {
    return header_->operation(static_cast<int>(i));
  }
  absl::Span<const PayloadView> payloads(size_t i) const {
    return absl::MakeSpan(payloads_).subspan(
        first_payload_[i], first_payload_[i + 1] - first_payload_[i]);
  }

 private:
  explicit ReceivedMessage(const wire::RequestHeader& header)
      : header_(&header) {}

  const wire::RequestHeader* header_;
  std::vector<PayloadView> payloads_;
  // Index of each operation's first payload; the last entry is the number of
  // payloads.
  std::vector<size_t> first_payload_;
};

// Checks the size of a pull, in elements.
//   InvalidArgument  the elements take more than kMaxPullBytes.
inline absl::Status CheckPullSize(uint64_t elements) {
  if (elements <= kMaxPullBytes / sizeof(float)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "pull of ", elements, " elements: more than ", kMaxPullBytes, " bytes"));
}

// The smallest and the largest number of updates over chunks or tables.
struct UpdateBounds {
  int64_t min = INT64_MAX;
  int64_t max = 0;

  void Include(int64_t updates) {
    min = std::min(min, updates);
    max = std::max(max, updates);
  }
};

// The result of an operation that has been carried out. Has the fields of
// wire::Result.
struct OperationResult {
  bool duplicate = false;
  bool stale = false;
  // Number of the worker's earlier pushes that the shard is found to lack,
  // though a process before this one acknowledged them.
  uint64_t lost = 0;
  int64_t min_updates = 0;
  int64_t max_updates = 0;
  // The values that were pulled.
  using Payloads = absl::InlinedVector<PayloadRef, 1>;
  Payloads payloads = {};
  // Set if a pull has waited, perhaps with many others: returns the pull's
  // actual result. Call it once, when there is room for the values.
  std::function<absl::StatusOr<OperationResult>()> read = nullptr;
};

// Called once per operation: before the call that it was given to returns, or
// later, on any thread that holds no lock. It keeps alive everything that it
// needs. An operation whose OperationDone is destroyed without a call leaves a
// worker waiting. It is made for each operation, and allocates nothing.
using OperationDone = InlineFunction<void(absl::StatusOr<OperationResult>), 48>;

// An OperationDone, and what the ps counts before it is called.
using CountedDone = InlineFunction<void(absl::StatusOr<OperationResult>),
                                   sizeof(OperationDone) + 48>;

}  // namespace parasol

#endif  // PARASOL_PS_OPERATION_OPERATION_H_
