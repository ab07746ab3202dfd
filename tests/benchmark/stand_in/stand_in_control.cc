#include "tests/benchmark/stand_in/stand_in_control.h"

#include <random>
#include <utility>

#include "absl/synchronization/notification.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/rpc/channel.h"
#include "cluster/trust/process_secret.h"
#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {
namespace {

constexpr int64_t kHeartbeatMillis = 1000;
constexpr int64_t kRetryMillis = 200;
constexpr int64_t kClaimWaitSeconds = 1;

gpr_timespec In(int64_t millis) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(millis, GPR_TIMESPAN));
}

}  // namespace

// One task: its session with the chief and, of a worker, its claims.
class StandInTask {
 public:
  StandInTask(StandInTasks& all, const std::string& role, int index)
      : all_(all),
        channel_(MakeControlChannel(all.options_.chief_address)),
        stub_(wire::ChiefService::NewStub(channel_)) {
    task_.set_role(role);
    task_.set_index(index);
    task_.set_incarnation(std::random_device()() + (int64_t{index} << 32) + 1);
  }

  void Register() {
    wire::RegisterRequest request;
    *request.mutable_task() = task_;
    session_.Call([&](auto* context, auto* queue) {
      return stub_->AsyncRegister(context, request, queue);
    });
  }

 private:
  // A call that is made again and again.
  template <typename Response>
  class Calls : public CompletionThread::Tag {
   public:
    using Answered = void (StandInTask::*)(const grpc::Status&,
                                           const Response&);
    Calls(StandInTask& task, Answered answered)
        : task_(task), answered_(answered) {}
    template <typename Begin>
    void Call(const Begin& begin) {
      context_ = std::make_unique<grpc::ClientContext>();
      reader_ = begin(context_.get(), &task_.all_.thread_->queue());
      reader_->Finish(&response_, &status_, this);
    }
    void Completed(bool) override {
      if (!task_.all_.is_ending_) (task_.*answered_)(status_, response_);
    }
    void Cancel() {
      if (context_ != nullptr) context_->TryCancel();
    }

   private:
    StandInTask& task_;
    const Answered answered_;
    std::unique_ptr<grpc::ClientContext> context_;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
    Response response_;
    grpc::Status status_;
  };
  class Timer : public CompletionThread::Tag {
   public:
    Timer(StandInTask& task, void (StandInTask::*rings)())
        : task_(task), rings_(rings) {}
    void Set(int64_t millis) {
      alarm_.Set(&task_.all_.thread_->queue(), In(millis), this);
    }
    void Completed(bool) override {
      if (!task_.all_.is_ending_) (task_.*rings_)();
    }
    void Cancel() { alarm_.Cancel(); }

   private:
    StandInTask& task_;
    void (StandInTask::*const rings_)();
    grpc::Alarm alarm_;
  };

  void OnRegistered(const grpc::Status& status,
                    const wire::RegisterResponse& response) {
    if (!status.ok()) return register_again_.Set(kRetryMillis);
    run_id_ = response.run_id();
    layout_ = response.layout();
    ++all_.registered_;
    Heartbeat();
    if (task_.role() == "worker") Claim();
  }
  void Heartbeat() {
    wire::HeartbeatRequest request;
    *request.mutable_task() = task_;
    const bool is_loaded =
        task_.role() == "ps" && all_.options_.ps->IsLoaded(task_.incarnation());
    if (is_loaded) {
      request.set_run_id(run_id_);
      request.set_layout(layout_);
    }
    heartbeat_.Call([&](auto* context, auto* queue) {
      return stub_->AsyncHeartbeat(context, request, queue);
    });
  }
  void OnHeartbeat(const grpc::Status&, const wire::HeartbeatResponse&) {
    heartbeat_again_.Set(kHeartbeatMillis);
  }
  void Claim() {
    wire::ClaimStepsRequest request;
    *request.mutable_task() = task_;
    request.set_completed_steps(completed_);
    request.set_started_steps(completed_);
    request.set_granted_steps(completed_);
    request.set_pushed_steps(completed_);
    request.set_assignment_version(version_);
    request.set_want(1);
    request.set_train_examples(all_.options_.examples);
    request.add_shard_examples(all_.options_.examples);
    if (waits_) request.mutable_wait()->set_seconds(kClaimWaitSeconds);
    claim_.Call([&](auto* context, auto* queue) {
      return stub_->AsyncClaimSteps(context, request, queue);
    });
  }
  void OnClaimed(const grpc::Status& status,
                 const wire::ClaimStepsResponse& response) {
    if (!status.ok()) return claim_again_.Set(kRetryMillis);
    ++all_.claims_;
    version_ = response.assignment_version();
    if (all_.options_.in_step) return AdvanceInStep(response);
    const int64_t done = response.granted_steps() - completed_;
    waits_ = done <= 0;
    if (done > 0) {
      completed_ = response.granted_steps();
      all_.steps_ += done;
    }
    Claim();
  }
  // Reports the step that all have done.
  void AdvanceInStep(const wire::ClaimStepsResponse& response) {
    if (response.phase() != wire::TRAINING)
      return claim_again_.Set(kRetryMillis);
    ++completed_;
    const int64_t steps = ++all_.steps_;
    if (steps % all_.options_.workers != 0) return;
    for (const auto& each : all_.tasks_) {
      if (each->task_.role() == "worker") each->Claim();
    }
  }

