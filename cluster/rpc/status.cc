#include "cluster/rpc/status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/rpc/call_failure.h"

namespace parasol {
namespace {

// A message travels percent-encoded (up to three bytes for one) in trailers of
// at most 8 KiB.
constexpr size_t kMaxErrorBytes = 2048;

bool IsUtf8Continuation(char c) { return (c & 0xC0) == 0x80; }

absl::string_view Cut(absl::string_view message) {
  if (message.size() <= kMaxErrorBytes) return message;
  size_t end = kMaxErrorBytes;
  while (end > 0 && IsUtf8Continuation(message[end])) --end;
  return message.substr(0, end);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(Cut(status.message())));
}

absl::Status FromGrpcStatus(const grpc::Status& status,
                            absl::string_view peer) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(peer, ": ", DescribeCallFailure(status)));
}

}  // namespace parasol
