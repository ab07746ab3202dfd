#include "cluster/rpc/library_log.h"

#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/log.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"

namespace parasol {
namespace {

void GrpcToOurLog(gpr_log_func_args* args) {
  // gRPC accepts nothing any more then, and says so here alone.
  if (absl::StartsWith(args->message, "Failed accept") &&
      !CheckDescriptorsAreLeft(1).ok()) {
    LOG(ERROR) << "no connection is accepted any more: " << DescriptorsHint()
               << ", then start this process again";
    return;
  }
  // What gRPC says before it aborts the process.
  if (absl::StartsWith(args->message, "assertion failed")) {
    // A thread that can't be started is one, as a rule.
    const absl::Status threads = CheckThreadsAllowed(1);
    if (!threads.ok()) _exit(ExitWith(threads));
    LOG(ERROR) << "gRPC: " << args->file << ":" << args->line << ": "
               << args->message;
    return;
  }
  // The default verbosity lets errors through; asked for more, gRPC says yes
  // to info too.
  if (!gpr_should_log(GPR_LOG_SEVERITY_INFO)) return;
  LOG(INFO) << "gRPC: " << args->message;
}

// A header with a string that is not UTF-8 makes protobuf write a line.
void ProtobufToOurLog(google::protobuf::LogLevel level, const char* file,
                      int line, const std::string& message) {
  // What it says before it aborts the process.
  if (level != google::protobuf::LOGLEVEL_FATAL) return;
  LOG(ERROR) << "protobuf: " << file << ":" << line << ": " << message;
}

}  // namespace

void QuietLibraryLog() {
  // Setting protobuf's is not thread-safe.
  [[maybe_unused]] static const bool once = [] {
    gpr_set_log_function(&GrpcToOurLog);
    google::protobuf::SetLogHandler(&ProtobufToOurLog);
    return true;
  }();
}

}  // namespace parasol
