#include "loop/strategy.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "loop/core/program_variables.h"
#include "loop/core/reduce.h"
#include "loop/peers/local_steps.h"
#include "loop/peers/lone_peers.h"
#include "ml/device/device.h"
#include "ml/device/device_name.h"
#include "ml/tape/operations.h"
#include "worker/training_report.h"

namespace parasol::loop {
namespace {

// The strategy whose scope is open.
thread_local Strategy* in_scope = nullptr;

Tensor OrError(absl::StatusOr<Tensor> value) {
  return value.ok() ? *std::move(value) : Tensor::Error(value.status());
}

// Opens the devices of a process's replicas.
absl::StatusOr<std::vector<std::unique_ptr<Device>>> OpenDevices(
    const std::vector<std::string>& names, int threads) {
  std::vector<std::unique_ptr<Device>> devices;
  std::set<std::string> distinct;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(devices.emplace_back(),
                     Device::Open(name, {.threads = threads}));
    const Device& device = *devices.back();
    if (device.kind() == Device::Kind::kCpu ||
        distinct.insert(device.name()).second) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("device ", name, " appears twice: a CUDA device has one ",
                     "replica; give that a larger batch"));
  }
  return devices;
}

// Opens CPUs in the place of a chief's devices: it leads a cluster whose
// workers have them, makes variables and runs no step.
absl::StatusOr<std::vector<std::unique_ptr<Device>>> OpenCpus(
    const std::vector<std::string>& names, int threads) {
  for (const std::string& name : names) {
    if (name == "auto") continue;
    RETURN_IF_ERROR(ParseDeviceName(name).status())
        << "device \"" << name << "\"";
  }
  return OpenDevices(std::vector<std::string>(names.size(), "cpu"), threads);
}

}  // namespace

Strategy::Strategy(std::vector<std::string> names,
                   std::vector<std::unique_ptr<Device>> devices,
                   const Options& options, std::unique_ptr<Peers> peers)
    : options_(options),
      devices_(std::move(names)),
      peers_(std::move(peers)),
      world_(devices_, std::move(devices), *peers_) {
  // What is drawn at random depends on it.
  CHECK(Keep("strategy/steps", &world_.kept_steps()).ok());
  if (peers_->local_steps() != nullptr) {
    local_.emplace(peers_->local_steps()->steps());
  }
}

Strategy::~Strategy() = default;

absl::StatusOr<std::unique_ptr<Strategy>> Strategy::Default(
    const Options& options) {
  return Mirrored({"cpu"}, options);
}

absl::StatusOr<std::unique_ptr<Strategy>> Strategy::OneDevice(
    const std::string& device, const Options& options) {
  return Mirrored({device}, options);
}

absl::StatusOr<std::unique_ptr<Strategy>> Strategy::Mirrored(
    const std::vector<std::string>& devices, const Options& options) {
  return WithPeers(
      devices, options,
      std::make_unique<LonePeers>(static_cast<int>(devices.size())));
}

absl::StatusOr<std::unique_ptr<Strategy>> Strategy::WithPeers(
    const std::vector<std::string>& devices, const Options& options,
    std::unique_ptr<Peers> peers) {
  if (devices.empty()) {
    return absl::InvalidArgumentError("a strategy without devices");
  }
  ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Device>> opened,
                   peers->place() < 0 ? OpenCpus(devices, options.threads)
                                      : OpenDevices(devices, options.threads));
  return std::unique_ptr<Strategy>(
      new Strategy(devices, std::move(opened), options, std::move(peers)));
}

Strategy::Scope::Scope(Strategy& strategy) : before_(in_scope) {
  if (before_ != nullptr && before_ != &strategy) {
    throw TensorError(absl::FailedPreconditionError(
        "a scope of another strategy is open: a program has the one that "
        "Program::Run() gives it; close that scope before this one opens"));
  }
  in_scope = &strategy;
}

Strategy::Scope::~Scope() { in_scope = before_; }

absl::Status Strategy::RunOnReplicas(
    const std::function<absl::Status(int local)>& step) {
  if (local_ && !has_iterations_) {
    return absl::InvalidArgumentError(
        "--local_steps: Run() is called before there is a Training, whose "
        "iterations are exchanged; make one first");
  }
  RETURN_IF_ERROR(Start());
  if (peers_->shared() == nullptr) return world_.Run(step);
  if (!has_iterations_) return RunAsIteration(step);
  const bool is_held = local_ && local_->is_under_way();
  if (!is_held) {
    RETURN_IF_ERROR(PullShared());
  }
  return world_.Run(step);
}

absl::Status Strategy::RunAsIteration(
    const std::function<absl::Status(int local)>& step) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> next, NextIteration(0));
  if (!next) return absl::CancelledError("the cluster's job is complete");
  RETURN_IF_ERROR(PullShared());
  RETURN_IF_ERROR(world_.Run(step));
  return Commit({.step = *next + 1}).status();
}

absl::Status Strategy::PullShared() {
  const InnerPart pull(peers_->reporter(), StepPart::kPull);
  return shared_->Pull();
}

void Strategy::EndAfter(int64_t iterations) {
  has_iterations_ = true;
  if (local_) {
    local_->EndAfter(iterations);
    iterations = local_->exchanges();
  }
  peers_->EndAfter(iterations);
}

absl::StatusOr<std::optional<int64_t>> Strategy::NextIteration(int64_t done) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> next,
                   local_ ? NextLocalIteration() : peers_->NextIteration(done));
  // A worker that was lost draws other numbers when it goes on.
  if (shared_ != nullptr && next) {
    world_.kept_steps() = std::max(world_.steps(), *next);
  }
  return next;
}

