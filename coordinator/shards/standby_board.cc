#include "coordinator/shards/standby_board.h"

namespace parasol {

StandbyBoard::StandbyBoard(std::vector<int> places, const Kept& recorded) {
  for (const int place : places) {
    const auto kept = recorded.find(place);
    wanted_[place] = kept == recorded.end() ? kSaved : kept->second;
  }
  recorded_ = wanted_;
}

int StandbyBoard::HostOf(int ps_index) const {
  const auto next = wanted_.upper_bound(ps_index);
  return next == wanted_.end() ? wanted_.begin()->first : next->first;
}

uint64_t StandbyBoard::KeptFor(int ps_index) const {
  const auto kept = wanted_.find(ps_index);
  return kept == wanted_.end() ? kSaved : kept->second;
}

void StandbyBoard::Hear(int ps_index, const wire::StandbyReport& report) {
  const auto found = wanted_.find(ps_index);
  // A shard that stays acknowledges nothing.
  if (found == wanted_.end() || is_saved_) return;
  uint64_t& wanted = found->second;
  const uint64_t number = report.place().number();
  const bool has_standby = !report.place().task().empty();
  std::set<uint64_t>& given_up = given_up_[ps_index];
  if (has_standby) {
    const bool is_real = number != kSaved && number != kAlone;
    if (is_real && !given_up.contains(number)) wanted = number;
    return;
  }
  // A report that does not name the standby that is kept is older than it.
  const bool keeps_one = wanted != kSaved && wanted != kAlone;
  if (keeps_one && wanted != number) return;
  given_up.insert(number);
  wanted = kAlone;
}

std::optional<uint64_t> StandbyBoard::AnswerTo(
    int ps_index, const wire::StandbyReport& report) const {
  const auto wanted = wanted_.find(ps_index);
  if (wanted == wanted_.end() || is_saved_) return std::nullopt;
  const bool is_recorded = recorded_.at(ps_index) == wanted->second;
  const bool has_standby = !report.place().task().empty();
  const uint64_t asked = has_standby ? report.place().number() : kAlone;
  if (!is_recorded || asked != wanted->second) return std::nullopt;
  return has_standby ? asked : 0;
}

void StandbyBoard::Saved() {
  is_saved_ = true;
  for (auto& [place, kept] : wanted_) kept = kSaved;
}

std::optional<StandbyBoard::Kept> StandbyBoard::ToRecord() const {
  if (wanted_ == recorded_) return std::nullopt;
  return wanted_;
}

}  // namespace parasol
