#ifndef PARASOL_WORKER_GROUP_TESTING_DEVICE_WORKER_H_
#define PARASOL_WORKER_GROUP_TESTING_DEVICE_WORKER_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "cluster/collective/testing/memory_network.h"
#include "ml/device/device.h"
#include "ml/model/device_training.h"
#include "worker/group/device_gradients.h"
#include "worker/group/group_parameters.h"
#include "worker/group/testing/assignments.h"
#include "worker/group/testing/group_fixture.h"
#include "worker/store/device_variables.h"

namespace parasol::group_testing {

// The packs of MakeVariables(): v2, and v1 with v0.
inline constexpr int64_t kBytesPerPack = 8;

// Gradients of MakeVariables() in the memory of a device, with a gap between
// two, which a test writes.
class FakeTraining : public DeviceTraining {
 public:
  explicit FakeTraining(Device& device)
      : device_(device),
        values_(*device.NewArray<float>(kElements)),
        gradients_(*device.NewArray<float>(kElements)),
        on_host_(*device.NewHostArray<float>(kElements)) {}

  absl::StatusOr<std::vector<Variable>> Variables() override {
    std::vector<Variable> variables;
    for (const size_t first : kFirst) {
      variables.push_back({values_.data() + first, gradients_.data() + first});
    }
    return variables;
  }
  absl::Span<float> AllGradients() override { return gradients_.span(); }
  absl::StatusOr<std::vector<Piece>> WriteInPieces(
      const std::vector<VariableRange>& pieces) override {
    ranges_ = pieces;
    std::vector<Piece> written;
    for (const VariableRange& piece : pieces) {
      ASSIGN_OR_RETURN(events_.emplace_back(), device_.NewEvent());
      written.push_back({.first = kFirst[piece.begin],
                         .elements = EndOf(piece) - kFirst[piece.begin],
                         .written = events_.back().get()});
    }
    return written;
  }
  void UseTables(DeviceRows&) override {}
  absl::StatusOr<BatchResult> Train(StagedBatch&, uint64_t, Sinks) override {
    return absl::UnimplementedError("no passes");
  }

