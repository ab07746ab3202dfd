#include "tests/cluster/test_cluster.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/strategy.h"
#include "deploy/local/loopback_ports.h"
#include "ml/input/format/idx_writer.h"
#include "ml/model/graph.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 8;
constexpr absl::Duration kLimit = absl::Minutes(3);

// Pixel noise below 128, and the label's quadrant twice as bright.
void WriteQuadrants(const fs::path& directory, const std::string& name,
                    int examples, uint32_t seed) {
  std::mt19937 random(seed);
  IdxImages images;
  images.count = examples;
  images.height = kSide;
  images.width = kSide;
  std::vector<uint8_t>& pixels = images.pixels;
  std::vector<uint8_t> labels;
  for (int i = 0; i < examples; ++i) {
    const int label = i % 4;
    labels.push_back(label);
    for (int p = 0; p < kSide * kSide; ++p) {
      const int row = p / kSide >= kSide / 2;
      const int column = p % kSide >= kSide / 2;
      const int noise = random() % 128;
      pixels.push_back(2 * row + column == label ? 127 + noise : noise);
    }
  }
  std::ofstream(directory / (name + "-images"), std::ios::binary)
      << IdxImagesFile(images);
  std::ofstream(directory / (name + "-labels"), std::ios::binary)
      << IdxLabelsFile(labels);
}

}  // namespace

std::string QuadrantsDirectory() {
  static const auto* const directory = new std::string([] {
    const fs::path path = fs::path(getenv("TEST_TMPDIR")) / "quadrants";
    fs::create_directories(path);
    WriteQuadrants(path, "train", 2000, 1);
    WriteQuadrants(path, "eval", 400, 2);
    return path.string();
  }());
  return *directory;
}

job::Job QuadrantsJob(int64_t steps) {
  absl::StatusOr<job::Job> job = ParseJob(R"(
      name: "quadrants"
      seed: 3
      model {
        input_shape: 8 input_shape: 8
        layer { flatten {} }
        layer { name: "hidden" dense { units: 32 activation: RELU } }
        layer { name: "logits" dense { units: 4 } }
        loss { sparse_categorical_crossentropy {} }
      }
      train {
        idx { images: "train-images" labels: "train-labels" }
        batch_size: 16
      }
      eval {
        idx { images: "eval-images" labels: "eval-labels" }
        batch_size: 100
      }
      optimizer { adam { learning_rate: 0.003 } }
      checkpoint { every_steps: 100 }
  )",
                                          "quadrants.textproto");
  CHECK(job.ok()) << job.status();
  job->mutable_end()->set_steps(steps);
  FillDefaults(*job);
  return *std::move(job);
}

TestCluster::TestCluster(job::Job job, int num_ps, int num_workers,
                         std::string checkpoint_directory)
    : job_(std::move(job)),
      num_ps_(num_ps),
      num_workers_(num_workers),
      checkpoint_directory_(std::move(checkpoint_directory)) {
  const absl::StatusOr<std::vector<int>> ports =
      FreeLoopbackPorts(2 + num_ps + num_workers);
  CHECK(ports.ok()) << ports.status();
  size_t next = 0;
  ports_["chief/0"] = (*ports)[next++];
  ports_["state/0"] = (*ports)[next++];
  for (int i = 0; i < num_ps; ++i) {
    ports_[absl::StrCat("ps/", i)] = (*ports)[next++];
  }
  for (int i = 0; i < num_workers; ++i) {
    ports_[absl::StrCat("worker/", i)] = (*ports)[next++];
  }
}

std::string TestCluster::Address(const std::string& role, int index) const {
  return absl::StrCat("127.0.0.1:", ports_.at(absl::StrCat(role, "/", index)));
}

wire::Task TestCluster::NewTask(const std::string& role, int index) {
  wire::Task task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(next_incarnation_++);
  return task;
}

std::shared_ptr<const Trust> TestCluster::TrustOf(PeerRole role,
                                                  int index) const {
  if (!token_.has_value()) return nullptr;
  return Trust::OfToken(*token_, role, index, Clock::Real());
}

absl::Status TestCluster::StartChief() {
  ChiefTaskOptions options;
  options.job = job_;
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(job_.model()));
  options.variables = graph.variables;
  for (int i = 0; i < num_ps_; ++i) options.ps[i] = Address("ps", i);
  if (num_ps_ == 0) {
    RETURN_IF_ERROR(ResolveClusterStrategy(std::nullopt, 0, options.job));
    options.ps[0] = Address("state", 0);
    options.state_place = 0;
  }
  for (int i = 0; i < num_workers_; ++i) {
    options.workers[i] = Address("worker", i);
  }
  if (IsHybrid(job_)) {
    RETURN_IF_ERROR(ResolveClusterStrategy(std::nullopt, num_ps_, options.job));
    options.state_address = Address("state", 0);
    RETURN_IF_ERROR(options.UseWorkersVariables());
  }
  options.listen_address = Address("chief", 0);
  options.checkpoint_directory = checkpoint_directory_;
  options.data_dir = data_directory_;
  options.heartbeat_interval = absl::Milliseconds(100);
  options.lease = absl::Seconds(5);
  options.pace = pace_;
  options.absence_named = absence_named_;
  options.trust = TrustOf(PeerRole::kChief, 0);
  ASSIGN_OR_RETURN(chief_, ChiefTask::Start(options, Clock::Real(), metrics_));
  return absl::OkStatus();
}