  StandInTasks& all_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::ChiefService::Stub> stub_;
  wire::Task task_;
  std::string run_id_;
  uint64_t layout_ = 0;
  int64_t completed_ = 0;
  int64_t version_ = 0;
  bool waits_ = false;

 public:
  void Cancel() {
    session_.Cancel();
    heartbeat_.Cancel();
    claim_.Cancel();
    register_again_.Cancel();
    heartbeat_again_.Cancel();
    claim_again_.Cancel();
  }

 private:
  Calls<wire::RegisterResponse> session_{*this, &StandInTask::OnRegistered};
  Calls<wire::HeartbeatResponse> heartbeat_{*this, &StandInTask::OnHeartbeat};
  Calls<wire::ClaimStepsResponse> claim_{*this, &StandInTask::OnClaimed};
  Timer register_again_{*this, &StandInTask::Register};
  Timer heartbeat_again_{*this, &StandInTask::Heartbeat};
  Timer claim_again_{*this, &StandInTask::Claim};
};

StandInTasks::StandInTasks(const Options& options)
    : options_(options), thread_(std::make_unique<CompletionThread>()) {
  for (int i = 0; i < options_.num_ps; ++i) {
    tasks_.push_back(std::make_unique<StandInTask>(*this, "ps", i));
  }
  for (int i = 0; i < options_.workers; ++i) {
    tasks_.push_back(std::make_unique<StandInTask>(*this, "worker", i));
  }
  for (const auto& task : tasks_) task->Register();
}

// Cancels all calls on the thread that makes them.
class StandInTasks::End : public CompletionThread::Tag {
 public:
  explicit End(StandInTasks& all) : all_(all) {
    alarm_.Set(&all_.thread_->queue(), In(0), this);
  }
  void Await() { is_done_.WaitForNotification(); }
  void Completed(bool) override {
    for (const auto& task : all_.tasks_) task->Cancel();
    is_done_.Notify();
  }

 private:
  StandInTasks& all_;
  grpc::Alarm alarm_;
  absl::Notification is_done_;
};

StandInTasks::~StandInTasks() {
  is_ending_ = true;
  End end(*this);
  end.Await();
  thread_.reset();
}

class StandInStreams::Stream {
 public:
  Stream(StandInStreams& all, const std::string& address,
         const std::string& admission)
      : all_(all), channel_(MakeTensorChannel(address)) {
    context_.set_wait_for_ready(true);
    context_.AddMetadata(kAdmissionKey, admission);
    // The ps answers at once, before any message.
    context_.AddMetadata(kPayloadLaneKey, "none of those that a ps knows");
    call_ = grpc::GenericStub(channel_).PrepareCall(
        &context_, "/parasol.wire.ParameterService/Exchange",
        &all_.thread_->queue());
    call_->StartCall(&started_);
  }
  void Cancel() { context_.TryCancel(); }

 private:
  using Tag = MemberTag<Stream>;

  void OnStarted(bool) { call_->ReadInitialMetadata(&told_); }
  void OnTold(bool ok) {
    if (ok) ++all_.open_;
    is_open_ = ok;
    call_->Read(&nothing_, &ended_);
  }
  void OnEnded(bool) {
    if (is_open_) --all_.open_;
  }

  StandInStreams& all_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer nothing_;
  bool is_open_ = false;
  Tag started_{this, &Stream::OnStarted};
  Tag told_{this, &Stream::OnTold};
  Tag ended_{this, &Stream::OnEnded};
};

StandInStreams::StandInStreams(const std::string& ps_address,
                               uint64_t ps_incarnation, int count)
    : thread_(std::make_unique<CompletionThread>()) {
  for (int i = 0; i < count; ++i) {
    const AdmittedWorker worker = {.index = i, .incarnation = 1 + uint64_t(i)};
    streams_.push_back(std::make_unique<Stream>(
        *this, ps_address, AdmissionOf(worker, ps_incarnation)));
  }
}

StandInStreams::~StandInStreams() {
  for (const auto& stream : streams_) stream->Cancel();
  thread_.reset();
}

}  // namespace parasol
