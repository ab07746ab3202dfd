#include "chief/evaluation_watch.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/uri/uri_path.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::Duration kFailureLogInterval = absl::Seconds(10);

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
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_),
                                options_.interval)) {
      return;
    }
  }
}

void EvaluationWatch::Look() {
  absl::MutexLock lock(&look_mu_);
  if (has_stopped_) return;
  const absl::StatusOr<uint64_t> size =
      FileSize(JoinedPath(options_.checkpoint_directory, "evaluations.jsonl"));
  if (absl::IsNotFound(size.status())) return;
  if (size.ok() && size_ == *size) return;
  absl::StatusOr<std::vector<Evaluation>> evaluations =
      size.ok()
          ? ReadEvaluations(options_.checkpoint_directory, options_.run_id,
                            [this](const Evaluation& evaluation) {
                              return options_.history.Has(evaluation);
                            })
          : size.status();
  if (!evaluations.ok()) {
    LOG_EVERY(WARNING, kFailureLogInterval)
        << "evaluations can't be read, so nothing goes by them: "
        << evaluations.status().message();
    return;
  }
  size_ = *size;
  options_.on_change(*evaluations);
}

}  // namespace parasol
