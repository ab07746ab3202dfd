#ifndef PARASOL_COORDINATOR_PAGE_JOB_PAGE_H_
#define PARASOL_COORDINATOR_PAGE_JOB_PAGE_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/page_server.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "proto/chief.pb.h"

namespace parasol {

// The page about a job: for people at /, and what it is made of as JSON at
// /status.json. It shows the last status that it was given, and how old that
// is, so it works while the chief hangs. Thread-safe; its lock is held for a
// copy alone.
class JobPage {
 public:
  // A curve has between half as many points and as many.
  static constexpr size_t kMaxPoints = 512;
  static constexpr size_t kMaxEvaluations = 512;
  static constexpr size_t kMaxNotes = 40;
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  // `clock` must outlive the page.
  explicit JobPage(Clock& clock) : clock_(clock) {}

  // Takes the job's status.
  void Show(wire::JobStatus status) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes all evaluations of the run.
  void Evaluated(const std::vector<Evaluation>& evaluations)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a line of the chief's log about the job.
  void Note(absl::string_view line, bool is_warning) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns what is at `path`: a page, or status 404.
  PageServer::Page At(absl::string_view path) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Point {
    absl::Time time;
    int64_t step = 0;
    double loss = 0;
    double examples_per_second = 0;
  };
  struct Line {
    absl::Time time;
    std::string text;
    bool is_warning = false;
  };
  // Contents of the page; copied to be written out.
  struct Shown {
    std::shared_ptr<const wire::JobStatus> status = {};
    absl::Time at;
    std::vector<Point> curve = {};
    absl::Duration interval = kInterval;  // time between two points
    std::vector<Evaluation> evaluations = {};
    std::deque<Line> notes = {};
  };

  // Adds the point of a status to the curves, if it is time for one.
  void ShowCurve(const wire::JobStatus& status) ABSL_LOCKS_EXCLUDED(mu_);
  std::string Json() const ABSL_LOCKS_EXCLUDED(mu_);

  Clock& clock_;
  mutable absl::Mutex mu_;
  Shown shown_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_PAGE_JOB_PAGE_H_
