#include "cluster/rpc/call_failure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {
namespace {

// A part of gRPC's message, and what it means. The first one that is found
// counts.
struct Meaning {
  absl::string_view part;
  absl::string_view text;
};

constexpr absl::string_view kAnotherProgram =
    "another program answers there, such as an HTTP server or a page of "
    "metrics; correct the address or the port";
constexpr absl::string_view kSilence =
    "no answer in time: the machine is off or cut off, a firewall drops what "
    "is sent, or the process stands still; look at both, and at the address";
constexpr absl::string_view kNoWay =
    "there is no way in the network to this address; correct it, or look at "
    "the network of this machine";
constexpr absl::string_view kAnotherTask =
    "a server answers that lacks this call: another task (a ps, a worker), "
    "another program, or another version of Parasol; correct the address";
constexpr absl::string_view kClosed =
    "the connection was closed before an answer came: the process there ends, "
    "or is another program; look at it, and at the address";
// A server with keys says no more to a client without, or with another job's.
constexpr absl::string_view kClosedAtOnce =
    "the connection was closed before an answer came: the process there wants "
    "keys of its job (give --token_file, or --tls_certificate, --tls_key and "
    "--tls_ca), ends, or is another program; its log says which";
constexpr absl::string_view kClearText =
    "speaks in clear text, and this process has keys: start it with keys of "
    "the same job, or correct the address";
constexpr absl::string_view kRefusedCertificate =
    "Custom verification check failed with error: UNAUTHENTICATED: ";

constexpr Meaning kMeanings[] = {
    {"wrong version number", kClearText},
    {"Connection refused",
     "nothing listens there (connection refused); is it started, and is the "
     "address right?"},
    {"before receiving SETTINGS",
     "the connection is accepted, and then nothing is said: the process there "
     "stands still, or is another program; look at it, and at the address"},
    {"Failed parsing HTTP", kAnotherProgram},
    {"http1", kAnotherProgram},
    {"http2 header with status", kAnotherProgram},
    {"HTTP status code", kAnotherProgram},
    {"o route to host", kNoWay},
    {"etwork is unreachable", kNoWay},
    {"ost is unreachable", kNoWay},
    {"imed out", kSilence},
    {"ocket closed", kClosed},
    {"onnection reset", kClosed},
    {"roken pipe", kClosed},
};

// Messages of gRPC's servers in several languages.
bool IsUnknownCall(absl::string_view message) {
  return message.empty() || absl::StrContains(message, "unknown service") ||
         absl::StrContains(message, "unknown method") ||
         absl::StrContains(message, "ethod not found");
}

// Returns the part of gRPC's message behind the last `mark`.
absl::string_view Behind(absl::string_view message, absl::string_view mark) {
  const size_t at = message.rfind(mark);
  return at == absl::string_view::npos ? message
                                       : message.substr(at + mark.size());
}

std::string DescribeUnavailable(absl::string_view message) {
  constexpr absl::string_view kFailedToConnect =
      "failed to connect to all addresses";
  if (absl::StrContains(message, "DNS resolution failed") ||
      absl::StrContains(message, "name resolution failure")) {
    return absl::StrCat("the name is not known here (", Behind(message, ": "),
                        "); correct it, or start the machine or pod that has "
                        "it");
  }
  // A server's own message may have these words behind others.
  const bool is_connecting = absl::StartsWith(message, kFailedToConnect);
  const size_t last = is_connecting ? message.size() : 1;
  if (is_connecting && absl::StrContains(message, kRefusedCertificate)) {
    return std::string(Behind(message, kRefusedCertificate));
  }
  if (is_connecting && absl::StrContains(message, "ocket closed")) {
    return std::string(kClosedAtOnce);
  }
  for (const Meaning& meaning : kMeanings) {
    const size_t at = message.find(meaning.part);
    if (at != absl::string_view::npos && at <= last) {
      return std::string(meaning.text);
    }
  }
  if (!is_connecting) return std::string(message);
  return absl::StrCat("can't be reached (", Behind(message, "last error: "),
                      "); is it started, and is the address right?");
}

}  // namespace

std::string DescribeCallFailure(const grpc::Status& status) {
  const std::string message = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return DescribeUnavailable(message);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return message.empty() || message == "Deadline Exceeded"
                 ? std::string(kSilence)
                 : message;
    case grpc::StatusCode::UNIMPLEMENTED:
      if (IsUnknownCall(message)) return std::string(kAnotherTask);
      break;
    default:
      break;
  }
  // What an HTTP server says decides the code: 404 is UNIMPLEMENTED.
  return absl::StartsWith(message, "Received http2 header with status")
             ? std::string(kAnotherProgram)
             : message;
}

}  // namespace parasol
