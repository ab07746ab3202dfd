#include "cluster/rpc/grpc_log.h"

#include "absl/strings/match.h"
#include "base/log.h"
#include "grpc/support/log.h"

namespace parasol {
namespace {

void ToOurLog(gpr_log_func_args* args) {
  // What gRPC says before it aborts the process.
  if (absl::StartsWith(args->message, "assertion failed")) {
    LOG(ERROR) << "gRPC: " << args->file << ":" << args->line << ": "
               << args->message;
    return;
  }
  // The default verbosity lets errors through; asked for more, gRPC says yes
  // to info too.
  if (!gpr_should_log(GPR_LOG_SEVERITY_INFO)) return;
  LOG(INFO) << "gRPC: " << args->message;
}

}  // namespace

void QuietGrpcLog() { gpr_set_log_function(&ToOurLog); }

}  // namespace parasol
