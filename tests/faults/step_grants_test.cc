// The chief's ledger and the workers' side of its grants, both the real ones,
// under random schedules: claims and answers are lost, late and sent twice;
// workers lose their leases with steps in flight, come back, die and are
// replaced; the chief is started again from a checkpoint.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/steps/step_ledger.h"
#include "gtest/gtest.h"
#include "worker/step/granted_steps.h"

namespace parasol {
namespace {

// Faults of a schedule. Each happens once in so many turns; 0: never.
struct Faults {
  int lost_message = 0;
  int late_claim = 0;
  int lost_lease = 0;
  int death = 0;
  int chief_restart = 0;
  int cluster_restart = 0;
};

class Simulation {
 public:
  Simulation(uint32_t seed, const Faults& faults)
      : random_(seed), faults_(faults) {
    if (UpTo(2) == 0) options_.bound = UpTo(4);
    end_ = 10 + UpTo(150);
    if (UpTo(2) == 0) {
      // Whole epochs: of a part, the shards decide which batches it has.
      shards_ = {1 + UpTo(9), 1 + UpTo(9), 1 + UpTo(9)};
      end_ = (1 + UpTo(6)) * (shards_[0] + shards_[1] + shards_[2]);
    }
    StartChief(std::nullopt);
    const int workers = 1 + UpTo(4);
    for (int i = 0; i < workers; ++i) places_.push_back(NewProcess());
    for (const uint64_t id : places_) Register(id);
  }

  void Run() {
    // After a while no more faults happen: then the end is reached.
    for (int turn = 0; !ledger_->IsComplete(); ++turn) {
      ASSERT_LT(turn, kFaultyTurns + kQuietTurns) << "no progress";
      if (turn >= kFaultyTurns) faults_ = {};
      Turn();
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_LE(ledger_->global_step(), CountCompleted() + may_repeat())
          << "counts what nobody has done";
    }
  }

  // Returns the batches before the end that nobody has completed, or that the
  // checkpoint which the cluster goes on from has not and nobody has since.
  int64_t CountLeftOut() const {
    int64_t left_out = 0;
    for (int64_t batch = 0; batch < end_; ++batch) {
      left_out += !completed_.contains(batch);
    }
    return left_out;
  }
  int64_t CountBeyondEnd() const {
    return std::distance(completed_.lower_bound(end_), completed_.end());
  }
  int64_t repeated() const { return repeated_; }
  // Returns the number of batches that were unfinished when a chief was lost
  // and its workers were not, and of those that were completed twice.
  int64_t may_repeat() const {
    // A chief that is started again does not know that two workers have
    // completed the same batch.
    return unfinished_ > 0 ? unfinished_ + completed_twice_ : 0;
  }

 private:
  static constexpr int kFaultyTurns = 3000;
  static constexpr int kQuietTurns = 200000;
  static constexpr size_t kInFlight = 2;

  struct Process {
    GrantedSteps steps;
    std::deque<int64_t> in_flight;
    // Batches whose step was started and not taken back since.
    std::set<int64_t> own;
    bool is_registered = false;
    int registrations = 0;
    // The registration that the last answer, and the one under way, are of.
    int heard_registration = 0;
    int answer_registration = 0;
    std::optional<wire::ClaimStepsRequest> claim;
    std::optional<wire::ClaimStepsResponse> answer;
  };

  int UpTo(int n) { return static_cast<int>(random_() % n); }
  bool Happens(int once_in) { return once_in > 0 && UpTo(once_in) == 0; }
  int64_t CountCompleted() const {
    return static_cast<int64_t>(completed_.size());
  }

