#include "tool/serve_command.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "serving/model_server.h"
#include "tool/best_flag.h"
#include "tool/checkpoint/poll_interval_flag.h"
#include "tool/flag/flag_checks.h"
#include "tool/job_flags.h"
#include "tool/model_flags.h"

ABSL_FLAG(int, port, 8501,
          "Port of HTTP; 0: chosen by the system, and logged.");
ABSL_FLAG(int, grpc_port, -1,
          "Port of gRPC; 0: chosen by the system, and logged; -1: no gRPC.");
ABSL_FLAG(std::string, host, "0.0.0.0",
          "Address of this machine to listen on.");
ABSL_FLAG(std::string, name, "",
          "Name of the model in requests. Default: the name of CKPT_DIR.");
ABSL_FLAG(std::optional<int64_t>, version, std::nullopt,
          "Step of the only checkpoint to serve. Default: the newest one, and "
          "what replaces it.");
ABSL_FLAG(int64_t, max_batch_size, 64,
          "Number of examples that go through the model together.");
ABSL_FLAG(int64_t, batch_timeout_us, 0,
          "Microseconds that a batch which is not full waits for more requests "
          "while the model is free.");
ABSL_FLAG(int64_t, max_queued, 4096,
          "Number of examples that may wait for the model; more are refused.");
ABSL_FLAG(int64_t, max_examples, 1024, "Number of examples of one request.");
ABSL_FLAG(int64_t, max_body_bytes, int64_t{8} << 20,
          "Bytes of the body of an HTTP request.");
ABSL_FLAG(absl::Duration, request_timeout, absl::Seconds(5),
          "Time within which the model must be free for a request.");
ABSL_FLAG(absl::Duration, client_timeout, absl::Seconds(10),
          "Time within which a client must send its HTTP request, and take the "
          "answer.");
ABSL_FLAG(int, http_threads, 256, "Number of HTTP connections in use at once.");

namespace parasol {
namespace {

constexpr char kServeUsage[] =
    "Answers requests for predictions over HTTP and gRPC, as TensorFlow "
    "Serving does, with the newest checkpoint of a directory, or with --best "
    "the one with the best evaluation. A newer (better) "
    "checkpoint is loaded while the old one goes on answering; one that is "
    "damaged is passed over. SIGTERM ends it in good order.\n"
    "\n"
    "  parasol serve CKPT_DIR --port=8501 [--grpc_port=8500] [--name=NAME]\n"
    "\n"
    "  parasol serve /ckpt/mnist --port=8501 --grpc_port=8500\n"
    "  curl localhost:8501/v1/models/mnist\n"
    "  curl -d '{\"instances\": [{\"user\": 7, \"item\": \"a\"}]}' "
    "localhost:8501/v1/models/ratings:predict\n"
    "  parasol serve /ckpt/mnist --version=2000\n"
    "  parasol serve /ckpt/mnist --best\n"
    "\n"
    "Exit code: 0 after SIGTERM; 1 nothing of what is there can be served; 2 "
    "bad flags or job, or no such directory; 138 try again.";

absl::Status CheckPort(absl::string_view flag, int port, int least) {
  if (port >= least && port <= 65535) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", port, " is no port: give ", least, " to 65535"));
}

absl::Status CheckServerFlags() {
  RETURN_IF_ERROR(CheckPort("port", absl::GetFlag(FLAGS_port), 0));
  RETURN_IF_ERROR(CheckPort("grpc_port", absl::GetFlag(FLAGS_grpc_port), -1));
  RETURN_IF_ERROR(
      CheckAtLeast("max_batch_size", absl::GetFlag(FLAGS_max_batch_size), 1));
  RETURN_IF_ERROR(CheckAtLeast("batch_timeout_us",
                               absl::GetFlag(FLAGS_batch_timeout_us), 0));
  RETURN_IF_ERROR(
      CheckAtLeast("max_queued", absl::GetFlag(FLAGS_max_queued), 1));
  RETURN_IF_ERROR(
      CheckAtLeast("max_examples", absl::GetFlag(FLAGS_max_examples), 1));
  RETURN_IF_ERROR(
      CheckAtLeast("max_body_bytes", absl::GetFlag(FLAGS_max_body_bytes), 1));
  RETURN_IF_ERROR(
      CheckAtLeast("http_threads", absl::GetFlag(FLAGS_http_threads), 1));
  RETURN_IF_ERROR(
      CheckDuration("request_timeout", absl::GetFlag(FLAGS_request_timeout)));
  RETURN_IF_ERROR(
      CheckDuration("client_timeout", absl::GetFlag(FLAGS_client_timeout)));
  return CheckDuration("poll_interval", absl::GetFlag(FLAGS_poll_interval));
}

absl::StatusOr<ModelServer::Options> ServerOptionsFromFlags(
    const std::string& path) {
  RETURN_IF_ERROR(CheckServerFlags());
  ModelServer::Options options;
  ASSIGN_OR_RETURN(options.model, ModelOptionsFromFlags());
  options.overrides = absl::GetFlag(FLAGS_set).values;
  options.path = path;
  options.version = absl::GetFlag(FLAGS_version);
  options.name = absl::GetFlag(FLAGS_name);
  options.http = {.host = absl::GetFlag(FLAGS_host),
                  .port = absl::GetFlag(FLAGS_port),
                  .threads = absl::GetFlag(FLAGS_http_threads),
                  .max_body_bytes = absl::GetFlag(FLAGS_max_body_bytes),
                  .client_timeout = absl::GetFlag(FLAGS_client_timeout)};
  options.http.max_buffered_bytes = std::max(options.http.max_buffered_bytes,
                                             2 * options.http.max_body_bytes);
  options.grpc_port = absl::GetFlag(FLAGS_grpc_port);
  options.limits.max_examples = absl::GetFlag(FLAGS_max_examples);
  options.batches = {
      .max_batch = absl::GetFlag(FLAGS_max_batch_size),
      .max_wait = absl::Microseconds(absl::GetFlag(FLAGS_batch_timeout_us)),
      .max_queued = absl::GetFlag(FLAGS_max_queued)};
  options.request_timeout = absl::GetFlag(FLAGS_request_timeout);
  options.poll_interval = absl::GetFlag(FLAGS_poll_interval);
  return options;
}

absl::Status RunServe(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT_DIR"));
  ASSIGN_OR_RETURN(const ModelServer::Options options,
                   ServerOptionsFromFlags(CheckpointByFlag(arguments[0])));
  // Before any thread starts.
  TerminationSignal signal;
  MetricsRegistry registry;
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelServer> server,
                   ModelServer::Start(options, Clock::Real(), registry));
  signal.OnSignal([&server] { server->Stop(); });
  const absl::Status status = server->Run();
  signal.Disarm();
  return status;
}

}  // namespace

Command ServeCommand() {
  return {.name = "serve",
          .summary = "answers requests for predictions (HTTP, gRPC)",
          .usage = kServeUsage,
          .flags = {"port",
                    "grpc_port",
                    "host",
                    "name",
                    "version",
                    "max_batch_size",
                    "batch_timeout_us",
                    "max_queued",
                    "max_examples",
                    "max_body_bytes",
                    "request_timeout",
                    "client_timeout",
                    "http_threads",
                    "poll_interval",
                    "table_memory",
                    "table_dir",
                    "device",
                    "threads",
                    "set",
                    "best",
                    "log_format"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunServe(arguments));
          }};
}

}  // namespace parasol
