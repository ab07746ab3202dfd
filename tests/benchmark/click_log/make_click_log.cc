#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process.h"
#include "tests/benchmark/click_log/click_log.h"

ABSL_FLAG(std::string, out, "", "The directory to write to; made if missing.");
ABSL_FLAG(int32_t, days, 5, "How many files; the last one is to test with.");
ABSL_FLAG(int64_t, examples, 200000, "Lines of a day.");
ABSL_FLAG(double, exponent, 1.1, "Of Zipf's law; above 1.");
ABSL_FLAG(double, new_share, .3, "Share of ids that first appear that day.");
ABSL_FLAG(uint64_t, seed, 1, "Another seed draws another log.");

namespace parasol::bench {
namespace {

constexpr char kUsage[] =
    "Draws a log of clicks, a CSV file for each day, and prints the largest "
    "AUC "
    "that a model of the last day can be expected to have.\n"
    "\n"
    "  make_click_log --out=DIR [--days=5] [--examples=200000] [--seed=1]\n"
    "\n"
    "Exit code: 0 done; 2 bad flags; 1 anything else.";

absl::Status MakeClickLog() {
  const std::string out = absl::GetFlag(FLAGS_out);
  const int days = absl::GetFlag(FLAGS_days);
  const ClickLog::Options options = {
      .examples_per_day = absl::GetFlag(FLAGS_examples),
      .exponent = absl::GetFlag(FLAGS_exponent),
      .new_share = absl::GetFlag(FLAGS_new_share),
      .seed = absl::GetFlag(FLAGS_seed)};
  if (out.empty() || days < 1 || options.examples_per_day < 1 ||
      !(options.exponent > 1) || !(options.new_share >= 0) ||
      options.new_share > 1) {
    return absl::InvalidArgumentError(
        "needs --out=DIR, --days and --examples of at least 1, --exponent "
        "above 1, and --new_share from 0 to 1");
  }
  std::error_code error;
  std::filesystem::create_directories(out, error);
  const ClickLog log(options);
  std::vector<ClickLog::Line> last;
  for (int day = 0; day < days; ++day) {
    const std::string path = absl::StrFormat("%s/day_%03d.csv", out, day);
    std::ofstream file(path);
    file << "user,item,site,hour,click\n";
    for (int64_t i = 0; i < options.examples_per_day; ++i) {
      const ClickLog::Line line = log.At(day, i);
      file << absl::StrCat(line.ids[0], ",", line.ids[1], ",", line.ids[2], ",",
                           line.hour, ",", line.clicked ? 1 : 0, "\n");
      if (day == days - 1) last.push_back(line);
    }
    file.close();
    if (!file) return absl::InternalError(absl::StrCat("can't write ", path));
  }
  std::cout << absl::StrFormat("best AUC of the last day: %.4f\n",
                               BestAuc(last));
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol::bench

int main(int argc, char** argv) {
  parasol::ParseCommandLine(argc, argv, parasol::bench::kUsage);
  return parasol::ExitWith(parasol::bench::MakeClickLog());
}
