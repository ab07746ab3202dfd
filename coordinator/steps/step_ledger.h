#ifndef PARASOL_COORDINATOR_STEPS_STEP_LEDGER_H_
#define PARASOL_COORDINATOR_STEPS_STEP_LEDGER_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/steps/batch_pool.h"
#include "coordinator/steps/departed_workers.h"
#include "coordinator/steps/step_plan.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The plan of asynchronous training and bounded staleness: each step is done by
// one worker.
//
// Totals per worker incarnation travel, not differences, so a message that is
// lost or sent twice changes nothing. Each step has a batch. Batches are
// granted in their order, epoch after epoch, and each is one worker's at a
// time. `global_step` counts the batches that are completed, each once: without
// failures exactly the steps up to the end are done.
//
// The unfinished batches of a worker that is gone are granted to others. The
// worker may come back with steps that it has started: its grants then have a
// new version (worker/step/granted_steps.h), and it is granted nothing until it
// has told, in a claim of that version, how many steps it has started for good.
// It keeps the batches of these steps that no other worker has been granted
// meanwhile; steps whose batches another worker has do not count. So a batch is
// computed twice only if it was in flight at a worker that the chief gave up,
// and no batch is left out.
//
// A resumed run goes on with the checkpoint's unfinished batches and the
// batches behind them. A worker to which the chief before has granted steps
// since the checkpoint tells their batches when it registers: the completed
// ones are done, and it keeps the ones in flight that no other worker has been
// granted by then (StepGrants awaits the workers for a moment). So no batch is
// left out, and a batch is computed twice only if its worker does not come
// back, or after another worker was granted it. Of steps whose batches it no
// longer knows (it keeps 65,536 ranges; an older checkpoint than the two that
// had them), the next batches are taken as done: these may be done once more,
// or once less, and global_step() may be less than the steps that were done.
//
// Totals are taken only as far as they can be true. This chief knows what it
// has granted: more is refused. About the grants of the chief before, since the
// checkpoint, it knows only that they were not beyond the end: a worker is
// credited with its progress since the checkpoint as far as the end allows it,
// once, when it enters. Afterwards it may complete kMaxUnfinished further steps
// at most before this chief knows what it holds. A worker that the checkpoint
// does not know is taken as one that came after it; but if the checkpoint has
// forgotten workers that may come back, it is credited with nothing.
//
// A worker's clock, in bounded staleness, is the number of steps that it has
// done, plus the smallest clock of the workers that were there when it came. A
// worker with a clock of c may begin a step when the smallest clock of the live
// workers is c - bound or more: each is granted up to bound + 1 above the
// smallest clock, which never falls. The slowest worker is always granted what
// is left, so a worker waits for ever only if a live worker stands still. Each
// worker is told what its clock is ahead of its steps, and tells the next
// chief.
//
// A call takes a time that does not grow with the number of workers, but for
// Awaited(), Progress(), Unfinished(), MayTell(), a grant of the last steps,
// and what is done once for each worker that comes from another chief.
class StepLedger : public StepPlan {
 public:
  // Largest number of steps that one worker holds unfinished: granted by this
  // chief, or believed to be granted by the one before.
  static constexpr int64_t kMaxUnfinished = 4096;
  // Largest total of a worker.
  static constexpr int64_t kMaxTotal = int64_t{1} << 53;

  struct Options {
    // Asynchronous if there is no bound.
    std::optional<int64_t> bound;
    // The versions of this chief's grants are larger. Another chief's must
    // be others, and none is 0.
    int64_t first_version = 0;
    // Step up to which an earlier chief may have let workers go, if its job had
    // another end.
    int64_t earlier_end = 0;
    // True if the training set may have several shards, whose batches are taken
    // as SetShards() says.
    bool has_shards = false;
    // True if one checkpoint stays as a rule. If it is damaged, the next chief
    // may take a much older one, which was kept for another reason.
    bool has_one_checkpoint = false;
  };

  // Starts a new run.
  explicit StepLedger(Options options)
      : options_(options), earlier_end_(options.earlier_end) {}
  StepLedger() : StepLedger(Options()) {}
  // Resumes the run that `manifest` is a checkpoint of.
  StepLedger(const durable::CheckpointManifest& manifest, Options options);
  explicit StepLedger(const durable::CheckpointManifest& manifest)
      : StepLedger(manifest, Options()) {}

