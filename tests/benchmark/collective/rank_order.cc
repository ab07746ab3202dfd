#include "tests/benchmark/collective/rank_order.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"

namespace parasol {
namespace {

std::string PathOf(const RankOrder& order, int rank) {
  return absl::StrCat(order.directory, "/rank.", rank);
}

}  // namespace

void Publish(const RankOrder& order, const std::string& text) {
  const std::string path = PathOf(order, order.rank);
  std::ofstream(path + ".new") << text;
  CHECK(std::rename((path + ".new").c_str(), path.c_str()) == 0) << path;
}

std::string AwaitPublished(const RankOrder& order, int rank) {
  const std::string path = PathOf(order, rank);
  for (int i = 0; i < 3000; ++i) {
    std::ifstream file(path);
    if (file) {
      std::stringstream text;
      text << file.rdbuf();
      return text.str();
    }
    Clock::Real().Pause(absl::Milliseconds(10));
  }
  LOG(FATAL) << "rank " << rank << " does not come: no file " << path;
  return "";
}

}  // namespace parasol
