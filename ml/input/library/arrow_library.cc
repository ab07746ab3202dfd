#include "ml/input/library/arrow_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr char kLibraryFile[] = "libparasol_arrow.so";
constexpr char kHowToGetIt[] =
    "run deploy/arrow, or share/parasol/arrow/install of an installed Parasol";

// The wheel's libparquet has OpenSSL's functions under their own names, and the
// process has another version: what it calls must be its own. Sanitizers do not
// allow that; the functions are for encrypted files only, which are not read.
#ifdef PARASOL_SANITIZER
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <typename Function>
absl::Status FindFunction(void* library, const std::string& path,
                          const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has no function ", name, "; ", kHowToGetIt));
}

absl::StatusOr<ArrowLibrary> OpenAt(const std::string& path) {
  void* const library = dlopen(path.c_str(), kOpenFlags);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("Apache Arrow, which reads Parquet and Arrow files and "
                     "object stores, can't be opened: ",
                     OneLine(dlerror()), "; ", kHowToGetIt));
  }
  decltype(&parasol_arrow_interface) version = nullptr;
  RETURN_IF_ERROR(
      FindFunction(library, path, "parasol_arrow_interface", version));
  if (version() != PARASOL_ARROW_INTERFACE) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is of another version of Parasol (interface ", version(),
        ", not ", PARASOL_ARROW_INTERFACE, "); ", kHowToGetIt));
  }
  ArrowLibrary found;
  const auto find = [&](const char* name, auto& function) {
    return FindFunction(library, path, name, function);
  };
  RETURN_IF_ERROR(find("parasol_arrow_open", found.open));
  RETURN_IF_ERROR(find("parasol_arrow_close", found.close));
  RETURN_IF_ERROR(find("parasol_arrow_schema", found.schema));
  RETURN_IF_ERROR(find("parasol_arrow_groups", found.groups));
  RETURN_IF_ERROR(find("parasol_arrow_rows", found.rows));
  RETURN_IF_ERROR(find("parasol_arrow_start", found.start));
  RETURN_IF_ERROR(find("parasol_arrow_next", found.next));
  RETURN_IF_ERROR(find("parasol_arrow_store", found.store));
  RETURN_IF_ERROR(find("parasol_arrow_list", found.list));
  RETURN_IF_ERROR(find("parasol_arrow_stat", found.stat));
  RETURN_IF_ERROR(find("parasol_arrow_object", found.object));
  RETURN_IF_ERROR(find("parasol_arrow_object_close", found.object_close));
  RETURN_IF_ERROR(find("parasol_arrow_object_read", found.object_read));
  RETURN_IF_ERROR(find("parasol_arrow_write", found.write));
  RETURN_IF_ERROR(find("parasol_arrow_remove", found.remove));
  found.folder = std::filesystem::path(path).parent_path().string();
  return found;
}

}  // namespace

absl::StatusOr<ArrowLibrary> ArrowLibrary::Open() {
  std::error_code error;
  const std::string named = FromEnvironment("PARASOL_ARROW");
  const std::vector<std::string> folders = ArrowFolders(
      named, std::filesystem::read_symlink("/proc/self/exe", error).string(),
      FromEnvironment("HOME"));
  for (const std::string& folder : folders) {
    const std::string path = absl::StrCat(folder, "/", kLibraryFile);
    if (access(path.c_str(), F_OK) != 0) continue;
    absl::StatusOr<ArrowLibrary> opened = OpenAt(path);
    if (opened.ok() || named.empty()) return opened;
    // What is installed elsewhere changes nothing.
    return absl::FailedPreconditionError(absl::StrCat(
        opened.status().message(), " (PARASOL_ARROW names ", named, ")"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "Parquet and Arrow files and object stores are read by Apache Arrow, "
      "which is not installed: ",
      kHowToGetIt, " (there is no ", kLibraryFile, " in ",
      absl::StrJoin(folders, ", "),
      named.empty() ? "" : ", which PARASOL_ARROW names", ")"));
}

std::vector<std::string> ArrowFolders(absl::string_view named,
                                      absl::string_view program,
                                      absl::string_view home) {
  if (!named.empty()) return {std::string(named)};
  constexpr absl::string_view kInstalled = "lib/parasol/arrow";
  std::vector<std::string> folders;
  // PREFIX/lib/parasol/worker/worker.
  constexpr absl::string_view kPrograms = "/lib/parasol/";
  const size_t programs = program.rfind(kPrograms);
  if (programs != absl::string_view::npos) {
    folders.push_back(
        absl::StrCat(program.substr(0, programs), "/", kInstalled));
  }
  if (!home.empty()) {
    folders.push_back(absl::StrCat(home, "/.local/", kInstalled));
  }
  folders.push_back(absl::StrCat("/usr/local/", kInstalled));
  return folders;
}

}  // namespace parasol
