#include "storage/checkpoint_name.h"

#include <cstddef>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/uri/uri_path.h"

namespace parasol {
namespace {

constexpr absl::string_view kPrefix = "ckpt-";
constexpr size_t kStepDigits = 12;

}  // namespace

bool IsPlainName(absl::string_view name) {
  // A '?' would begin the options of a URI.
  constexpr absl::string_view kSeparators("/?\0", 3);
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(kSeparators) == absl::string_view::npos;
}

std::optional<ListedName> ParseListedName(absl::string_view name) {
  ListedName listed = {.step = std::nullopt, .file = name};
  const size_t slash = name.find('/');
  if (slash != absl::string_view::npos) {
    listed.step = StepOfName(name.substr(0, slash));
    listed.file = name.substr(slash + 1);
    if (!listed.step.has_value()) return std::nullopt;
  }
  if (!IsPlainName(listed.file)) return std::nullopt;
  return listed;
}

std::string FileNameOf(absl::string_view listed) {
  return std::string(listed.substr(listed.rfind('/') + 1));
}

std::string ListedPath(absl::string_view directory, absl::string_view name) {
  if (name.find('/') == absl::string_view::npos) {
    return JoinedPath(directory, name);
  }
  if (IsUri(directory)) {
    // A '/' may be behind its name, and options behind that.
    const std::string checkpoint = ParentPath(JoinedPath(directory, "x"));
    return JoinedPath(ParentPath(checkpoint), name);
  }
  absl::string_view checkpoint = directory;
  while (absl::ConsumeSuffix(&checkpoint, "/")) {
  }
  // A directory on a disk may have another name, be a link, or be in "/".
  std::error_code error;
  const bool is_in_root =
      !checkpoint.empty() && checkpoint.rfind('/') == size_t{0};
  if (!StepOfName(LastName(checkpoint)).has_value() || is_in_root ||
      std::filesystem::is_symlink(std::string(checkpoint), error)) {
    return absl::StrCat(directory, "/../", name);
  }
  return JoinedPath(ParentPath(checkpoint), name);
}

std::string StepDigits(int64_t step) {
  return absl::StrFormat("%0*d", static_cast<int>(kStepDigits), step);
}

std::string CheckpointName(int64_t step) {
  return absl::StrCat(kPrefix, StepDigits(step));
}

std::optional<int64_t> StepOfName(absl::string_view name) {
  int64_t step = 0;
  if (!absl::ConsumePrefix(&name, kPrefix) || name.size() < kStepDigits ||
      !absl::SimpleAtoi(name, &step) || step < 0 || StepDigits(step) != name) {
    return std::nullopt;
  }
  return step;
}

absl::Status CheckStepOfName(absl::string_view directory, int64_t global_step) {
  const std::optional<int64_t> step =
      StepOfName(LastName(absl::StripSuffix(directory, "/")));
  if (!step || *step == global_step) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      directory, ": its manifest is of step ", global_step,
      ", not of the step that its name says; was it renamed or copied?"));
}

}  // namespace parasol
