#include "chief/evaluation_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::Duration kFailureLogInterval = absl::Seconds(10);

// A checkpoint that was made again has the step of another one, but is not
// evaluated in the same time.
bool IsSame(const Evaluation& a, const Evaluation& b) {
  const bool have_same_loss =
      a.loss == b.loss || (std::isnan(a.loss) && std::isnan(b.loss));
  return a.global_step == b.global_step && a.took == b.took && have_same_loss &&
         a.checkpoint == b.checkpoint;
}

}  // namespace

EvaluationWatch::EvaluationWatch(Options options, Clock& clock)
    : options_(std::move(options)), clock_(clock), thread_([this] { Run(); }) {}

void EvaluationWatch::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
  absl::MutexLock lock(&look_mu_);
  has_stopped_ = true;
}

void EvaluationWatch::Run() {
  while (true) {
    Look();
    absl::MutexLock lock(&mu_);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_), kInterval)) {
      return;
    }
  }
}

void EvaluationWatch::Look() {
  absl::MutexLock lock(&look_mu_);
  if (has_stopped_) return;
  const absl::StatusOr<uint64_t> size = FileSize(
      absl::StrCat(options_.checkpoint_directory, "/evaluations.jsonl"));
  if (absl::IsNotFound(size.status())) return;
  if (size.ok() && size_ == *size) return;
  absl::StatusOr<std::vector<Evaluation>> evaluations =
      size.ok()
          ? ReadEvaluations(options_.checkpoint_directory, options_.run_id)
          : size.status();
  if (!evaluations.ok()) {
    LOG_EVERY(WARNING, kFailureLogInterval)
        << "evaluations can't be read, so nothing goes by them: "
        << evaluations.status().message();
    return;
  }
  size_ = *size;
  std::erase_if(*evaluations, [this](const Evaluation& evaluation) {
    return std::any_of(
        options_.dropped.begin(), options_.dropped.end(),
        [&](const Evaluation& dropped) { return IsSame(dropped, evaluation); });
  });
  options_.on_change(*evaluations);
}

}  // namespace parasol
