#include "coordinator/steps/followed_data.h"

#include "base/status_macros.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {

absl::Status FollowedData::Take(const FollowedLook& look, absl::Time now) {
  for (const durable::FollowedFile& file : look.files) {
    RETURN_IF_ERROR(files_.Add(file));
    ++taken_;
    newest_at_ = now;
  }
  look_ = look;
  look_.files.clear();
  has_looked_ = true;
  return absl::OkStatus();
}

void FollowedData::Observe(const StepPlan& plan, bool is_training,
                           absl::Time now) {
  const int64_t step = plan.global_step();
  const bool has_none =
      is_training && has_looked_ && step >= files_.batches() && look_.left == 0;
  if (!has_none) {
    waits_since_.reset();
  } else if (!waits_since_) {
    waits_since_ = now;
  }
  const std::vector<durable::BatchSpan> unfinished = plan.Unfinished();
  int64_t begun = step;
  for (const durable::BatchSpan& span : unfinished) begun += span.count();
  files_.Forget(unfinished.empty() ? begun : unfinished.front().first());
}

void FollowedData::AddTo(wire::JobStatus& status, int64_t global_step,
                         absl::Time now) const {
  wire::FollowedData& data = *status.mutable_followed();
  data.set_pattern(pattern_);
  data.set_files(taken_);
  data.set_newest(files_.last_path());
  if (newest_at_) *data.mutable_newest_age() = ToProto(now - *newest_at_);
  const int64_t left = files_.batches() - global_step;
  data.set_waiting_records(files_.RecordsOfLast(left) + look_.left_records);
  data.set_waiting_files(look_.left);
  if (waits_since_) *data.mutable_waited() = ToProto(now - *waits_since_);
  data.set_skipped_files(look_.skipped);
  data.set_skipped(look_.skipped_why);
  data.set_trouble(look_.trouble);
}

}  // namespace parasol
