#include "tool/status/asked_chief.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "tool/flag/flag_checks.h"
#include "tool/status/operator_trust.h"

ABSL_FLAG(absl::Duration, timeout, absl::Seconds(5),
          "How long to wait for an answer.");

namespace parasol {
namespace {

absl::Status CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon != std::string::npos && colon > 0 &&
      absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 &&
      port < 65536) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      address, ": is not an address; it is host:port, as chief-0:2222"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefClient>> ChiefToAsk(
    const std::string& address) {
  RETURN_IF_ERROR(CheckAddress(address));
  RETURN_IF_ERROR(CheckDuration("timeout", absl::GetFlag(FLAGS_timeout)));
  ASSIGN_OR_RETURN(std::shared_ptr<const Trust> trust,
                   TrustOfOperator(address));
  return ChiefClient::Create(address, absl::GetFlag(FLAGS_timeout),
                             Callee::Chief(std::move(trust)));
}

absl::StatusOr<wire::JobStatus> AskChief(ChiefClient& chief) {
  absl::StatusOr<wire::JobStatus> status = chief.GetStatus();
  if (!absl::IsUnimplemented(status.status())) return status;
  return absl::InvalidArgumentError(status.status().message());
}

}  // namespace parasol