  void SetEnd(int64_t end_step) override;
  void EndEarly() override;
  void SetLimit(std::optional<int64_t> limit) override;
  void SetBatches(std::optional<int64_t> batches) override;
  void SetShards(const std::vector<int64_t>& shard_batches) override;
  std::optional<int64_t> end_step() const override { return end_step_; }

  absl::Status Check(uint64_t worker, int64_t completed,
                     int64_t started) const override;
  // Lets a worker take part. Steps that an unknown worker of a new run has
  // completed were for another run, and are not counted.
  void Enter(uint64_t worker, const WorkerArrival& arrival) override;
  void Report(uint64_t worker, int64_t completed) override;
  void Release(uint64_t worker) override;
  void Retire(uint64_t worker) override;
  void Saved(const durable::CheckpointManifest& manifest) override;
  void Answer(const wire::ClaimStepsRequest& claim, int64_t want, int workers,
              wire::ClaimStepsResponse& response) override;
  int64_t news() const override { return news_; }

  // Returns the batches of a worker's granted steps that are not known to be
  // completed, in order, then the batches that it will be granted next.
  std::vector<int64_t> BatchesOf(uint64_t worker) const;

  int64_t global_step() const override { return global_step_; }
  bool HoldsSteps(uint64_t worker) const override;
  std::optional<int64_t> staleness() const override {
    if (clocks_.empty()) return std::nullopt;
    return *clocks_.rbegin() - *clocks_.begin();
  }
  int64_t completed_grants() const override { return completed_grants_; }
  bool MayTell() const override;
  int64_t doubled_batches() const override { return doubled_batches_; }
  std::vector<durable::WorkerProgress> Progress() const override;
  std::vector<durable::BatchSpan> Unfinished() const override;
  // Returns those with the smallest clock if they hold up another worker, or in
  // asynchronous training those that hold the last steps.
  std::vector<uint64_t> Awaited() const override;

  // Returns the clock by the last report of a worker that has entered.
  int64_t ClockOf(uint64_t worker) const {
    return accounts_.at(worker).clock();
  }

 private:
  // The batch of a step.
  struct Step {
    int64_t batch = 0;
    // False if another worker has been granted the batch meanwhile.
    bool counts = true;
  };

  struct Account {
    int64_t completed = 0;
    int64_t granted = 0;  // >= completed
    // Largest number of steps that the worker can have started.
    int64_t limit = 0;
    // True if steps beyond the known ones count: an earlier chief may have
    // granted them.
    bool counts_unknown = false;
    // Batches of them, as far as the worker has told.
    ToldBatches told;
    // Completed steps that are counted once the end and the shards are known,
    // and the first one.
    int64_t uncounted = 0;
    int64_t uncounted_begin = 0;
    // Number of steps that this chief's newest checkpoint has as completed, and
    // the one before it.
    int64_t newest_saved = 0;
    int64_t saved = 0;
    // Number of steps that the clock is ahead of `completed`.
    int64_t lead = 0;
    // True if neither the worker nor the checkpoint that the run is resumed
    // from knows `lead`: it then waits for the clocks of the others.
    bool is_newcomer = false;
    bool gone = true;
    // Version of the grants. A worker that has had no answer tells 0, which is
    // taken for the first version until a claim of that has come.
    int64_t version = 0;
    bool is_first_version = true;
    bool has_told_version = false;
    // True if it is known which steps the worker has started for good.
    bool is_settled = false;
    // The shard whose batches the worker is granted first.
    int shard = 0;
    // The steps from completed + 1 on: the granted ones, then the ones that may
    // be granted next. Empty unless is_settled.
    std::deque<Step> steps;
    // Batches of the steps from completed + 1 on that were granted when the
    // worker went. Empty if is_settled.
    std::deque<int64_t> lost_batches;
    // The clock as it is in clocks_.
    std::optional<int64_t> kept_clock;

    int64_t unfinished() const { return granted - completed; }
    int64_t clock() const { return completed + lead; }
  };

  // Notes what has changed for claims that wait, when a call ends.
  class NewsCheck;

