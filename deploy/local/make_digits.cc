#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "deploy/local/drawn_digits.h"
#include "ml/input/format/idx_writer.h"

ABSL_FLAG(std::string, out, "", "The directory to write to; made if missing.");
ABSL_FLAG(int32_t, train, 12000, "How many digits to train on.");
ABSL_FLAG(int32_t, test, 2000, "How many others to evaluate with.");
ABSL_FLAG(uint64_t, seed, 1, "Another seed draws other digits.");

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] =
    "Draws digits and writes them as MNIST's four files, so that a job that "
    "reads MNIST can be tried where there is no MNIST.\n"
    "\n"
    "  make_digits --out=DIR [--train=12000] [--test=2000] [--seed=1]\n"
    "\n"
    "Exit code: 0 done; 2 bad flags; 1 anything else.";

// 500 bytes of disk and 1600 of memory each.
constexpr int32_t kMaxDigits = 1000000;

absl::Status CheckFlags() {
  if (absl::GetFlag(FLAGS_out).empty()) {
    return absl::InvalidArgumentError("--out is not set");
  }
  for (const auto& [name, value] :
       {std::pair("--train", absl::GetFlag(FLAGS_train)),
        std::pair("--test", absl::GetFlag(FLAGS_test))}) {
    if (value < 1 || value > kMaxDigits) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " is ", value, "; it must be in [1, ", kMaxDigits, "]"));
    }
  }
  return absl::OkStatus();
}

// The file has its name once all of its bytes are there.
absl::Status WriteAtomically(const fs::path& path, absl::string_view bytes) {
  const fs::path fresh = absl::StrCat(path.string(), ".tmp", getpid());
  errno = 0;
  std::ofstream file(fresh, std::ios::binary);
  file << bytes;
  file.close();
  std::error_code error;
  if (!file) {
    const int code = errno != 0 ? errno : EIO;
    fs::remove(fresh, error);
    return absl::ErrnoToStatus(code, fresh.string());
  }
  fs::rename(fresh, path, error);
  if (error) return absl::ErrnoToStatus(error.value(), path.string());
  return absl::OkStatus();
}

absl::Status WriteSet(const fs::path& directory, absl::string_view prefix,
                      const LabelledImages& set) {
  RETURN_IF_ERROR(
      WriteAtomically(directory / absl::StrCat(prefix, "-images-idx3-ubyte.gz"),
                      Gzip(IdxImagesFile(set.images))));
  return WriteAtomically(
      directory / absl::StrCat(prefix, "-labels-idx1-ubyte.gz"),
      Gzip(IdxLabelsFile(set.labels)));
}

absl::Status MakeDigits() {
  RETURN_IF_ERROR(CheckFlags());
  const fs::path directory = absl::GetFlag(FLAGS_out);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return absl::ErrnoToStatus(error.value(), directory.string());
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  RETURN_IF_ERROR(WriteSet(directory, "train",
                           DrawDigits(absl::GetFlag(FLAGS_train), seed)));
  return WriteSet(directory, "t10k",
                  DrawDigits(absl::GetFlag(FLAGS_test), ~seed));
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(argc, argv, parasol::kUsage);
  return parasol::ExitWith(parasol::MakeDigits());
}