absl::Status TestCluster::StartPs(int index) {
  PsTaskOptions options;
  options.task = NewTask("ps", index);
  options.trust = TrustOf(PeerRole::kPs, index);
  options.listen_address = Address("ps", index);
  options.chief_address = Address("chief", 0);
  const auto clock = ps_clocks_.find(index);
  ASSIGN_OR_RETURN(
      ps_[index],
      PsTask::Start(options,
                    clock == ps_clocks_.end() ? Clock::Real() : *clock->second,
                    metrics_));
  return absl::OkStatus();
}

absl::Status TestCluster::StartWorker(int index) {
  WorkerTaskOptions options;
  options.task = NewTask("worker", index);
  options.trust = TrustOf(PeerRole::kWorker, index);
  options.chief_address = Address("chief", 0);
  options.listen_address = Address("worker", index);
  options.data_dir = data_directory_;
  // A job that lists devices takes no flag beside them.
  options.device = ReplicasOfWorker(job_) > 1 ? "auto" : "cpu";
  options.input_shards = num_workers_;
  if (num_ps_ == 0 || IsHybrid(job_)) {
    endpoints_[index] = network_.MakeEndpoint(options.listen_address);
    options.group = {
        .endpoint = endpoints_[index].get(),
        .collective_address = options.listen_address,
        .state_listen_address = index == 0 ? Address("state", 0) : "",
        .has_ps = num_ps_ > 0,
        .state_place = num_ps_};
  }
  const auto clock = worker_clocks_.find(index);
  ASSIGN_OR_RETURN(
      workers_[index],
      WorkerTask::Start(
          options,
          clock == worker_clocks_.end() ? Clock::Real() : *clock->second,
          metrics_));
  return absl::OkStatus();
}

absl::Status TestCluster::StartEvaluator() {
  EvaluatorTaskOptions options;
  options.task = NewTask("evaluator", 0);
  options.trust = TrustOf(PeerRole::kEvaluator, 0);
  options.chief_address = Address("chief", 0);
  options.evaluation.checkpoint_directory = checkpoint_directory_;
  options.evaluation.model.data_dir = data_directory_;
  options.evaluation.model.compute.device = "cpu";
  ASSIGN_OR_RETURN(evaluator_,
                   EvaluatorTask::Start(options, Clock::Real(), metrics_));
  return absl::OkStatus();
}

absl::Status TestCluster::Start() {
  RETURN_IF_ERROR(StartChief());
  for (int i = 0; i < num_ps_; ++i) RETURN_IF_ERROR(StartPs(i));
  for (int i = 0; i < num_workers_; ++i) RETURN_IF_ERROR(StartWorker(i));
  return StartEvaluator();
}

absl::Status TestCluster::StopPs(int index) {
  ps_.at(index)->Stop();
  const absl::Status result = ps_.at(index)->Wait();
  ps_.erase(index);
  return result;
}

absl::Status TestCluster::StopWorker(int index) {
  workers_.at(index)->Stop();
  const absl::Status result = workers_.at(index)->Wait();
  workers_.erase(index);
  return result;
}

absl::Status TestCluster::StopChief() {
  chief_->Stop();
  const absl::Status result = chief_->Wait();
  chief_.reset();
  return result;
}

absl::StatusOr<wire::JobStatus> TestCluster::Status() {
  return ChiefClient::Create(Address("chief", 0), absl::Seconds(5),
                             Callee::Chief(TrustOf(PeerRole::kOperator, 0)))
      ->GetStatus();
}

absl::Status TestCluster::AwaitStatus(
    const std::string& what,
    const std::function<bool(const wire::JobStatus&)>& reached) {
  Clock& clock = Clock::Real();
  const absl::Time deadline = clock.Now() + kLimit;
  while (clock.Now() < deadline) {
    const absl::StatusOr<wire::JobStatus> status = Status();
    if (status.ok() && reached(*status)) return absl::OkStatus();
    clock.Pause(absl::Milliseconds(10));
  }
  return absl::DeadlineExceededError(
      absl::StrCat(what, " was not reached in ", absl::FormatDuration(kLimit)));
}

absl::Status TestCluster::AwaitStep(int64_t step) {
  return AwaitStatus(absl::StrCat("step ", step),
                     [step](const wire::JobStatus& status) {
                       return status.global_step() >= step;
                     });
}

absl::Status TestCluster::AwaitPhase(wire::JobPhase phase) {
  return AwaitStatus(wire::JobPhase_Name(phase),
                     [phase](const wire::JobStatus& status) {
                       return status.phase() == phase;
                     });
}

}  // namespace parasol
