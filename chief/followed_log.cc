#include "chief/followed_log.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "base/uri/uri_path.h"
#include "chief/grown_files.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

std::string LineOf(const durable::FollowedFile& file,
                   const std::string& run_id) {
  const Json line = {
      {"file", file.path()},       {"bytes", file.bytes()},
      {"records", file.records()}, {"first_batch", file.first_batch()},
      {"batches", file.batches()}, {"run_id", run_id}};
  return line.dump();
}

// Returns the file of a line of the run; nullopt of any other.
std::optional<durable::FollowedFile> FileOf(absl::string_view line,
                                            const std::string& run_id) {
  const absl::StatusOr<Json> json = ParseOrderedJson(line);
  if (!json.ok() || !json->is_object() ||
      json->value("run_id", Json()) != run_id) {
    return std::nullopt;
  }
  const Json path = json->value("file", Json());
  if (!path.is_string()) return std::nullopt;
  durable::FollowedFile file;
  file.set_path(path.get<std::string>());
  const auto number = [&json](const char* name) {
    const Json value = json->value(name, Json());
    return value.is_number_integer() ? value.get<int64_t>() : int64_t{-1};
  };
  file.set_bytes(number("bytes"));
  file.set_records(number("records"));
  file.set_first_batch(number("first_batch"));
  file.set_batches(number("batches"));
  return file;
}

}  // namespace

absl::StatusOr<FollowedLog> FollowedLog::Open(const std::string& directory,
                                              const std::string& run_id,
                                              FollowedFiles& files,
                                              const FollowedLogLimits& limits) {
  FollowedLog log(JoinedPath(directory, "followed.jsonl"), run_id, limits);
  ASSIGN_OR_RETURN(const std::string before, log.Read());
  std::vector<absl::string_view> kept;
  Known& known = log.known_;
  bool begins_run = false;
  for (const absl::string_view line :
       absl::StrSplit(before, '\n', absl::SkipEmpty())) {
    const std::optional<durable::FollowedFile> file = FileOf(line, run_id);
    if (!file) continue;
    if (kept.empty()) begins_run = file->first_batch() == 0;
    if (file->path() > files.last_path()) {
      const absl::Status added = files.Add(*file);
      if (!added.ok()) {
        LOG(WARNING) << log.path_
                     << ": leaves out what can't follow: " << added.message();
        break;
      }
    }
    kept.push_back(line);
    known.paths.push_back(file->path());
    known.newest.push_back(*file);
    if (known.newest.size() > GrownFiles::kWatched) known.newest.pop_front();
  }
  RETURN_IF_ERROR(log.Keep(kept, before));
  // Older lines may be gone: of a log that was cut, or moved away.
  known.are_all = begins_run && kept.size() < limits.lines;
  known.paths.erase(known.paths.begin(), known.paths.end() - log.lines_);
  return log;
}

absl::Status FollowedLog::Append(const durable::FollowedFile& file,
                                 MayWrite may_write) {
  if (lines_ >= 2 * limits_.lines) {
    ASSIGN_OR_RETURN(const std::string before, Read());
    const std::vector<absl::string_view> lines =
        absl::StrSplit(before, '\n', absl::SkipEmpty());
    RETURN_IF_ERROR(Keep(lines, before));
  }
  const std::string line = LineOf(file, run_id_);
  // The name of a new file is to survive, too.
  RETURN_IF_ERROR(is_there_
                      ? AppendLineDurably(path_, line, may_write)
                      : ReplaceFileDurably(path_, absl::StrCat(line, "\n")));
  is_there_ = true;
  ++lines_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> FollowedLog::Read() {
  absl::StatusOr<std::string> text = ReadFile(path_, limits_.bytes);
  is_there_ = !absl::IsNotFound(text.status());
  if (!is_there_) return "";
  if (!text.ok() || text->size() <= limits_.bytes) return text;
  return absl::InvalidArgumentError(absl::StrCat(
      path_, " has more than ", limits_.bytes,
      " bytes, which no chief writes: move it away if it is another program's, "
      "or take another checkpoint directory"));
}

absl::Status FollowedLog::Keep(absl::Span<const absl::string_view> lines,
                               const std::string& before) {
  if (lines.size() > limits_.lines) {
    lines.remove_prefix(lines.size() - limits_.lines);
  }
  const std::string text =
      lines.empty() ? "" : absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
  if (text != before) {
    RETURN_IF_ERROR(ReplaceFileDurably(path_, text));
  }
  lines_ = lines.size();
  return absl::OkStatus();
}

}  // namespace parasol