  // Enqueues a pass with these gradients, piece by piece.
  absl::Status Write(const std::vector<std::vector<float>>& gradients) {
    RETURN_IF_ERROR(device_.Synchronize());
    for (size_t i = 0; i < gradients.size(); ++i) {
      std::copy(gradients[i].begin(), gradients[i].end(),
                on_host_.data() + kFirst[i]);
    }
    for (size_t i = 0; i < ranges_.size(); ++i) {
      const size_t first = kFirst[ranges_[i].begin];
      RETURN_IF_ERROR(
          device_.Copy(Device::Stream::kCompute,
                       absl::MakeConstSpan(on_host_.data() + first,
                                           EndOf(ranges_[i]) - first),
                       gradients_.data() + first));
      RETURN_IF_ERROR(device_.Record(Device::Stream::kCompute, *events_[i]));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kElements = 12;
  static constexpr size_t kFirst[] = {0, 4, 5};

  static size_t EndOf(const VariableRange& piece) {
    return kFirst[piece.end - 1] + kSizes[piece.end - 1];
  }

  Device& device_;
  Array<float> values_;
  Array<float> gradients_;
  Array<float> on_host_;
  std::vector<VariableRange> ranges_;
  std::vector<std::unique_ptr<Device::Event>> events_;
};

// A worker whose gradients of variables are on devices, with a thread that
// trains as SyncTrainingLoop does. A GroupState has the values.
class DeviceWorker {
 public:
  static job::Job JobWithoutTable() {
    job::Job job = MakeJob();
    job.mutable_model()->clear_sparse_table();
    return job;
  }

  // `devices`: replicas are dealt out to them, another way in each step. None:
  // gradients are in host memory. `job`: with MakeJob()'s table or without.
  // `has_variables`: on its only device, which updates them.
  DeviceWorker(int index, int replicas, int64_t steps,
               const std::vector<std::string>& devices, const job::Job& job,
               Assignments& assignments, MemoryNetwork& network,
               bool has_variables = false)
      : index_(index),
        steps_(steps),
        assignments_(assignments),
        endpoint_(network.MakeEndpoint(absl::StrCat("h:", index))) {
    GroupParameters::Options options;
    options.task.set_role("worker");
    options.task.set_index(index);
    options.task.set_incarnation(100 + index);
    options.replicas = replicas;
    options.bytes_per_pack = kBytesPerPack;
    options.report_delay = absl::Milliseconds(1);
    for (const std::string& name : devices) {
      Place& place = places_.emplace_back();
      place.device = *Device::Open(name);
      place.training = std::make_unique<FakeTraining>(*place.device);
      place.gradients = *DeviceGradients::Create(
          *place.device, *place.training, MakeVariables(),
          {.bytes_per_pack = kBytesPerPack,
           .fetches_sum = !has_variables && places_.size() == 1});
      options.on_devices.push_back(place.gradients.get());
    }
    if (has_variables) {
      Place& place = places_.front();
      variables_ =
          *DeviceVariables::Create(MakeVariables(), job,
                                   {{place.training.get(), place.device.get(),
                                     &place.gradients->device_mutex()}});
      options.variables_on_device = variables_.get();
      state_ =
          std::make_unique<GroupState>(MakeVariables(), job, Clock::Real(),
                                       TableStore::kHost, variables_.get());
    } else {
      state_ =
          std::make_unique<GroupState>(MakeVariables(), job, Clock::Real());
    }
    parameters_ = std::make_unique<GroupParameters>(
        options, *state_, *endpoint_, Clock::Real(), metrics_);
  }
  ~DeviceWorker() { Stop(); }

  // Has `call` called with each step between the passes of its replicas and
  // their pushes.
  void BeforePushes(std::function<void(int64_t step)> call) {
    before_pushes_ = std::move(call);
  }

  // Has `call` called with each step before the passes of its replicas.
  void BeforePasses(std::function<void(int64_t step)> call) {
    before_passes_ = std::move(call);
  }

  GroupState& state() { return *state_; }
  GroupParameters& parameters() { return *parameters_; }
  // Ends the training before the pushes of `step`.
  void EndBefore(int64_t step) { steps_ = step; }
  // Has the gradients of a step not be numbers.
  void NansAt(int64_t step) { nan_at_ = step; }
  void Start() {
    thread_ = std::thread([this] { Train(); });
  }
  void AwaitEnd() {
    if (thread_.joinable()) thread_.join();
  }
  void Stop() {
    if (parameters_ == nullptr) return;
    parameters_->Stop();
    AwaitEnd();
    parameters_.reset();
  }
  void Claim() { parameters_->Hear(assignments_.Claim(parameters_->broken())); }

 private:
  struct Place {
    std::unique_ptr<Device> device;
    std::unique_ptr<FakeTraining> training;
    std::unique_ptr<DeviceGradients> gradients;
  };
  struct Rows {
    std::vector<uint64_t> ids;
    std::vector<float> gradients;
  };
  using PendingPtr = std::unique_ptr<TrainingParameters::Pending>;

  void Train() {
    while (state_->version().step < steps_ && TrainStep().ok()) {
    }
  }

  absl::Status TrainStep() {
    std::vector<std::vector<float>> values;
    for (const int64_t size : kSizes) values.emplace_back(size);
    TrainingParameters::PullRequest pull;
    for (size_t i = 0; i < values.size(); ++i) {
      pull.targets.push_back({i, absl::MakeSpan(values[i])});
    }
    const PendingPtr pulled = parameters_->Pull(std::move(pull));
    while (!pulled->WaitFor(absl::Milliseconds(1))) Claim();
    RETURN_IF_ERROR(pulled->Wait());
    const int64_t step = pulled->outcome().max_updates;
    if (step >= steps_) return absl::OkStatus();
    std::set<int> computed;
    std::vector<PendingPtr> pushes;
    const auto compute = [&]() -> absl::Status {
      for (const int replica : assignments_.ReplicasOf(index_)) {
        if (!computed.insert(replica).second) continue;
        ASSIGN_OR_RETURN(pushes.emplace_back(), Push(step, replica, values));
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(compute());
    while (
        !state_->steps().Await(step + 1, absl::Milliseconds(1)).has_value()) {
      Claim();
      RETURN_IF_ERROR(compute());
    }
    for (const PendingPtr& push : pushes) RETURN_IF_ERROR(push->Wait());
    return state_->steps().ended();
  }

  // Replica 1 has a weight of 2, and replica 2 no examples in odd steps.
  absl::StatusOr<PendingPtr> Push(
      int64_t step, int replica,
      const std::vector<std::vector<float>>& values) {
    const bool has_examples = replica != 2 || step % 2 == 0;
    const float weight = replica == 1 ? 2 : 1;
    auto gradients = std::make_unique<std::vector<std::vector<float>>>();
    for (const std::vector<float>& value : values) {
      std::vector<float>& gradient = gradients->emplace_back();
      for (size_t i = 0; i < value.size(); ++i) {
        gradient.push_back(step == nan_at_
                               ? NAN
                               : 0.1f * (replica + 1) * value[i] + 0.001f * i);
      }
    }
    TrainingParameters::PushRequest push;
    push.sync = {.step = step, .replica = replica};
    Rows rows;
    if (state_->num_tables() > 0) {
      if (has_examples) {
        ASSIGN_OR_RETURN(rows, RowsOf(step, replica, weight));
      }
      push.rows = {{0, rows.ids, rows.gradients}};
    }
    if (before_passes_ != nullptr) before_passes_(step);
    if (!places_.empty()) {
      const size_t number = (replica + step) % places_.size();
      Place& place = places_[number];
      parameters_->Expect(*push.sync, {.has_examples = has_examples,
                                       .weight = weight,
                                       .device = static_cast<int>(number)});
      if (has_examples) {
        absl::MutexLock lock(&place.gradients->device_mutex());
        RETURN_IF_ERROR(place.gradients->BeginPass());
        RETURN_IF_ERROR(place.training->Write(*gradients));
        RETURN_IF_ERROR(place.gradients->Take());
      }
      if (before_pushes_ != nullptr) before_pushes_(step);
      return parameters_->Push(std::move(push));
    }
    for (size_t i = 0; i < gradients->size(); ++i) {
      for (float& element : (*gradients)[i]) {
        element = has_examples ? element * weight : 0;
      }
      push.gradients.push_back({i, (*gradients)[i]});
    }
    return parameters_->Push(std::move(push));
  }

  // A replica has two rows in common with the next one. Gradients depend on the
  // rows' values.
  absl::StatusOr<Rows> RowsOf(int64_t step, int replica, float weight) {
    Rows rows;
    for (uint64_t i = 0; i < 4; ++i) {
      rows.ids.push_back((2 * replica + step + i) % 9);
    }
    std::vector<float> values(rows.ids.size() * kWidth);
    TrainingParameters::PullRequest pull;
    pull.rows = {{0, rows.ids, absl::MakeSpan(values)}};
    RETURN_IF_ERROR(parameters_->Pull(std::move(pull))->Wait());
    for (size_t i = 0; i < values.size(); ++i) {
      rows.gradients.push_back(
          weight * (0.3f * values[i] + 0.1f * (replica + 1) - 0.01f * i));
    }
    return rows;
  }

  const int index_;
  std::atomic<int64_t> steps_;
  Assignments& assignments_;
  MetricsRegistry metrics_;
  const std::unique_ptr<CollectiveEndpoint> endpoint_;
  std::vector<Place> places_;
  std::unique_ptr<DeviceVariables> variables_;
  std::unique_ptr<GroupState> state_;
  std::unique_ptr<GroupParameters> parameters_;
  std::function<void(int64_t step)> before_passes_;
  std::function<void(int64_t step)> before_pushes_;
  int64_t nan_at_ = -1;
  std::thread thread_;
};

}  // namespace parasol::group_testing

#endif  // PARASOL_WORKER_GROUP_TESTING_DEVICE_WORKER_H_
