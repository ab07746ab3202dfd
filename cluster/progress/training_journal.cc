#include "cluster/progress/training_journal.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "base/uri/uri_path.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"
#include "storage/remote/remote_directory.h"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

// Six days of one line in ten seconds are a tenth of it.
constexpr size_t kMaxFileBytes = size_t{64} << 20;

Json NumberOrNull(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

// A line's end.
struct LineEnd {
  int64_t step = 0;
  double seconds = 0;
};

// Returns the end of a line of the run up to `newest_step`; nullopt of any
// other.
std::optional<LineEnd> EndOf(absl::string_view line, const std::string& run_id,
                             int64_t newest_step) {
  const absl::StatusOr<Json> json = ParseOrderedJson(line);
  if (!json.ok() || !json->is_object() ||
      json->value("run_id", Json()) != run_id) {
    return std::nullopt;
  }
  const Json step = json->value("global_step", Json());
  const Json seconds = json->value("seconds", Json());
  if (!step.is_number_integer() || step.get<int64_t>() > newest_step ||
      !seconds.is_number()) {
    return std::nullopt;
  }
  return LineEnd{step.get<int64_t>(), seconds.get<double>()};
}

// Returns the losses of named outputs as they are called; none if they are not
// known.
EventFile::Scalars OutputLosses(const ProgressRecord& record,
                                const std::vector<std::string>& outputs) {
  EventFile::Scalars losses;
  if (record.output_losses.size() != outputs.size()) return losses;
  for (size_t i = 0; i < outputs.size(); ++i) {
    losses.emplace_back(absl::StrCat(outputs[i], "/loss"),
                        record.output_losses[i]);
  }
  return losses;
}

EventFile::Scalars ScalarsOf(const ProgressRecord& record,
                             const std::vector<std::string>& outputs) {
  EventFile::Scalars scalars;
  if (record.loss) scalars.emplace_back("loss", *record.loss);
  for (auto& loss : OutputLosses(record, outputs)) {
    scalars.push_back(std::move(loss));
  }
  for (const auto& value : record.values) scalars.push_back(value);
  scalars.emplace_back("learning_rate", record.learning_rate);
  scalars.emplace_back("examples_per_second", record.examples_per_second);
  if (record.staleness) {
    scalars.emplace_back("staleness", static_cast<double>(*record.staleness));
  }
  return scalars;
}

}  // namespace

std::string ToJsonLine(const ProgressRecord& record, const std::string& run_id,
                       const std::vector<std::string>& outputs) {
  Json line;
  line["global_step"] = record.global_step;
  if (record.from_step) line["from_step"] = *record.from_step;
  line["epoch"] = NumberOrNull(record.epoch);
  line["loss"] = NumberOrNull(record.loss);
  for (const auto& [name, loss] : OutputLosses(record, outputs)) {
    line[name] = loss;
  }
  for (const auto& [name, value] : record.values) line[name] = value;
  line["learning_rate"] = record.learning_rate;
  line["examples_per_second"] = record.examples_per_second;
  if (record.staleness) line["staleness"] = *record.staleness;
  line["seconds"] = absl::ToDoubleSeconds(record.elapsed);
  line["run_id"] = run_id;
  return line.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

std::vector<std::string> OutputNames(const job::Model& model) {
  std::vector<std::string> names;
  for (const job::Output& output : model.output()) {
    names.push_back(output.name());
  }
  return names;
}

TrainingJournal::TrainingJournal(Options options)
    : options_(std::move(options)),
      path_(JoinedPath(options_.checkpoint_directory, "training.jsonl")) {
  if (!options_.has_event_files) return;
  events_.emplace(
      JoinedPath(options_.checkpoint_directory, "tensorboard/train"),
      EventFileName(), options_.first_step + 1);
}

TrainingJournal::~TrainingJournal() {
  // The process may end, and files of a store are not there before.
  if (!IsUri(path_)) return;
  const absl::Status synced = SyncAppended(path_, options_.check_owner);
  if (!synced.ok()) LOG(WARNING) << synced.message();
}

absl::StatusOr<std::unique_ptr<TrainingJournal>> TrainingJournal::Open(
    Options options) {
  std::unique_ptr<TrainingJournal> journal(
      new TrainingJournal(std::move(options)));
  RETURN_IF_ERROR(journal->Clean());
  return journal;
}

absl::Status TrainingJournal::Clean() {
  const absl::StatusOr<std::string> before = ReadFile(path_, kMaxFileBytes);
  if (absl::IsNotFound(before.status())) return absl::OkStatus();
  RETURN_IF_ERROR(before.status());
  if (before->size() > kMaxFileBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, ": has more than ", kMaxFileBytes,
                     " bytes; remove its oldest lines"));
  }
  std::string kept;
  for (const absl::string_view line :
       absl::StrSplit(*before, '\n', absl::SkipEmpty())) {
    const std::optional<LineEnd> end =
        EndOf(line, options_.run_id, options_.first_step);
    if (!end) continue;
    elapsed_ = absl::Seconds(end->seconds);
    last_step_ = end->step;
    absl::StrAppend(&kept, line, "\n");
  }
  if (kept == *before) return absl::OkStatus();
  if (IsUri(path_)) return WriteChecked(path_, kept, options_.check_owner);
  return ReplaceFileDurably(path_, kept);
}

bool TrainingJournal::IsSyncDue(absl::Time now) {
  if (std::exchange(has_failed_, false)) next_sync_ = now + pause_;
  return now >= next_sync_;
}

absl::Status TrainingJournal::AddLine(const std::string& line, bool is_synced) {
  if (!is_synced) return AppendLine(path_, line);
  if (!IsUri(path_)) return AppendLineDurably(path_, line);
  // If the store can't be written now, it gets the line later.
  RETURN_IF_ERROR(AppendLine(path_, line));
  const absl::Status synced = SyncAppended(path_, options_.check_owner);
  if (!synced.ok()) LOG(WARNING) << synced.message();
  has_failed_ = !synced.ok();
  return absl::OkStatus();
}

absl::Status TrainingJournal::Add(const ProgressRecord& record,
                                  absl::Time now) {
  const bool is_sync_due = IsSyncDue(now);
  ProgressRecord written = record;
  if (written.from_step == last_step_) written.from_step.reset();
  absl::Status added = AddLine(
      ToJsonLine(written, options_.run_id, options_.outputs), is_sync_due);
  if (added.ok()) last_step_ = record.global_step;
  if (events_) {
    // A store that was just away is not asked again.
    const bool is_synced = is_sync_due && !has_failed_;
    const absl::Status shown = events_->Add(
        record.global_step, ScalarsOf(record, options_.outputs), {}, now,
        is_synced ? EventFile::Durability::kSynced
                  : EventFile::Durability::kWritten);
    added.Update(shown);
  }
  if (!is_sync_due) return added;
  has_failed_ = has_failed_ || !added.ok();
  pause_ = has_failed_ ? std::min(2 * pause_, kMostPause) : kSyncInterval;
  next_sync_ = now + pause_;
  return added;
}

}  // namespace parasol
