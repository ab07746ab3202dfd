#ifndef PARASOL_PS_RECEIVED_REQUEST_H_
#define PARASOL_PS_RECEIVED_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"

namespace parasol {

// One message of a stream: its operations, each with its own payloads.
// Immutable.
class ReceivedRequest {
 public:
  // The memory that `payloads` point into must outlive the request.
  //   InvalidArgument  more than kMaxOperationsPerMessage operations, or a
  //                    number of payloads other than what the operations have
  //                    together.
  static absl::StatusOr<ReceivedRequest> Create(
      wire::RequestHeader header, std::vector<PayloadView> payloads);

  const std::string& run_id() const { return header_.run_id(); }
  uint64_t worker_incarnation() const { return header_.worker_incarnation(); }

  size_t size() const { return header_.operation_size(); }
  const wire::Operation& operation(size_t i) const {
    return header_.operation(static_cast<int>(i));
  }
  absl::Span<const PayloadView> payloads(size_t i) const {
    return absl::MakeSpan(payloads_).subspan(
        first_payload_[i], first_payload_[i + 1] - first_payload_[i]);
  }

 private:
  ReceivedRequest() = default;

  wire::RequestHeader header_;
  std::vector<PayloadView> payloads_;
  // Index of each operation's first payload; the last entry is the number of
  // payloads.
  std::vector<size_t> first_payload_;
};

}  // namespace parasol

#endif  // PARASOL_PS_RECEIVED_REQUEST_H_
