#include "coordinator/steps/epoch_losses.h"

#include <algorithm>
#include <utility>

namespace parasol {
namespace {

void AddTo(EpochLosses::Sums& total, const EpochLosses::Sums& sums) {
  total.loss_sum += sums.loss_sum;
  total.examples += sums.examples;
  if (total.output_loss_sums.size() < sums.output_loss_sums.size()) {
    total.output_loss_sums.resize(sums.output_loss_sums.size());
  }
  for (size_t i = 0; i < sums.output_loss_sums.size(); ++i) {
    total.output_loss_sums[i] += sums.output_loss_sums[i];
  }
}

}  // namespace

void EpochLosses::Add(int64_t epoch, const Sums& sums) {
  if (IsOpen(epoch)) AddTo(sums_[epoch], sums);
}

void EpochLosses::Begin(const CurvePoints& points) {
  if (std::exchange(has_begun_, true)) return;
  open_ = next_ = points.PartOf(first_step_);
  next_begin_ = first_step_;
  next_end_ = points.NextAfter(first_step_);
  if (first_step_ > 0 && !points.IsPoint(first_step_)) partial_ = next_;
}

void EpochLosses::SeeFrom(int64_t step) {
  seen_from_ = step;
  for (size_t i = ends_.size() - open_ends_; i < ends_.size(); ++i) {
    ends_[i].seen_from = std::min(step, ends_[i].step);
  }
}

void EpochLosses::Reach(int64_t global_step, const CurvePoints& points,
                        std::optional<int64_t> examples_per_epoch,
                        absl::Time now) {
  if (std::exchange(has_missed_, false)) SeeFrom(global_step);
  if (!points.are_known()) return;
  Begin(points);
  for (; next_end_ <= global_step; ++next_) {
    ends_.push_back({next_, next_end_, next_end_ - next_begin_, now,
                     std::min(seen_from_, next_end_)});
    next_begin_ = next_end_;
    next_end_ = points.NextAfter(next_end_);
    ++open_ends_;
    if (ends_.size() <= kMaxEnds) continue;
    // The sums of an epoch that is not reported yet join the next epoch's.
    if (ends_.size() == open_ends_) {
      if (IsReported(ends_.front(), points, examples_per_epoch)) {
        Complete(ends_.front());
      } else {
        --open_ends_;
      }
    }
    ends_.pop_front();
  }
  for (size_t i = ends_.size() - open_ends_; i < ends_.size(); ++i) {
    const bool is_late = now >= ends_[i].time + kReportLimit;
    if (!is_late && !IsReported(ends_[i], points, examples_per_epoch)) break;
    Complete(ends_[i]);
  }
  Sums total = complete_;
  auto sums = sums_.begin();
  for (size_t i = ends_.size() - open_ends_; i < ends_.size(); ++i) {
    for (; sums != sums_.end() && sums->first <= ends_[i].epoch; ++sums) {
      AddTo(total, sums->second);
    }
    ends_[i].sums = total;
  }
}

EpochLosses::Sums EpochLosses::Total() const {
  Sums total = complete_;
  for (const auto& [epoch, sums] : sums_) AddTo(total, sums);
  return total;
}

bool EpochLosses::IsReported(const End& end, const CurvePoints& points,
                             std::optional<int64_t> examples_per_epoch) const {
  const auto sums = sums_.find(end.epoch);
  return examples_per_epoch && end.steps == points.steps_per_epoch() &&
         end.epoch != partial_ && sums != sums_.end() &&
         sums->second.examples >= *examples_per_epoch;
}

void EpochLosses::Complete(End& end) {
  while (!sums_.empty() && sums_.begin()->first <= end.epoch) {
    AddTo(complete_, sums_.begin()->second);
    sums_.erase(sums_.begin());
  }
  open_ = end.epoch + 1;
  end.sums = complete_;
  end.is_complete = true;
  --open_ends_;
}

}  // namespace parasol
