#include "ml/input/file/local_files.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_uri.h"

namespace parasol {

absl::Status BringFiles(absl::Span<const std::string> paths) {
  std::vector<std::string> uris;
  for (const std::string& path : paths) {
    if (IsUri(path)) uris.push_back(path);
  }
  return uris.empty() ? absl::OkStatus() : ObjectCache::OfProcess().Bring(uris);
}

absl::StatusOr<std::string> BroughtFile(const std::string& path) {
  if (!IsUri(path)) return path;
  RETURN_IF_ERROR(BringFiles({path}));
  const std::optional<std::string> copy = ObjectCache::OfProcess().Find(path);
  if (copy.has_value()) return *copy;
  return absl::UnavailableError(absl::StrCat(
      OneLine(path), ": its copy was removed while it was opened"));
}

}  // namespace parasol
