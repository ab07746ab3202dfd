#include "cluster/cluster_spec/compute_flags.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/web_url.h"
#include "ml/device/device.h"
#include "ml/input/object/object_uri.h"

namespace parasol {

absl::Status CheckComputeFlags(const ComputeFlags& flags) {
  RETURN_IF_ERROR(Device::CheckName(flags.device))
      << "--device=" << flags.device;
  RETURN_IF_ERROR(Device::CheckThreads(flags.threads))
      << "--threads=" << flags.threads;
  if (flags.data_dir.empty()) return absl::OkStatus();
  return CheckDataDirFlag(flags.data_dir);
}

absl::Status CheckDataDirFlag(const std::string& data_dir) {
  if (!IsUri(data_dir)) return CheckDirectoryFlag("data_dir", data_dir);
  RETURN_IF_ERROR(IsWebUrl(data_dir) ? CheckWebFolder(data_dir)
                                     : ParseObjectUri(data_dir).status())
      << "--data_dir";
  return absl::OkStatus();
}

absl::Status CheckDirectoryFlag(absl::string_view flag,
                                const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status found =
      std::filesystem::status(path, error);
  if (std::filesystem::is_directory(found)) return absl::OkStatus();
  if (std::filesystem::exists(found)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, "=", path,
                     ": is a file; name the directory that it is in"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", path, ": ",
                   error ? error.message() : "No such file or directory",
                   "; name a directory that this task can read"));
}

}  // namespace parasol
