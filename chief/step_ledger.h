#ifndef PARASOL_CHIEF_STEP_LEDGER_H_
#define PARASOL_CHIEF_STEP_LEDGER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "proto/checkpoint.pb.h"

namespace parasol {

// Who may do which share of the steps up to the end, and how many are done.
// Pure.
//
// Totals per worker incarnation travel, not differences, so a message that is
// lost or sent twice changes nothing. Each step is granted to one incarnation
// at a time: without failures exactly the steps up to the end are done. The
// unfinished steps of an incarnation that is gone are granted again; should it
// have done some of them unheard, the end is overshot by those.
class StepLedger {
 public:
  // Incarnations that are gone are remembered, with what they had done, in
  // case they come back; so many of them.
  static constexpr size_t kMaxGone = 1024;

  // A new run.
  StepLedger() = default;
  // The run that `manifest` is a checkpoint of: a worker that reports more than
  // its progress there is credited with the difference.
  explicit StepLedger(const durable::CheckpointManifest& manifest);

  // The number of steps at which the job ends. Unknown: nothing is granted.
  void SetEnd(int64_t end_step) { end_step_ = end_step; }
  std::optional<int64_t> end_step() const { return end_step_; }

  // The incarnation (again) takes part. In a run that began after it had
  // started, what an unknown one has done was for another run, and not counted.
  void Enter(uint64_t incarnation, int64_t completed);
  // It has completed so many since its start. Smaller totals than before are
  // late messages and ignored.
  void Report(uint64_t incarnation, int64_t completed);
  // Grants up to `want` steps more, fewer towards the end so that `workers`
  // workers share it, and returns the incarnation's total.
  int64_t Grant(uint64_t incarnation, int64_t want, int workers);
  // It is gone: what it was granted and has not completed is free again.
  void Release(uint64_t incarnation);

  int64_t global_step() const { return global_step_; }
  bool IsComplete() const { return end_step_ && global_step_ >= *end_step_; }
  // Of the incarnations that are known, for a checkpoint's manifest.
  std::vector<durable::WorkerProgress> Progress() const;

 private:
  struct Account {
    int64_t completed = 0;
    int64_t granted = 0;  // >= completed
    bool gone = false;
  };

  // Granted and not completed, of all.
  int64_t Outstanding() const;
  void Remember(uint64_t gone_incarnation);

  bool resumed_ = false;
  std::optional<int64_t> end_step_;
  int64_t global_step_ = 0;
  std::map<uint64_t, Account> accounts_;
  // Incarnations in the order in which they went; those that came back are
  // still in it.
  std::deque<uint64_t> gone_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_STEP_LEDGER_H_
