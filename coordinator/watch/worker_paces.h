#ifndef PARASOL_COORDINATOR_WATCH_WORKER_PACES_H_
#define PARASOL_COORDINATOR_WATCH_WORKER_PACES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace parasol {

struct PaceLimits {
  // A worker is slow if it needs more than `slow` times as long for a batch as
  // the median of the others, and is so until that is `quick` times at most.
  double slow = 2;
  double quick = 1.5;
  // Share of a worker's time below which a delay holds up nobody.
  double min_loss = .2;
  // Times over which a pace is measured: the longer one decides, and the
  // shorter one shows whether a slow worker still is slow.
  absl::Duration window = absl::Seconds(8);
  absl::Duration recent = absl::Seconds(3);
  // Time for which a worker has to be slow, or quick again, to be called so.
  absl::Duration hold = absl::Seconds(4);
  // A worker that has just started is not measured before its second batch, or
  // for this long.
  absl::Duration warm_up = absl::Seconds(15);
  // Time after which a live worker that is not heard is slow: its heartbeats
  // come every second.
  absl::Duration silence = absl::Seconds(5);
};

// The paces of the workers, from the totals that they report, and which of them
// are slow. Pure.
//
// A worker's own time for a batch is compared with the lower median of the
// others': of two workers the other one's. Workers that are not in step wait
// for nobody, but perhaps for a step to be granted: all other time is their
// own. While all wait for a ps, nobody is slower than the others.
//
// Workers in step wait for each other: a worker's own time is then what it
// waits for batches and computes. A worker that stands still in its waits also
// sends and receives late. Its standstill costs a step as much more of the time
// for messages as the worker runs too rarely, and only that is its own: on a
// machine with too much to do all that wait for a slow worker stand still, and
// hold up nobody. The time for messages is the least in which a worker was
// awake in its waits.
class WorkerPaces {
 public:
  static constexpr absl::Duration kInterval = absl::Milliseconds(500);
  static constexpr size_t kMaxSamples = 256;

  WorkerPaces(const PaceLimits& limits, bool in_step)
      : limits_(limits), in_step_(in_step) {}

  // Takes the totals of the process at a worker's place. Ignores totals that
  // make no sense or are older than the last ones.
  void Report(int worker, uint64_t incarnation,
              const wire::WorkerTotals& totals, absl::Time now);
  // Forgets a worker that is gone.
  void Forget(int worker) { workers_.erase(worker); }
  // Measures anew from now on: what workers wait for is not theirs to mend.
  void StartOver();
  // Forgets who is slow: nobody trains.
  void Clear() { workers_.clear(); }

  // Looks at who is slow; at most every kInterval.
  void Judge(absl::Time now);

  // Adds a worker's pace, and why it is slow, if it is. `silence`: since it was
  // heard.
  void Describe(int worker, absl::Duration silence,
                wire::TaskStatus& status) const;

 private:
  // Totals of a worker at a time, in seconds.
  struct Sample {
    absl::Time time;
    double steps = 0;
    double batches = 0;
    double own = 0;
    std::vector<double> parts = {};  // order: wire::StepTimes
  };
  struct Worker {
    uint64_t incarnation = 0;
    absl::Time since;
    bool is_warm = false;
    std::deque<Sample> samples = {};
    // Time since which it has been other than `is_slow` says.
    std::optional<absl::Time> changing = std::nullopt;
    bool is_slow = false;
    wire::WorkerPace pace = {};
    std::string why = {};
  };

  // Returns the own time between two samples.
  double Own(const Sample& base, const Sample& last) const;
  // Returns the least time of a step in which a worker was awake in its waits;
  // nullopt if none has made a step.
  std::optional<double> Messages() const;
  Sample SampleOf(const wire::WorkerTotals& totals, absl::Time now) const;
  // Returns the newest sample that is `window` older than the last one and has
  // `batches` less; the oldest one if there is none.
  static const Sample& Base(const Worker& worker, absl::Duration window,
                            double batches);
  void Prune(Worker& worker) const;
  // Returns the time of a batch; nullopt if none is known.
  std::optional<double> Typical(const Worker& worker) const;
  bool IsMeasured(const Worker& worker) const;
  bool IsSlow(const Worker& worker, double median) const;
  void Measure(Worker& worker, std::optional<double> median, absl::Time now);
  std::string Why(const Worker& worker, double median) const;

  const PaceLimits limits_;
  const bool in_step_;
  absl::Time next_ = absl::InfinitePast();
  std::optional<double> messages_ = std::nullopt;  // Messages() when judged
  std::map<int, Worker> workers_;                  // key: index
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_WATCH_WORKER_PACES_H_
