#include "cluster/job/check_job.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/faults.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/override.h"
#include "cluster/job/validate.h"

namespace parasol {
namespace {

// "model.input[0]" of an error that begins with the path of a field in it.
std::string InputOf(absl::string_view message) {
  return std::string(message.substr(0, message.find(']') + 1));
}

}  // namespace

absl::StatusOr<CheckedJob> CheckedJob::Read(
    const std::string& path, absl::Span<const std::string> overrides,
    const std::string& data_dir) {
  CheckedJob checked;
  checked.path_ = path;
  ASSIGN_OR_RETURN(checked.text_, ReadJobFile(path));
  if (checked.text_.size() > kMaxJobFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": longer than the limit of ", kMaxJobFileBytes, " bytes"));
  }
  checked.parsed_ = JobText::Parse(checked.text_);
  for (const TextFault& fault : checked.parsed_.faults()) {
    checked.found_.push_back({fault.place, fault.message});
  }
  checked.job_ = checked.parsed_.job();
  if (!checked.job_.has_value()) return checked;
  for (const std::string& override : overrides) {
    const absl::Status status = ApplyOverride(*checked.job_, override);
    if (!status.ok()) {
      checked.found_.push_back({std::nullopt, std::string(status.message())});
    }
  }
  Faults of_patterns;
  checked.patterns_ =
      ColumnPatterns::Resolve(data_dir, *checked.job_, of_patterns);
  for (const absl::Status& fault : of_patterns.all()) {
    checked.AddFileFault(fault.message());
    checked.faulty_inputs_.push_back(InputOf(fault.message()));
  }
  FillDefaults(*checked.job_);
  Faults faults;
  checked.graph_ = Validate(*checked.job_, faults);
  for (const absl::Status& fault : faults.all()) {
    checked.AddFault(fault.message());
  }
  // An input lacks columns.
  if (!of_patterns.empty()) checked.graph_.reset();
  return checked;
}

void CheckedJob::AddFault(absl::string_view message) {
  for (const std::string& input : faulty_inputs_) {
    if (absl::StartsWith(message, input)) return;
  }
  AddFileFault(patterns_.InFile(message));
}

void CheckedJob::AddFileFault(absl::string_view message) {
  if (parsed_.IsAtFault(message)) return;
  const std::optional<TextPlace> place = parsed_.PlaceOf(message);
  const bool is_known =
      std::any_of(found_.begin(), found_.end(),
                  [message](const Found& f) { return f.message == message; });
  if (!is_known) found_.push_back({place, std::string(message)});
}

std::vector<JobFault> CheckedJob::faults() const {
  std::vector<Found> sorted = found_;
  const auto line_of = [](const Found& fault) {
    return fault.place.has_value() ? fault.place->line
                                   : std::numeric_limits<int>::max();
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [line_of](const Found& a, const Found& b) {
                     return line_of(a) < line_of(b);
                   });
  std::vector<JobFault> faults;
  for (Found& found : sorted) {
    JobFault& fault = faults.emplace_back();
    fault.place = path_;
    if (found.place.has_value()) {
      absl::StrAppend(&fault.place, ":", found.place->line, ":",
                      found.place->column);
    }
    fault.message = std::move(found.message);
  }
  return faults;
}

}  // namespace parasol