  void StartChief(const std::optional<durable::CheckpointManifest>& manifest) {
    options_.first_version += 1000000;
    if (manifest) {
      ledger_.emplace(*manifest, options_);
    } else {
      ledger_.emplace(options_);
    }
    ledger_->SetShards(shards_);
    ledger_->SetEnd(end_);
  }
  uint64_t NewProcess() {
    processes_[next_id_];
    return next_id_++;
  }
  void Register(uint64_t id) {
    Process& process = processes_[id];
    const int64_t completed = process.steps.completed();
    ASSERT_OK(ledger_->Check(id, completed, completed));
    ledger_->Enter(id,
                   {.completed = completed, .shard = static_cast<int>(id % 3)});
    process.is_registered = true;
    ++process.registrations;
  }
  void LoseLease(uint64_t id) {
    ledger_->Release(id);
    processes_[id].is_registered = false;
    processes_[id].own.clear();
  }

  void Turn() {
    uint64_t& id = places_[UpTo(static_cast<int>(places_.size()))];
    Process& process = processes_[id];
    if (Happens(faults_.death)) {
      LoseLease(id);
      ledger_->Retire(id);
      id = NewProcess();
      return Register(id);
    }
    if (Happens(faults_.lost_lease)) LoseLease(id);
    if (Happens(faults_.chief_restart)) return RestartChief();
    if (Happens(faults_.cluster_restart)) return RestartCluster();
    if (Happens(faults_.late_claim) && !late_.empty()) {
      return HearLate(late_[UpTo(static_cast<int>(late_.size()))]);
    }
    if (!process.is_registered && UpTo(5) == 0) return Register(id);
    switch (UpTo(5)) {
      case 0:
        return Send(id, process);
      case 1:
        return Hear(id, process);
      case 2:
        return TakeAnswer(process);
      case 3:
        return Start(process);
      default:
        return CompleteOne(process);
    }
  }

  void Send(uint64_t id, Process& process) {
    process.claim.emplace();  // an older one is given up
    process.claim->mutable_task()->set_incarnation(id);
    process.claim->set_want(1 + UpTo(9));
    process.steps.Tell(*process.claim);
    process.answer.reset();
    late_.push_back(*process.claim);
    if (late_.size() > 20) late_.pop_front();
  }
  wire::ClaimStepsResponse Answer(const wire::ClaimStepsRequest& claim) {
    const uint64_t id = claim.task().incarnation();
    wire::ClaimStepsResponse answer;
    EXPECT_OK(
        ledger_->Check(id, claim.completed_steps(), claim.started_steps()));
    ledger_->Report(id, claim.completed_steps());
    ledger_->Answer(claim, claim.want(), static_cast<int>(places_.size()),
                    answer);
    return answer;
  }
  void Hear(uint64_t id, Process& process) {
    if (!process.claim || !process.is_registered) return;
    process.answer = Answer(*process.claim);
    process.answer_registration = process.registrations;
    if (Happens(faults_.lost_message)) process.answer.reset();
    process.claim.reset();
  }
  // A copy of an earlier claim; nobody takes its answer.
  void HearLate(const wire::ClaimStepsRequest& claim) {
    const uint64_t id = claim.task().incarnation();
    if (processes_.at(id).is_registered) Answer(claim);
  }
  void TakeAnswer(Process& process) {
    if (!process.answer) return;
    process.steps.Take(*process.answer);
    process.heard_registration = process.answer_registration;
    process.answer.reset();
  }
  void Start(Process& process) {
    if (process.in_flight.size() >= kInFlight) return;
    const std::optional<int64_t> batch = process.steps.TryStart();
    if (!batch) return;
    process.in_flight.push_back(*batch);
    // What a worker held when it lost its lease is not its own any more.
    const bool is_current = process.is_registered &&
                            process.heard_registration == process.registrations;
    if (!is_current) return;
    for (const auto& [id, other] : processes_) {
      repeated_ += other.own.contains(*batch);
    }
    process.own.insert(*batch);
  }
  void CompleteOne(Process& process) {
    if (process.in_flight.empty()) return;
    process.steps.Complete();
    const bool is_new = completed_.insert(process.in_flight.front()).second;
    completed_twice_ += !is_new;
    process.in_flight.pop_front();
  }

