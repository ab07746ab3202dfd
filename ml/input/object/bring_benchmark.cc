// Prints how long it takes to bring the file, or the object, that a URI names
// to a folder, in seconds, with its bytes on the disk
// (tests/benchmark/web_data).

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "ml/input/object/object_cache.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bring_benchmark URI FOLDER\n");
    return 2;
  }
  parasol::ObjectCache cache({.directory = argv[2]});
  const absl::Time begin = parasol::Clock::Real().Now();
  const absl::Status brought = cache.Bring({std::string(argv[1])});
  if (!brought.ok()) {
    std::fprintf(stderr, "%s\n", std::string(brought.message()).c_str());
    return 1;
  }
  std::printf("%.3f\n",
              absl::ToDoubleSeconds(parasol::Clock::Real().Now() - begin));
  return 0;
}