  // Returns true if the steps that no grant of this chief explains count.
  bool CountsUnknownSteps() const { return resumed_ && !has_forgotten_; }
  // Returns the largest total that an unknown worker, or one that the
  // checkpoint knows, can have.
  int64_t LimitOfStranger(uint64_t worker) const;
  // Returns the number of steps that a worker can have completed since the
  // checkpoint.
  int64_t MayBeUncounted() const;
  Account& AddAccount(uint64_t worker, const WorkerArrival& arrival);
  // Takes a worker's total.
  void Complete(Account& account, int64_t completed);
  // Takes the worker's last `steps` completed steps as done, which this chief
  // has not granted.
  void CompleteUnknown(Account& account, int64_t steps);
  // Counts those that could not be counted, if it is time.
  void CountUncounted(Account& account);
  // Returns what the worker has told of the steps from `step` on.
  ToldBatches::Run ToldFrom(const Account& account, int64_t step) const;
  // Puts back the batches that workers have beyond their granted steps.
  void ReturnAhead();
  // Returns the batch of a step that a worker has in flight, and that this
  // chief has not granted.
  Step InFlight(const Account& account, int64_t step);
  // Adds to the number of completed batches.
  void Count(int64_t batches);
  // Takes the number of steps that the worker has started as final.
  void Settle(Account& account, int64_t started);
  // Returns true if the worker has heard of the account's version.
  static bool IsCurrent(Account& account, const wire::ClaimStepsRequest& claim);
  // Grants up to `want` steps more, fewer towards the end so that `workers`
  // workers share it.
  void Grant(Account& account, int64_t want, int workers);
  // Gives a worker the batches of its granted steps, and some more.
  void FillBatches(Account& account);
  // Takes back the last batch that a worker has beyond its granted steps.
  int64_t TakeBackBatch();
  // Returns the number of steps that are neither done nor granted, and may be
  // granted.
  int64_t Free() const { return GrantEnd() - global_step_ - outstanding_; }
  // Returns the number of steps for which there are batches, up to the end.
  int64_t BatchesEnd() const {
    return batches_ ? std::min(*batches_, *end_step_) : *end_step_;
  }
  // Returns the number of steps that any chief of the run can have granted.
  int64_t LastEnd() const {
    const int64_t end = std::max(end_step_.value_or(kMaxTotal), earlier_end_);
    return batches_ ? std::min(*batches_, end) : end;
  }
  // Returns the number of steps that may be granted in all.
  int64_t GrantEnd() const {
    return limit_ ? std::min(*limit_, BatchesEnd()) : BatchesEnd();
  }
  // Returns true if nothing is granted because there are no batches now.
  bool AwaitsBatches() const { return batches_ && GrantEnd() == *batches_; }
  // Returns the smallest clock of the live workers; if there are none, of those
  // that were there last.
  int64_t SmallestClock() const;
  // Keeps a worker's clock in clocks_ while it is live.
  void KeepClock(Account& account);
  // Raises newcomers to the smallest clock of the others, and those that were
  // gone to the smallest clock that a live worker can have. Called once after a
  // restart of the chief, before the first grant.
  void RaiseNewcomers();

  const Options options_;
  // Step up to which workers may have been let go, if the end is another one
  // now.
  int64_t earlier_end_;
  bool resumed_ = false;
  // True if workers that may come back are not known any more.
  bool has_forgotten_ = false;
  bool has_granted_ = false;
  std::optional<int64_t> end_step_;
  std::optional<int64_t> limit_;
  // Number of batches that there are, in a set that grows.
  std::optional<int64_t> batches_;
  int64_t global_step_ = 0;
  int64_t completed_grants_ = 0;
  int64_t doubled_batches_ = 0;
  bool knows_shards_ = false;
  // Step of this chief's newest checkpoint.
  int64_t saved_step_ = -1;
  // Number of batches that count and are some worker's: of granted steps alone,
  // and with the steps that may be granted next.
  int64_t outstanding_ = 0;
  int64_t assigned_ = 0;
  int64_t last_smallest_clock_ = 0;
  int64_t versions_ = 0;
  int64_t news_ = 0;
  BatchPool pool_;
  // Workers that are live, or gone and may come back.
  std::map<uint64_t, Account> accounts_;
  // Clocks of live workers, in bounded staleness.
  std::multiset<int64_t> clocks_;
  DepartedWorkers departed_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_STEP_LEDGER_H_