  durable::CheckpointManifest Manifest() const {
    durable::CheckpointManifest manifest;
    manifest.set_global_step(ledger_->global_step());
    for (const auto& progress : ledger_->Progress()) {
      *manifest.add_worker_progress() = progress;
    }
    for (const auto& span : ledger_->Unfinished()) {
      *manifest.add_unfinished_batch() = span;
    }
    return manifest;
  }
  // Its workers live, and may have done steps since the checkpoint.
  void RestartChief() {
    if (!checkpoint_ || UpTo(2) == 0) checkpoint_ = Manifest();
    for (const auto& span : ledger_->Unfinished()) unfinished_ += span.count();
    StartChief(checkpoint_);
    late_.clear();
    for (const uint64_t id : places_) {
      processes_[id].is_registered = false;
      processes_[id].own.clear();
      processes_[id].claim.reset();
    }
  }
  // What was completed since the checkpoint is lost with the shards.
  void RestartCluster() {
    const durable::CheckpointManifest manifest = Manifest();
    int64_t begun = manifest.global_step();
    for (const auto& span : manifest.unfinished_batch()) begun += span.count();
    std::set<int64_t> done;
    for (int64_t batch = 0; batch < begun; ++batch) done.insert(batch);
    for (const auto& span : manifest.unfinished_batch()) {
      for (int64_t i = 0; i < span.count(); ++i) done.erase(span.first() + i);
    }
    for (const int64_t batch : done) {
      ASSERT_TRUE(completed_.contains(batch)) << batch << " counts as done";
    }
    completed_ = done;
    checkpoint_.reset();
    StartChief(manifest);
    late_.clear();
    processes_.clear();
    for (uint64_t& id : places_) Register(id = NewProcess());
  }

  std::mt19937 random_;
  Faults faults_;
  StepLedger::Options options_;
  int64_t end_ = 0;
  std::vector<int64_t> shards_;
  std::optional<StepLedger> ledger_;
  std::optional<durable::CheckpointManifest> checkpoint_;
  std::map<uint64_t, Process> processes_;
  std::vector<uint64_t> places_;
  uint64_t next_id_ = 1;
  std::deque<wire::ClaimStepsRequest> late_;
  std::set<int64_t> completed_;
  int64_t repeated_ = 0;
  int64_t completed_twice_ = 0;
  int64_t unfinished_ = 0;
};

TEST(StepGrants, WithoutLossesEveryBatchIsComputedExactlyOnce) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed, {.lost_message = 5, .late_claim = 20});
    simulation.Run();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_EQ(simulation.CountLeftOut(), 0);
    ASSERT_EQ(simulation.CountBeyondEnd(), 0);
    ASSERT_EQ(simulation.repeated(), 0);
  }
}

TEST(StepGrants, ABatchThatNoWorkerHasLostIsComputedOnceAndNoneIsLeftOut) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(
        seed,
        {.lost_message = 5, .late_claim = 20, .lost_lease = 30, .death = 100});
    simulation.Run();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_EQ(simulation.CountLeftOut(), 0);
    ASSERT_EQ(simulation.CountBeyondEnd(), 0);
    ASSERT_EQ(simulation.repeated(), 0);
  }
}

TEST(StepGrants, AClusterThatIsStartedAgainGoesOnWithExactlyWhatIsLeft) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed, {.lost_message = 5,
                                 .late_claim = 20,
                                 .lost_lease = 50,
                                 .cluster_restart = 300});
    simulation.Run();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_EQ(simulation.CountLeftOut(), 0);
    ASSERT_EQ(simulation.CountBeyondEnd(), 0);
    ASSERT_EQ(simulation.repeated(), 0);
  }
}

TEST(StepGrants, AChiefThatIsStartedAgainMissesNoMoreThanWasUnfinished) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed, {.lost_message = 5,
                                 .lost_lease = 100,
                                 .death = 200,
                                 .chief_restart = 400});
    simulation.Run();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_LE(simulation.CountLeftOut(), simulation.may_repeat());
  }
}

}  // namespace
}  // namespace parasol
