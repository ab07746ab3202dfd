#include "serving/model_server.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "cluster/rpc/server.h"
#include "serving/model_versions.h"
#include "serving/prediction.h"
#include "serving/prediction_service.h"
#include "serving/rest_api.h"
#include "serving/served_model.h"
#include "serving/serving_metrics.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

// Time beyond a request's own for which requests in progress are awaited at the
// end.
constexpr absl::Duration kGrace = absl::Seconds(5);

// Limits of all gRPC clients together, docs/serving.md.
constexpr RpcServer::ClientLimits kGrpcLimits = {
    .transport_bytes = size_t{512} << 20,
    .threads = 512,
    .calls_per_connection = 256};

// The checkpoints that are served.
struct Source {
  std::string directory;
  std::optional<int64_t> pinned;
  bool is_best = false;
};

// The path as it is where the working directory is gone.
std::string WholePath(const std::string& path) {
  if (IsUri(path)) return path;
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return (error ? std::filesystem::path(path) : whole)
      .lexically_normal()
      .string();
}

// Returns the step of a checkpoint that can be read. To open one of a store
// would bring it here, which the load does.
absl::StatusOr<int64_t> StepOf(const std::string& path) {
  if (IsUri(path)) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadManifestBytes(path));
    ASSIGN_OR_RETURN(const durable::CheckpointManifest manifest,
                     DecodeManifestIn(path, bytes));
    return manifest.global_step();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(path));
  return checkpoint->manifest().global_step();
}

absl::StatusOr<Source> SourceOf(const ModelServer::Options& options) {
  if (const auto directory = DirectoryOfBest(options.path)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names,
                     ListDirectory(*directory));
    if (std::find(names.begin(), names.end(), kManifestName) != names.end()) {
      RETURN_IF_ERROR(ReadBest(*directory).status());
    }
    if (!options.version) return Source{*directory, std::nullopt, true};
    return absl::InvalidArgumentError(absl::StrCat(
        "--version=", *options.version, ": ", options.path,
        " is served, whatever step it is of; give --version or --best"));
  }
  const std::string path(absl::StripSuffix(options.path, "/"));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  if (std::find(names.begin(), names.end(), kManifestName) == names.end()) {
    return Source{.directory = path, .pinned = options.version};
  }
  ASSIGN_OR_RETURN(const int64_t step, StepOf(path));
  const std::string whole = WholePath(path);
  const std::string parent = ParentPath(whole);
  if (CheckpointStore(parent).PathOf(step) != whole ||
      options.version.value_or(step) != step) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is the checkpoint of step ", step,
        " under another name, or not that of --version; name the directory "
        "of the checkpoints"));
  }
  return Source{.directory = parent, .pinned = step};
}

absl::StatusOr<std::string> NameOf(const ModelServer::Options& options,
                                   const std::string& directory) {
  const std::string name =
      !options.name.empty() ? options.name : LastName(WholePath(directory));
  if (!name.empty() && name.find_first_of("/:?#% ") == std::string::npos) {
    return name;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--name=", name,
                   ": the name of a model is not empty and has none of "
                   "/:?#% and blanks; set --name"));
}

class Server final : public ModelServer {
 public:
  Server(const Options& options, const Source& source, const std::string& name,
         Clock& clock, MetricsRegistry& registry)
      : options_(options),
        name_(name),
        metrics_(registry),
        versions_({.directory = source.directory,
                   .pinned = source.pinned,
                   .is_best = source.is_best,
                   .poll_interval = options.poll_interval,
                   .on_ready = [this] { OnReady(); }},
                  LoadOf(options, clock), clock, metrics_),
        prediction_({.name = name,
                     .limits = options.limits,
                     .timeout = options.request_timeout},
                    versions_, clock, metrics_),
        rest_(prediction_, registry),
        service_(prediction_),
        model_service_(prediction_),
        clock_(clock) {}

  absl::Status Listen() {
    ASSIGN_OR_RETURN(http_, HttpServer::Start(
                                options_.http,
                                [this](const HttpRequest& request) {
                                  return rest_.Handle(request);
                                },
                                clock_));
    std::string listening =
        absl::StrCat("HTTP on ", options_.http.host, ":", http_->port());
    if (options_.grpc_port >= 0) {
      ASSIGN_OR_RETURN(
          grpc_, RpcServer::Start(
                     absl::StrCat(options_.http.host, ":", options_.grpc_port),
                     {&service_, &model_service_}, kGrpcLimits));
      absl::StrAppend(&listening, ", gRPC on ", options_.http.host, ":",
                      grpc_->port());
    }
    LOG(INFO) << "model " << name_ << ": " << listening;
    return absl::OkStatus();
  }

  int http_port() const override { return http_->port(); }

  absl::Status Run() override {
    absl::Status status;
    std::thread follower([this, &status] {
      status = versions_.Run();
      Leave();
      absl::MutexLock lock(&mu_);
      has_followed_ = true;
    });
    { absl::MutexLock lock(&mu_, absl::Condition(&is_leaving_)); }
    AnswerTheRest();
    {
      absl::MutexLock lock(&mu_);
      if (!has_followed_) {
        LOG(INFO)
            << "waiting for the load in progress to end; a second SIGTERM "
               "ends the server at once";
      }
    }
    follower.join();
    if (status.ok()) LOG(INFO) << "all requests are answered: leaving";
    return status;
  }

  void Stop() override {
    Leave();
    versions_.Stop();
  }

 private:
  ModelVersions::Load LoadOf(const Options& options, Clock& clock) {
    if (options.load != nullptr) return options.load;
    return [this, &clock](const std::string& directory) {
      return ServedModel::Load(directory,
                               {.model = options_.model,
                                .overrides = options_.overrides,
                                .batches = options_.batches},
                               clock, metrics_, versions_.Current().get());
    };
  }

  void OnReady() {
    absl::MutexLock lock(&mu_);
    if (grpc_ != nullptr && !is_leaving_) grpc_->SetServing(true);
  }

  void Leave() {
    rest_.SetLeaving();
    absl::MutexLock lock(&mu_);
    if (grpc_ != nullptr) grpc_->SetServing(false);
    is_leaving_ = true;
  }

  // Takes no more requests over HTTP and gRPC, and answers those in progress,
  // both within the same time.
  void AnswerTheRest() {
    const absl::Duration grace = options_.request_timeout + kGrace;
    std::thread http([this, grace] { http_->Stop(grace); });
    if (grpc_ != nullptr) grpc_->Stop(grace);
    http.join();
  }

  const Options options_;
  const std::string name_;
  ServingMetrics metrics_;
  ModelVersions versions_;
  Prediction prediction_;
  RestApi rest_;
  PredictionService service_;
  ModelService model_service_;
  Clock& clock_;

  absl::Mutex mu_;
  bool is_leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool has_followed_ ABSL_GUARDED_BY(mu_) = false;  // the follower has ended

  // The servers, whose handlers use all of the above.
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<RpcServer> grpc_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelServer>> ModelServer::Start(
    const Options& options, Clock& clock, MetricsRegistry& registry) {
  ASSIGN_OR_RETURN(const Source source, SourceOf(options));
  ASSIGN_OR_RETURN(const std::string name, NameOf(options, source.directory));
  auto server =
      std::make_unique<Server>(options, source, name, clock, registry);
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace parasol
