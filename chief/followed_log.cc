#include "chief/followed_log.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = size_t{256} << 20;

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
                                              FollowedFiles& files) {
  FollowedLog log(absl::StrCat(directory, "/followed.jsonl"), run_id);
  const absl::StatusOr<std::string> before = ReadFile(log.path_, kMaxFileBytes);
  if (absl::IsNotFound(before.status())) return log;
  RETURN_IF_ERROR(before.status());
  std::deque<absl::string_view> kept;
  for (const absl::string_view line :
       absl::StrSplit(*before, '\n', absl::SkipEmpty())) {
    const std::optional<durable::FollowedFile> file = FileOf(line, run_id);
    if (!file) continue;
    if (file->path() > files.last_path()) {
      const absl::Status added = files.Add(*file);
      if (!added.ok()) {
        LOG(WARNING) << log.path_
                     << ": leaves out what can't follow: " << added.message();
        break;
      }
    }
    kept.push_back(line);
    if (kept.size() > kMaxLines) kept.pop_front();
  }
  const std::string lines =
      kept.empty() ? "" : absl::StrCat(absl::StrJoin(kept, "\n"), "\n");
  if (lines == *before) return log;
  RETURN_IF_ERROR(ReplaceFileDurably(log.path_, lines));
  return log;
}

absl::Status FollowedLog::Append(const durable::FollowedFile& file) {
  return AppendLineDurably(path_, LineOf(file, run_id_));
}

}  // namespace parasol
