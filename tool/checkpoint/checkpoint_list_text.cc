#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "nlohmann/json.hpp"
#include "tool/checkpoint/aligned_text.h"
#include "tool/checkpoint/checkpoint_list.h"

namespace parasol {
namespace {

using ListJson = nlohmann::ordered_json;

std::string AgeOf(const CheckpointSummary& checkpoint, absl::Time now) {
  if (checkpoint.written == absl::InfinitePast()) return "-";
  return absl::FormatDuration(
      absl::Trunc(now - checkpoint.written, absl::Seconds(1)));
}

std::string NotesOf(const CheckpointSummary& checkpoint) {
  std::vector<std::string> notes;
  if (!checkpoint.damage.empty()) notes.push_back("damaged");
  if (!checkpoint.unreadable.ok()) notes.push_back("unreadable");
  if (checkpoint.is_final) notes.push_back("final");
  if (checkpoint.is_best) notes.push_back("best");
  if (checkpoint.increments > 0) {
    notes.push_back(absl::StrCat("increment ", checkpoint.increments));
  }
  if (checkpoint.journals > 0) {
    notes.push_back(absl::StrCat("journals of ", checkpoint.journals));
  }
  return notes.empty() ? "whole" : absl::StrJoin(notes, ", ");
}

ListJson JsonOf(const CheckpointSummary& checkpoint, absl::Time now) {
  ListJson json = {{"path", checkpoint.path},
                   {"global_step", checkpoint.step},
                   {"written", nullptr},
                   {"age_seconds", nullptr},
                   {"bytes", checkpoint.bytes},
                   {"files", checkpoint.files},
                   {"increments", checkpoint.increments},
                   {"final", checkpoint.is_final},
                   {"best", checkpoint.is_best},
                   {"journals", checkpoint.journals},
                   {"damage", checkpoint.damage},
                   {"unreadable", nullptr}};
  if (!checkpoint.unreadable.ok()) {
    json["unreadable"] = std::string(checkpoint.unreadable.message());
  }
  if (checkpoint.written > absl::InfinitePast()) {
    json["written"] = absl::FormatTime(checkpoint.written, absl::UTCTimeZone());
    json["age_seconds"] = absl::ToDoubleSeconds(now - checkpoint.written);
  }
  return json;
}

}  // namespace

std::string ToText(const CheckpointList& list, absl::Time now) {
  if (list.checkpoints.empty()) {
    return absl::StrCat("no checkpoints in ", list.directory, "\n");
  }
  std::vector<std::vector<std::string>> rows = {
      {"step", "age", "bytes", "files", "state"}};
  std::string faults;
  for (const CheckpointSummary& checkpoint : list.checkpoints) {
    rows.push_back({absl::StrCat(checkpoint.step), AgeOf(checkpoint, now),
                    absl::StrCat(checkpoint.bytes),
                    absl::StrCat(checkpoint.files), NotesOf(checkpoint)});
    for (const std::string& found : checkpoint.damage) {
      absl::StrAppend(&faults, OneLine(found), "\n");
    }
    if (!checkpoint.unreadable.ok()) {
      absl::StrAppend(&faults, OneLine(checkpoint.unreadable.message()), "\n");
    }
  }
  return absl::StrCat(AlignedText(rows), faults);
}

std::string ToJson(const CheckpointList& list, absl::Time now) {
  ListJson json = {{"directory", list.directory},
                   {"checkpoints", ListJson::array()}};
  for (const CheckpointSummary& checkpoint : list.checkpoints) {
    json["checkpoints"].push_back(JsonOf(checkpoint, now));
  }
  return absl::StrCat(
      json.dump(2, ' ', false, ListJson::error_handler_t::replace), "\n");
}

}  // namespace parasol
