#ifndef PARASOL_CHIEF_STEP_LEDGER_H_
#define PARASOL_CHIEF_STEP_LEDGER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "chief/batch_pool.h"
#include "chief/step_plan.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The plan of asynchronous training and bounded staleness: each step is done by
// one worker.
//
// Totals per worker incarnation travel, not differences, so a message that is
// lost or sent twice changes nothing. Each step is granted to one incarnation
// at a time: without failures exactly the steps up to the end are done. The
// unfinished steps of an incarnation that is gone are granted again. If it did
// some of them without reporting them, the end is overshot by those.
//
// Each step has a batch. Batches are granted in their order, epoch after epoch,
// so each batch of an epoch is computed once, whichever workers are how fast.
// The unfinished batches of an incarnation that is gone are granted again. An
// incarnation that comes back and has completed some of them meanwhile is
// credited with those that have not been granted again. A resumed run takes the
// first batches as done, as many as its checkpoint's steps: batches that were
// granted and not completed at that time are taken as the last ones.
//
// A worker's clock, in bounded staleness, is the number of steps that it has
// done, plus the smallest clock of the workers that were there when it came. A
// worker with a clock of c may begin a step when the smallest clock of the live
// workers is c - bound or more: each is granted up to bound + 1 above the
// smallest clock, which never falls. The slowest worker is always granted what
// is left, so a worker waits for ever only if a live worker stands still.
class StepLedger : public StepPlan {
 public:
  // Number of incarnations that are remembered after they are gone, with the
  // steps that they had done, in case they come back.
  static constexpr size_t kMaxGone = 1024;

  // Starts a new run. Asynchronous if there is no bound.
  explicit StepLedger(std::optional<int64_t> bound = std::nullopt)
      : bound_(bound) {}
  // Resumes the run that `manifest` is a checkpoint of. A worker that reports
  // more than its progress there is credited with the difference. Its clock
  // goes on from the one there as long as nothing has been granted.
  explicit StepLedger(const durable::CheckpointManifest& manifest,
                      std::optional<int64_t> bound = std::nullopt);

  void SetEnd(int64_t end_step) override { end_step_ = end_step; }
  void SetShards(const std::vector<int64_t>& shard_batches) override {
    pool_.SetShards(shard_batches);
  }
  void SetShardOf(uint64_t worker, int shard) override;
  std::optional<int64_t> end_step() const override { return end_step_; }

  // Lets a worker take part. Steps that an unknown worker of a new run has
  // completed were for another run, and are not counted.
  void Enter(uint64_t worker, int64_t completed) override;
  void Report(uint64_t worker, int64_t completed) override;
  void Release(uint64_t worker) override;
  void Answer(uint64_t worker, int64_t want, int workers,
              wire::ClaimStepsResponse& response) override;
  // Grants up to `want` steps more, fewer towards the end so that `workers`
  // workers share it, and returns the incarnation's total.
  int64_t Grant(uint64_t worker, int64_t want, int workers);
  // Returns the batches of a worker's granted steps that are not known to be
  // completed, in order, and those that it will be granted next.
  std::vector<int64_t> BatchesOf(uint64_t worker) const;

  int64_t global_step() const override { return global_step_; }
  std::vector<durable::WorkerProgress> Progress() const override;
  std::vector<uint64_t> Awaited() const override;

  // Returns the clock by the last report of a worker that has entered.
  int64_t ClockOf(uint64_t worker) const {
    return accounts_.at(worker).clock();
  }

 private:
  struct Account {
    int64_t completed = 0;
    int64_t granted = 0;  // >= completed
    // Number of steps that the clock is ahead of `completed`.
    int64_t lead = 0;
    // True if the checkpoint that the run is resumed from does not know the
    // worker: `lead` then waits for the clocks of the workers that it knows.
    bool is_newcomer = false;
    bool gone = false;
    // The shard whose batches the worker is granted first.
    int shard = 0;
    // Batches of the steps that are granted and not completed, then of steps
    // that may be granted next.
    std::deque<int64_t> batches;
    // Batches that were granted and not completed when the worker went.
    std::deque<int64_t> lost_batches;

    int64_t unfinished() const { return granted - completed; }
    int64_t clock() const { return completed + lead; }
  };

  // Counts `steps` steps of a worker as completed. Returns the number of those
  // whose batches no other worker has been granted.
  int64_t CompleteBatches(Account& account, int64_t steps);
  // Gives a worker the batches of its granted steps, and some more.
  void FillBatches(Account& account);
  // Takes back the last batch that a worker has beyond its granted steps.
  int64_t TakeBackBatch();
  // Returns the number of steps of all workers that are granted and not
  // completed.
  int64_t Outstanding() const;
  // Returns the smallest clock of the live workers; if there are none, of those
  // that were there last.
  int64_t SmallestClock() const;
  // Raises newcomers to the smallest clock of the others. Called once after a
  // restart of the chief, before the first grant.
  void RaiseNewcomers();
  void Remember(uint64_t gone_incarnation);

  const std::optional<int64_t> bound_;
  bool resumed_ = false;
  bool has_granted_ = false;
  std::optional<int64_t> end_step_;
  int64_t global_step_ = 0;
  int64_t last_smallest_clock_ = 0;
  BatchPool pool_;
  std::map<uint64_t, Account> accounts_;
  // Incarnations in the order in which they went, including those that have
  // come back.
  std::deque<uint64_t> gone_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_STEP_LEDGER_H_