absl::StatusOr<std::optional<int64_t>> Strategy::NextLocalIteration() {
  if (!local_->is_under_way()) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> exchange,
                     peers_->NextIteration(0));
    if (!exchange) return std::nullopt;
    const InnerPart pull(peers_->reporter(), StepPart::kPull);
    RETURN_IF_ERROR(shared_->BeginExchange());
    local_->Begin(*exchange);
  }
  RETURN_IF_ERROR(shared_->BeginIteration(local_->next()));
  return local_->next();
}

absl::Status Strategy::Start() {
  if (!registry_.is_closed()) started_ = Open();
  return started_;
}

absl::Status Strategy::Open() {
  registry_.Close();
  const job::LocalSteps* const local = peers_->local_steps();
  for (const auto& optimizer : registry_.optimizers()) {
    if (local == nullptr) continue;
    RETURN_IF_ERROR(CheckMakesLocalSteps(optimizer->spec(), *local))
        << "--local_steps: optimizer " << optimizer->name();
  }
  variables_ = std::make_unique<ProgramVariables>(registry_, local);
  store_ =
      StoreOf(*variables_, JobOf(registry_, "program", options_.seed, local));
  ASSIGN_OR_RETURN(committed_, peers_->Begin(*store_, registry_.parts()));
  if (local_) committed_ = local_->IterationsOf(committed_);
  variables_->TakeUpdates();
  if (peers_->shared() != nullptr) {
    shared_ = std::make_unique<SharedVariables>(registry_, *peers_->shared());
    if (local_) {
      RETURN_IF_ERROR(shared_->StepLocally(
          1.0f / static_cast<float>(peers_->num_places())));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Strategy::Commit(const Iteration& iteration) {
  RETURN_IF_ERROR(Start());
  variables_->NoteIteration();
  if (local_ && !local_->Add(iteration)) return peers_->GoesOn();
  if (peers_->shared() != nullptr) {
    const InnerPart push(peers_->reporter(), StepPart::kPush);
    RETURN_IF_ERROR(shared_->Commit(/*keeps=*/is_chief()));
  }
  return peers_->Commit(local_ ? local_->Take() : iteration, *store_);
}

absl::Status Strategy::End(const absl::Status& result) {
  return peers_->End(result);
}

Tensor Strategy::Reduce(ReduceOp op, const PerReplica<Tensor>& values,
                        std::optional<int> axis) {
  if (!values.ok()) return Tensor::Error(values.status());
  const absl::StatusOr<std::vector<Tensor>> all =
      GatherValues("Reduce()", values.values(), world_.peers());
  if (!all.ok()) return Tensor::Error(all.status());
  const bool is_mean = op == ReduceOp::kMean;
  return OrError(axis ? ReduceValuesAlong(is_mean, *axis, *all)
                      : ReduceValues(is_mean, *all));
}

Tensor Strategy::Reduce(ReduceOp op, const Tensor& value) {
  if (op == ReduceOp::kMean || num_replicas_in_sync() == 1) return value;
  return Tensor::Error(absl::InvalidArgumentError(absl::StrCat(
      "the sum over ", num_replicas_in_sync(),
      " replicas of a value that is no replica's: give Reduce() what Run() has "
      "returned")));
}

Tensor Strategy::Gather(const PerReplica<Tensor>& values, int axis) {
  if (!values.ok()) return Tensor::Error(values.status());
  const absl::StatusOr<std::vector<Tensor>> all =
      GatherValues("Gather()", values.values(), world_.peers());
  if (!all.ok()) return Tensor::Error(all.status());
  return OrError(ConcatenateValues(axis, *all));
}

absl::Status Strategy::Barrier() {
  return world_.peers().AllGather("Barrier()", "").status();
}

DistributedDataset Strategy::DistributeDataset(Dataset dataset) {
  return DistributedDataset(std::move(dataset), num_replicas_in_sync(),
                            world_.first_replica(), num_local_replicas(),
                            peers_.get());
}

absl::StatusOr<DistributedDataset> Strategy::DistributeDataset(
    const std::function<absl::StatusOr<Dataset>(const InputContext&)>& make) {
  ASSIGN_OR_RETURN(Dataset dataset,
                   make({.num_input_pipelines = peers_->num_places(),
                         .input_pipeline_id = std::max(0, peers_->place()),
                         .num_replicas_in_sync = num_replicas_in_sync()}));
  return DistributedDataset(std::move(dataset), num_local_replicas(), 0,
                            num_local_replicas(), peers_.get());
}

Strategy& GetStrategy() {
  if (in_scope != nullptr) return *in_scope;
  static Strategy& lone = *[] {
    absl::StatusOr<std::unique_ptr<Strategy>> made = Strategy::Default();
    CHECK(made.ok()) << made.status();
    return made->release();
  }();
  return lone;
}

Tensor ComputeAverageLoss(const Tensor& per_example_loss,
                          int64_t global_batch_size) {
  if (global_batch_size < 1) {
    return Tensor::Error(absl::InvalidArgumentError(absl::StrCat(
        "a global batch of ", global_batch_size, " examples: give 1 or more")));
  }
  return ReduceSum(per_example_loss) / static_cast<float>(global_batch_size);
}

std::vector<std::string> ListDevices() {
  std::vector<std::string> names = {"cpu"};
  for (std::string& name : Device::CudaNames()) {
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace parasol::loop
